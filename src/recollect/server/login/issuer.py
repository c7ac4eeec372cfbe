"""An issuer that people log in with (OpenID Connect): found by its configuration, and asked who has logged in there.

Codes are exchanged with PKCE, and what comes back is verified with `pyjwt` like any bearer token. What is fetched goes
through the house's own client: one deadline, a limit of size, checked addresses.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, urlencode, urlsplit

from recollect.errors import (
    AuthenticationError,
    ConfigurationError,
    FetchError,
    IssuerError,
    IssuerUnavailableError,
    UsageError,
)
from recollect.fetching.guard import Guard, host_rules
from recollect.server.tokens import (
    MOST_TOKEN_CHARACTERS,
    RETRY_SECONDS,
    PublishedKeys,
    TokenClaims,
    explained,
    read_claims,
)

if TYPE_CHECKING:
    from recollect.config.server import JwtConfig, OidcConfig
    from recollect.fetching.client import Fetcher


logger = logging.getLogger(__name__)


_ALGORITHMS = ["RS256", "ES256"]


_MOST_BYTES = 256 * 1024


_TIMEOUT_SECONDS = 5.0


_CONFIGURATION = "/.well-known/openid-configuration"


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerConfiguration:
    """What an issuer says of itself (OpenID Connect Discovery), as far as it is needed.

    Attributes:
        authorization_endpoint: Where browsers are sent to.
        token_endpoint: Where codes become tokens.
        jwks_uri: Where its keys are.
        end_session_endpoint: Where browsers are sent to be logged out there too; None: it offers none.
        names_itself: Whether its answers name it (RFC 9207); they must then.
        takes_basic: Whether the client's secret is sent as a header; otherwise it is in the body.
    """

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None
    names_itself: bool
    takes_basic: bool


class Issuer:
    """The configured issuer. Safe to share between threads.

    Args:
        config: Of the issuer.
        jwt: How its tokens are read.
        environment: Where the variable with the client's secret is looked up.
        fetcher: Asks for what it publishes; None: one that contacts what the configuration allows.
        clock: Seconds that never run backwards.

    Raises:
        ConfigurationError: The secret is not in the environment, or a package is missing.
    """

    def __init__(
        self,
        config: OidcConfig,
        jwt: JwtConfig,
        environment: Mapping[str, str],
        *,
        fetcher: Fetcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        assert config.issuer is not None, "it is configured"
        assert config.client_id is not None, "the settings ask for one"
        self.name = config.name
        self._issuer, self._client_id = config.issuer, config.client_id
        self._config, self._jwt = config, jwt
        self._secret = _secret(config, environment)
        self._fetcher = fetcher or _fetcher(config)
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[IssuerConfiguration, PublishedKeys] | None = None
        self._known_until = self._tried_at = float("-inf")

    def authorization_url(self, attempt: LoginAttempt, *, redirect_uri: str) -> str:
        """Where the browser is sent to log in.

        Raises:
            IssuerError: The issuer's configuration cannot be fetched, or cannot be right.
        """
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self._config.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return _with_query(self._configuration()[0].authorization_endpoint, query)

    def logout_url(self, id_token: str | None, *, return_to: str) -> str | None:
        """Where the browser is sent to be logged out there too; None: the issuer offers no such place.

        Raises:
            IssuerError: The issuer's configuration cannot be fetched, or cannot be right.
        """
        endpoint = self._configuration()[0].end_session_endpoint
        if endpoint is None:
            return None
        hint = {} if id_token is None else {"id_token_hint": id_token}
        return _with_query(endpoint, {**hint, "client_id": self._client_id, "post_logout_redirect_uri": return_to})

    def require_itself(self, iss: str | None) -> None:
        """Refuse an answer that another issuer has given, or that does not name this one where it should.

        Raises:
            AuthenticationError: See above.
            IssuerError: The issuer's configuration cannot be fetched, or cannot be right.
        """
        if iss is None and not self._configuration()[0].names_itself:
            return
        if iss != self._issuer:
            raise AuthenticationError("The answer is of another issuer than the one that the login was begun with.")

    def exchange(self, code: str, attempt: LoginAttempt, *, redirect_uri: str) -> tuple[TokenClaims, str]:
        """What the issuer says of whoever has logged in there.

        Args:
            code: As the browser brought it.
            attempt: That it belongs to.
            redirect_uri: As when the attempt was begun.

        Returns:
            What its token says, and the token, for the logout.

        Raises:
            AuthenticationError: The code is not taken, or the token is not to be believed.
            IssuerError: The issuer does not answer as it has to.
        """
        configuration, keys = self._configuration()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self._secret is None:
            form["client_id"] = self._client_id
        elif configuration.takes_basic:
            pair = f"{quote_plus(self._client_id)}:{quote_plus(self._secret)}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            form |= {"client_id": self._client_id, "client_secret": self._secret}
        answer = self._asked(configuration.token_endpoint, form=form, headers=headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise IssuerError(configuration.token_endpoint, "sent no id_token for a code that it took")
        return self._verified(token, keys, attempt), token

    def _verified(self, token: str, keys: PublishedKeys, attempt: LoginAttempt) -> TokenClaims:
        import jwt

        if len(token) > MOST_TOKEN_CHARACTERS:
            raise AuthenticationError(f"The token has more than {MOST_TOKEN_CHARACTERS:,} characters.")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in _ALGORITHMS:
                raise AuthenticationError(f"The issuer's token is not signed with {' or '.join(_ALGORITHMS)}.")
            claims = jwt.decode(
                token,
                keys.of(header),
                algorithms=_ALGORITHMS,
                audience=self._client_id,
                issuer=self._issuer,
                leeway=self._jwt.leeway_seconds,
                options={"require": ["iss", "sub", "aud", "exp", "iat", "nonce"]},
            )
        except jwt.PyJWTError as exc:
            raise AuthenticationError(explained(exc)) from None
        nonce, party = claims["nonce"], claims.get("azp")
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), attempt.nonce.encode()):
            raise AuthenticationError("The issuer's token was made for another login.")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if party != self._client_id and (party is not None or several):
            raise AuthenticationError("The issuer's token was made for another program than this one (azp).")
        return read_claims(claims, self._jwt)

    def _configuration(self) -> tuple[IssuerConfiguration, PublishedKeys]:
        """What the issuer says of itself, fetched anew now and then; what is known is used while it cannot be."""
        with self._lock:
            now = self._clock()
            if now < self._known_until:
                assert self._known is not None, "it is known until then"
                return self._known
            if now - self._tried_at < RETRY_SECONDS:
                if self._known is not None:
                    return self._known
                raise IssuerUnavailableError(
                    self._issuer, "cannot be reached now", retry_after_seconds=RETRY_SECONDS - (now - self._tried_at)
                )
            self._tried_at = now
            try:
                found = self._read(self._asked(self._issuer.rstrip("/") + _CONFIGURATION))
            except IssuerUnavailableError:
                if self._known is None:
                    raise
                logger.warning("The configuration of %s cannot be fetched anew; the known one is used.", self._issuer)
                return self._known
            if self._known is None or self._known[0].jwks_uri != found.jwks_uri:
                keys = PublishedKeys(found.jwks_uri, self._fetcher, cache_seconds=self._jwt.jwks_cache_seconds)
            else:
                keys = self._known[1]
            self._known, self._known_until = (found, keys), now + self._jwt.jwks_cache_seconds
            return self._known

    def _read(self, said: Mapping[str, Any]) -> IssuerConfiguration:
        if said.get("issuer") != self._issuer:
            # Whoever answers here would vouch for the users of another issuer.
            raise IssuerError(self._issuer, f"names itself {str(said.get('issuer'))[:200]!r} in its configuration")
        endpoints = {
            name: self._endpoint(said, name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        }
        methods = said.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        return IssuerConfiguration(
            **endpoints,
            end_session_endpoint=self._endpoint(said, "end_session_endpoint")
            if said.get("end_session_endpoint")
            else None,
            names_itself=said.get("authorization_response_iss_parameter_supported") is True,
            takes_basic="client_secret_basic" in methods or "client_secret_post" not in methods,
        )

    def _endpoint(self, said: Mapping[str, Any], name: str) -> str:
        url = said.get(name)
        if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
            raise IssuerError(self._issuer, f"names no {name} in its configuration")
        self._require_safe(url, name)
        return url

    def _require_safe(self, url: str, name: str) -> None:
        try:
            parts = urlsplit(url)
            safe = parts.scheme == "https" or (
                parts.scheme == "http" and self._config.on_loopback and parts.hostname in _LOOPBACK
            )
        except ValueError:
            safe = False
        if not safe or not parts.hostname:
            raise IssuerError(self._issuer, f"names a {name} that is not reached over an encrypted connection")

    def _asked(
        self, url: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """The object that an issuer answers with."""
        from recollect.fetching.client import PageRequest

        body = None if form is None else urlencode(form).encode()
        request = PageRequest(
            url=url,
            method="GET" if body is None else "POST",
            headers=headers or {"Accept": "application/json"},
            body=body,
        )
        try:
            fetched = self._fetcher.fetch(request, max_bytes=_MOST_BYTES)
            self._require_safe(str(fetched.url), "place")
            found = json.loads(fetched.body)
        except FetchError as exc:
            raise _failed(exc, posted=body is not None) from exc
        except UsageError as exc:
            raise IssuerError(url, "cannot be asked") from exc
        except (ValueError, RecursionError) as exc:
            raise IssuerError(url, "did not answer with JSON") from exc
        if not isinstance(found, Mapping):
            raise IssuerError(url, "did not answer with a JSON object")
        return found


def _failed(exc: FetchError, *, posted: bool) -> Exception:
    """What a request that failed means for the login."""
    if isinstance(exc, IssuerError):
        return exc
    if posted and exc.status == 400:
        return AuthenticationError("The issuer does not take the code: it was used, or is too old. Log in again.")
    if posted and exc.status in {401, 403}:
        return IssuerError(exc.url, "refuses this server's client_id or client_secret", status=exc.status)
    if exc.retryable:
        wait = exc.retry_after_seconds
        return IssuerUnavailableError(exc.url, exc.reason, retry_after_seconds=RETRY_SECONDS if wait is None else wait)
    return IssuerError(exc.url, exc.reason, status=exc.status)


def _secret(config: OidcConfig, environment: Mapping[str, str]) -> str | None:
    if config.client_secret is None:
        return None
    name = config.client_secret.removeprefix("env:")
    if not environment.get(name):
        raise ConfigurationError(f"rag.server.login.oidc.client_secret: {name} is not in the environment.")
    return environment[name]


def _fetcher(config: OidcConfig) -> Fetcher:
    from recollect.fetching.client import Fetcher

    assert config.issuer is not None
    named = config.allowed_hosts or ((urlsplit(config.issuer).netloc,) if config.on_loopback else ())
    guard = Guard(
        allow_private_addresses=bool(named),
        allowed_hosts=host_rules(named, name="rag.server.login.oidc.allowed_hosts"),
    )
    return Fetcher(guard, max_bytes=_MOST_BYTES, timeout_seconds=_TIMEOUT_SECONDS)


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query, quote_via=quote)}"


# A login with an issuer that has begun: between sending the browser away and its return, nothing of it is kept here.
#
# One secret of 256 random bits in a cookie is all there is. What the issuer and the browser's address bar see of it
# (`state`, `nonce`, the challenge of PKCE) are hashes, each of its own kind, so none of them tells the secret or
# another one; and whichever process the browser comes back to can make them again. No key is shared between
# processes, no row waits in the database for browsers that never come back, and an answer to another browser's
# attempt has no cookie here.


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
