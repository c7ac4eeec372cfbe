"""A login with an issuer that has begun: between sending the browser away and its return, nothing of it is kept here.

One secret of 256 random bits in a cookie is all there is. What the issuer and the browser's address bar see of it
(`state`, `nonce`, the challenge of PKCE) are hashes, each of its own kind, so none of them tells the secret or another
one; and whichever process the browser comes back to can make them again. No key is shared between processes, no row
waits in the database for browsers that never come back, and an answer to another browser's attempt has no cookie here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

#: So long somebody may take to log in there.
LIFETIME_SECONDS = 600.0

#: Attempts that a browser may have begun at the same time, in as many of its tabs.
MOST_ATTEMPTS = 4

COOKIE_PREFIX = "recollect_attempt_"

_MOST_RETURN_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One attempt.

    Attributes:
        secret: What the cookie holds; ``repr`` does not show it.
        return_to: The path that was asked for before the login.
    """

    secret: str = field(repr=False)
    return_to: str

    @classmethod
    def begin(cls, return_to: str) -> LoginAttempt:
        """A new one."""
        return cls(secrets.token_urlsafe(32), return_to)

    @classmethod
    def read(cls, cookie: str | None, *, state: str) -> LoginAttempt | None:
        """The one that a cookie holds and an issuer's answer belongs to; None: there is none."""
        secret, _, path = (cookie or "").partition(".")
        attempt = cls(secret, unquote(path))
        return attempt if secret and hmac.compare_digest(attempt.state.encode(), state.encode()) else None

    @property
    def cookie(self) -> str:
        """What the cookie holds."""
        return f"{self.secret}.{quote(self.return_to, safe='/')}"

    @property
    def cookie_name(self) -> str:
        """Of this attempt, so that several tabs do not end each other's."""
        return cookie_name(self.state)

    @property
    def state(self) -> str:
        """Comes back with the browser, and shows that this one was sent away."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Comes back in the issuer's token, and shows that it was made for this attempt."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Shows the issuer that the code is exchanged by whoever began (PKCE, RFC 7636)."""
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        """What the issuer compares the verifier with."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())

    def _derived(self, kind: str) -> str:
        return _encoded(hmac.digest(self.secret.encode(), kind.encode(), "sha256"))


def cookie_name(state: str) -> str:
    """The name of the cookie of the attempt with this state."""
    return COOKIE_PREFIX + hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()[:12]


def safe_path(given: str | None, *, otherwise: str) -> str:
    """A path of this server to go to after a login, where it is one: no login leads to another site.

    Args:
        given: As a link or a form brought it.
        otherwise: Where there is none, or it is none.
    """
    if not given or len(given) > _MOST_RETURN_CHARACTERS or not given.startswith("/") or given.startswith("//"):
        return otherwise
    # Browsers take a backslash for a slash, and drop tabs and line breaks, before they read an address.
    plain = given.isascii() and given.isprintable() and not set(given) & {"\\", " "}
    return given if plain else otherwise


def _encoded(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
