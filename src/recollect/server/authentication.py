"""Who asks: API keys and bearer tokens, and the one user of a server that nobody else reaches."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from cachetools import TTLCache

from recollect.errors import AuthenticationError, ConfigurationError, NotFoundError
from recollect.model.key_text import PREFIX
from recollect.server.caller import Caller, Credential
from recollect.server.origin import is_loopback
from recollect.server.tokens import TokenClaims, TokenVerifier

if TYPE_CHECKING:
    from recollect.config.server import ServerConfig
    from recollect.pipeline import RAGPipeline

#: So long a credential that was looked up is taken without another look: a revocation ends it in all processes by then,
#: and so does the suspension or erasure of its tenant.
CACHE_SECONDS = 5.0

#: Of so many credentials at most; the ones that were not used longest go.
MOST_CACHED = 4096
_BEARER = "bearer"


class Authenticator:
    """Says who presents a credential. Safe to share between threads.

    Args:
        rag: The open store, whose credentials they are.
        config: Whom the server lets in; None: as the store's settings say.
        environment: Where the variables are looked up that settings name.

    Raises:
        ConfigurationError: Tokens are to be taken, and their key cannot be used.
    """

    def __init__(
        self, rag: RAGPipeline, config: ServerConfig | None = None, *, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._rag = rag
        self._config = config = config or rag.config.server
        self._tokens = TokenVerifier(config.jwt, environment) if config.jwt.configured else None
        self._known: TTLCache[bytes, Caller] = TTLCache(MOST_CACHED, CACHE_SECONDS, timer=lambda: monotonic())
        self._lock = threading.Lock()

    @property
    def admits_local(self) -> bool:
        """Whether somebody on this machine needs no credential: of a server that nobody else reaches."""
        return self._config.authentication == "auto" and self._tokens is None and is_loopback(self._config.host)

    def require_usable(self) -> None:
        """Refuse to serve where anybody could come, and nobody could be known.

        Raises:
            ConfigurationError: Everybody needs a credential, and there is none.
        """
        scope = self._rag.standpoint.everything
        if not self.admits_local and self._tokens is None and not self._rag.standpoint.store.keys.any_active(scope):
            raise ConfigurationError(
                f"On {self._config.host} everybody needs a credential, and there is none yet. Make a key: recollect "
                "keys create NAME; or take tokens: [rag.server.jwt]. Without, serve on 127.0.0.1."
            )

    def authenticate(self, authorization: str | None, *, api_key: str | None = None, local: bool = False) -> Caller:
        """Who presents a credential.

        Args:
            authorization: The header of that name: ``Bearer`` and an API key or a token.
            api_key: The header ``X-API-Key``.
            local: Whether the request can be nobody's but this machine's user's (`recollect.server.requests`).

        Raises:
            AuthenticationError: There is none where one is needed, or it is not taken.
            TenantSuspendedError: It is a key of a tenant that is suspended.
            FetchError: The keys of the tokens' issuer cannot be fetched now.
        """
        text = _presented(authorization, api_key)
        if text is None:
            if local and self.admits_local:
                return Caller.local(self._rag.standpoint.everything.tenant_id)
            raise AuthenticationError(
                "This needs a credential: Authorization: Bearer and an API key (recollect keys create NAME)"
                + (" or a token." if self._tokens else "."),
                missing=True,
            )
        if local and self.admits_local and not text.startswith(PREFIX):
            # Programs for OpenAI's API insist on sending something; it opens nothing that was not open without it.
            return Caller.local(self._rag.standpoint.everything.tenant_id)
        known = self._remembered(text)
        if known is not None:
            return known
        caller = self._of_key(text) if text.startswith(PREFIX) else self._of_token(text)
        with self._lock:
            self._known[_digest(text)] = caller
        return caller

    def known(self, authorization: str | None, *, api_key: str | None = None) -> Caller | None:
        """As `authenticate`, of a credential that was looked up within `CACHE_SECONDS`; None: it must be. Asks nobody.

        Raises:
            AuthenticationError: It is none.
        """
        text = _presented(authorization, api_key)
        return None if text is None else self._remembered(text)

    @property
    def cached(self) -> int:
        """How many credentials are taken without another look."""
        with self._lock:
            return len(self._known)

    def forget(self) -> None:
        """Look up every credential anew: one was revoked here."""
        with self._lock:
            self._known.clear()

    def _remembered(self, text: str) -> Caller | None:
        with self._lock:
            known = self._known.get(_digest(text))
        return None if known is None or _is_over(known.credential) else known

    def _of_key(self, text: str) -> Caller:
        key = self._rag.keys.authenticate(text)
        return Caller(
            tenant=key.tenant_id,
            principal=key.principal,
            scopes=frozenset(key.scopes),
            credential=Credential(kind="key", id=key.key_id, expires_at=key.expires_at),
        )

    def _of_token(self, text: str) -> Caller:
        if self._tokens is None:
            raise AuthenticationError("That is no API key, and this server takes no tokens ([rag.server.jwt]).")
        claims = self._tokens.verify(text)
        assert claims.principal.user_id is not None, "a token names a user"
        return Caller(
            tenant=self._tenant(claims),
            principal=claims.principal,
            scopes=claims.scopes,
            credential=Credential(kind="jwt", id=claims.principal.user_id, expires_at=claims.expires_at),
        )

    def _tenant(self, claims: TokenClaims) -> int:
        """The tenant that a token names; where the store has several, one that names none is nobody's."""
        directory = self._rag.standpoint.store.tenants
        if claims.tenant is not None:
            try:
                return directory.number(claims.tenant)
            except NotFoundError:
                raise AuthenticationError("The token names a tenant that does not exist.") from None
        required = self._config.jwt.require_tenant
        if required or (required is None and len(directory.page(limit=2)) > 1):
            raise AuthenticationError(f"The token names no tenant ({self._config.jwt.claims.tenant!r}).")
        return self._rag.standpoint.everything.tenant_id


def _presented(authorization: str | None, api_key: str | None) -> str | None:
    """The one credential of a request; None: there is none."""
    if authorization is not None and api_key is not None:
        raise AuthenticationError("Two credentials were presented (Authorization and X-API-Key): present one.")
    if authorization is None:
        text = api_key
    else:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != _BEARER:
            raise AuthenticationError("Authorization must be Bearer and an API key or a token.")
        text = text.strip(" ")
    if text is None:
        return None
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise AuthenticationError("The credential is neither an API key nor a token.")
    if api_key is not None and not text.startswith(PREFIX):
        raise AuthenticationError("X-API-Key must be an API key: one begins with rk_.")
    return text


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("ascii")).digest()


def _is_over(credential: Credential) -> bool:
    return credential.expires_at is not None and credential.expires_at <= datetime.now(UTC)
