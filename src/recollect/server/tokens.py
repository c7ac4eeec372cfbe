"""Bearer tokens of an issuer (JWT): verified with the keys that it publishes, and read as whose and who.

The key that is configured decides the algorithm; what a token says of it only has to agree.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recollect.errors import (
    AuthenticationError,
    ConfigurationError,
    FetchError,
    IssuerError,
    IssuerUnavailableError,
    UsageError,
)
from recollect.fetching.guard import Guard, host_rules
from recollect.fetching.urls import parse_url
from recollect.installation import install_command
from recollect.model.key import ACCESS_SCOPES, AccessScope
from recollect.model.principal import Principal

if TYPE_CHECKING:
    from jwt import PyJWK

    from recollect.config.server import JwtConfig
    from recollect.fetching.client import Fetcher


#: What carries whole lists of groups, and no more.
MOST_TOKEN_CHARACTERS = 16 * 1024


_SHORTEST_SECRET_BYTES = 32


_SHORTEST_RSA_BITS = 2048


#: The key for a header that is not verified yet, which says nothing but which of the trusted keys to try.
_KeyOf = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenClaims:
    """What a verified token says.

    Attributes:
        tenant: By number or name; None: it does not say.
        principal: As whom.
        scopes: What it opens.
        expires_at: When it ends.
    """

    tenant: int | str | None
    principal: Principal
    scopes: frozenset[AccessScope]
    expires_at: datetime


class TokenVerifier:
    """Verifies tokens with the configured key. Safe to share between threads.

    Args:
        config: With a key.
        environment: Where the variable with the secret is looked up.

    Raises:
        ConfigurationError: There is no such secret or key, or it is too weak; or pyjwt is not installed.
    """

    def __init__(self, config: JwtConfig, environment: Mapping[str, str]) -> None:
        try:
            import jwt
        except ImportError as exc:
            raise ConfigurationError(f"Tokens need pyjwt: {install_command('server')}.") from exc

        self._config = config
        self._jwt = jwt.PyJWT(options={"enforce_minimum_key_length": True})
        self._algorithms, self._key_of = _trusted(config, environment)

    def verify(self, token: str) -> TokenClaims:
        """What a token says.

        Args:
            token: As it was presented.

        Raises:
            AuthenticationError: It is none, not the issuer's, not for this server, or its time is over or has not come.
                The message repeats nothing of it.
            FetchError: The issuer's keys cannot be fetched now.
        """
        import jwt

        if len(token) > MOST_TOKEN_CHARACTERS:
            raise AuthenticationError(f"The token has more than {MOST_TOKEN_CHARACTERS:,} characters.")
        config = self._config
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in self._algorithms:
                raise AuthenticationError(f"The token is not signed with {' or '.join(self._algorithms)}.")
            claims = self._jwt.decode(
                token,
                self._key_of(header),
                algorithms=self._algorithms,
                audience=config.audience,
                issuer=config.issuer,
                leeway=config.leeway_seconds,
                options={"require": ["exp"], "verify_aud": config.audience is not None},
            )
        except jwt.PyJWTError as exc:
            raise AuthenticationError(explained(exc)) from None
        _require_numeric_dates(claims)
        return read_claims(claims, config)


def _require_numeric_dates(claims: Mapping[str, Any]) -> None:
    """RFC 7519, section 2: a NumericDate is a JSON number. pyjwt takes "1800000000" and true for one."""
    for name in ("exp", "nbf", "iat"):
        moment = claims.get(name, 0)
        if isinstance(moment, bool) or not isinstance(moment, int | float):
            raise AuthenticationError(f"The token's {name!r} is not a number of seconds.")


def _trusted(config: JwtConfig, environment: Mapping[str, str]) -> tuple[list[str], _KeyOf]:
    if config.secret is not None:
        name = config.secret.removeprefix("env:")
        secret = environment.get(name, "").encode()
        if len(secret) < _SHORTEST_SECRET_BYTES:
            raise ConfigurationError(
                f"rag.server.jwt.secret: the variable {name} must hold {_SHORTEST_SECRET_BYTES} bytes or more."
            )
        if b"-----BEGIN" in secret:
            raise ConfigurationError(f"rag.server.jwt.secret: {name} holds a key in PEM: name its file as public_key.")
        return ["HS256"], lambda _: secret
    if config.public_key is not None:
        algorithm, key = _pem(config)
        return [algorithm], lambda _: key

    return ["RS256", "ES256"], published_keys(config).of


def _pem(config: JwtConfig) -> tuple[str, Any]:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    path = config.public_key
    assert path is not None
    try:
        text = path.read_bytes()
        certificate = b"-----BEGIN CERTIFICATE-----" in text
        key = load_pem_x509_certificate(text).public_key() if certificate else load_pem_public_key(text)
    except OSError as exc:
        raise ConfigurationError(f"rag.server.jwt.public_key: {str(path)!r}: {exc.strerror or exc}.") from exc
    except ValueError:
        # Not from what it says: a private key in its place is no text to repeat.
        raise ConfigurationError(f"rag.server.jwt.public_key: {str(path)!r} holds no public key in PEM.") from None
    if isinstance(key, RSAPublicKey) and key.key_size >= _SHORTEST_RSA_BITS:
        return "RS256", key
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return "ES256", key
    raise ConfigurationError(
        f"rag.server.jwt.public_key: {str(path)!r} holds neither a key for RS256 ({_SHORTEST_RSA_BITS} bits or more) "
        "nor one for ES256 (P-256)."
    )


def explained(exc: Exception) -> str:
    """Why a token is not taken, in words that repeat nothing of it."""
    import jwt

    match exc:
        case jwt.ExpiredSignatureError():
            return "The token has expired."
        case jwt.ImmatureSignatureError() | jwt.InvalidIssuedAtError():
            return "The token is not valid yet."
        case jwt.InvalidIssuerError():
            return "The token is of another issuer than the one that is trusted."
        case jwt.InvalidAudienceError():
            return "The token is not for this server: its audience is another one."
        case jwt.MissingRequiredClaimError():
            return f"The token does not say {exc.claim!r}."
        case _:
            return "The token is none, or was not signed by its issuer."


def read_claims(claims: Mapping[str, Any], config: JwtConfig) -> TokenClaims:
    """What a token's claims say, by the names that are configured.

    Args:
        claims: Of a token that was verified.
        config: What they are called.

    Raises:
        AuthenticationError: They name no user, or cannot be read.
    """
    names = config.claims
    tenant = _claim(claims, names.tenant)
    if isinstance(tenant, bool) or not isinstance(tenant, int | str | None):
        raise _unreadable(names.tenant)
    if isinstance(tenant, str) and (not tenant or not tenant.isprintable()):
        raise _unreadable(names.tenant)
    groups = _claim(claims, names.groups)
    # An issuer with more groups than a token holds says that they are elsewhere. Without them nobody could be denied.
    elsewhere = claims.get("_claim_names")
    if groups is None and (claims.get("hasgroups") or (isinstance(elsewhere, Mapping) and names.groups in elsewhere)):
        raise AuthenticationError("The token leaves its groups out because they are too many: have fewer in it.")
    user = _claim(claims, names.user)
    if not isinstance(user, str) or not user.strip():
        raise AuthenticationError(f"The token names no user ({names.user!r}).")
    try:
        principal = Principal(
            user_id=user,
            roles=_words(claims, names.roles),
            department=_single(claims, names.department),
            groups=tuple(_words(claims, names.groups)),
        )
        expires_at = datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (UsageError, ValueError, OverflowError, OSError):
        raise AuthenticationError("The token's user, roles, department or groups are no names.") from None
    return TokenClaims(
        tenant=tenant,
        principal=principal,
        scopes=_scopes(_words(claims, names.scopes), principal.roles, config),
        expires_at=expires_at,
    )


def _scopes(words: Iterable[str], roles: Iterable[str], config: JwtConfig) -> frozenset[AccessScope]:
    said = {word.removeprefix("recollect:") for word in words}
    named = {scope for scope in ACCESS_SCOPES if scope in said} or set(config.scopes)
    by_role = {scope for role in roles for scope in config.role_scopes.get(role, ())}
    return frozenset((named | by_role) & set(config.max_scopes))


def _claim(claims: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - whatever the token says
    """A claim by its name, or else by a path with dots, such as ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _words(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = _claim(claims, name)
    if found is None:
        return ()
    if isinstance(found, str):
        return tuple(found.split())
    # A list that is read in part would leave out what somebody is denied for.
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise _unreadable(name)
    return tuple(found)


def _single(claims: Mapping[str, Any], name: str) -> str | None:
    found = _claim(claims, name)
    if isinstance(found, list) and len(found) == 1:
        (found,) = found
    if not isinstance(found, str | None):
        raise _unreadable(name)
    return found or None


def _unreadable(name: str) -> AuthenticationError:
    return AuthenticationError(f"The token's claim {name!r} cannot be read.")


# The public keys that an issuer of tokens publishes (JWKS): fetched when a token needs one, and kept for a while.


#: What a published key may sign with, by its kind. A shared secret (``oct``) is none that anybody publishes.
_ALGORITHMS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256"}


#: So long the keys are not fetched again, whatever tokens name: neither a flood of unknown keys nor an issuer that does
#: not answer makes more requests.
RETRY_SECONDS = 10.0


#: Keys that cannot be fetched anew are used for so long; then no token is taken.
STALE_SECONDS = 3600.0


_MOST_BYTES = 256 * 1024


_TIMEOUT_SECONDS = 5.0


class PublishedKeys:
    """An issuer's keys by their id. Safe to share between threads; one of them fetches at a time.

    Args:
        url: Where they are.
        fetcher: Asks for them.
        cache_seconds: How long they are used before they are fetched anew. A token with a key that is not among them
            has them fetched at once, so that a rotation needs no wait.
        clock: Seconds that never run backwards.
    """

    def __init__(
        self, url: str, fetcher: Fetcher, *, cache_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._fetcher = fetcher
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str | None, list[PyJWK]] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._failed: FetchError | None = None

    def of(self, header: Mapping[str, Any]) -> PyJWK:
        """The key that a token's header names; of one that names none, the only one there is.

        Args:
            header: Not verified yet.

        Raises:
            AuthenticationError: There is none.
            IssuerUnavailableError: The keys cannot be fetched now, and are not known from before.
            IssuerError: There are none where they should be.
        """
        key_id = header.get("kid")
        if key_id is not None and not isinstance(key_id, str):
            raise AuthenticationError("The token's key has no name that is text.")
        self._renew(key_id)
        fitting = [key for key in self._keys.get(key_id, ()) if key.algorithm_name == header.get("alg")]
        if key_id is None:
            every = [key for keys in self._keys.values() for key in keys]
            fitting = [key for key in every if key.algorithm_name == header.get("alg")]
        if len(fitting) != 1:
            raise AuthenticationError("The token is not signed with a key that its issuer publishes.")
        return fitting[0]

    def _renew(self, key_id: str | None) -> None:
        """Fetch the keys where they are old, or do not hold the one that is looked for."""
        fresh = self._clock() - self._fetched_at < self._cache_seconds
        if fresh and (key_id is None or key_id in self._keys):
            return
        # Whoever can go on with what is known does not wait for whoever fetches.
        if not self._lock.acquire(blocking=self._is_too_old() or not fresh or key_id not in self._keys):
            return
        try:
            if self._clock() - self._tried_at < RETRY_SECONDS:
                self._require_known()
                return
            self._tried_at = self._clock()
            try:
                fetched = self._fetcher.fetch(_request(self._url), max_bytes=_MOST_BYTES)
                if self._url.startswith("https:") and fetched.url.scheme != "https":
                    raise FetchError(self._url, "redirects to a connection that anybody could change")
                self._keys = _read(fetched.body, self._url)
                self._fetched_at, self._failed = self._clock(), None
            except FetchError as exc:
                self._failed = exc
                self._require_known()
        finally:
            self._lock.release()

    def _is_too_old(self) -> bool:
        return self._clock() - self._fetched_at > max(STALE_SECONDS, self._cache_seconds)

    def _require_known(self) -> None:
        if not self._is_too_old():
            return
        failed = self._failed
        if failed is None or failed.retryable:
            wait = max(RETRY_SECONDS - (self._clock() - self._tried_at), 1.0)
            reason = "the keys that tokens are verified with cannot be fetched now"
            raise IssuerUnavailableError(self._url, reason, retry_after_seconds=wait)
        raise IssuerError(self._url, f"the keys that tokens are verified with cannot be fetched: {failed.reason}")


def published_keys(config: JwtConfig) -> PublishedKeys:
    """The keys of the configured issuer, which no other host is asked for.

    Raises:
        UsageError: A host is none.
        FetchError: The URL is none.
    """
    from recollect.fetching.client import Fetcher

    assert config.jwks_url is not None
    named = config.jwks_allowed_hosts
    hosts = named or (parse_url(config.jwks_url).authority,)
    guard = Guard(
        allow_private_addresses=bool(named), allowed_hosts=host_rules(hosts, name="rag.server.jwt.jwks_allowed_hosts")
    )
    fetcher = Fetcher(guard, max_bytes=_MOST_BYTES, timeout_seconds=_TIMEOUT_SECONDS)
    return PublishedKeys(config.jwks_url, fetcher, cache_seconds=config.jwks_cache_seconds)


def _request(url: str) -> Any:  # noqa: ANN401 - a PageRequest, whose module is imported when tokens are verified so
    from recollect.fetching.client import PageRequest

    return PageRequest(url=url, headers={"Accept": "application/jwk-set+json, application/json"})


def _read(body: bytes, url: str) -> dict[str | None, list[PyJWK]]:
    """The keys for signatures that this understands; others may stand beside them."""
    try:
        found = json.loads(body)["keys"]
        entries = [entry for entry in found if isinstance(entry, dict)]
    except (ValueError, RecursionError, KeyError, TypeError) as exc:
        raise FetchError(url, "is no set of keys (JWKS)") from exc
    keys: dict[str | None, list[PyJWK]] = {}
    for entry in entries:
        key = _key(entry)
        if key is not None:
            keys.setdefault(entry.get("kid"), []).append(key)
    if not keys:
        raise FetchError(url, "publishes no key for RS256 or ES256")
    return keys


def _key(entry: dict[str, Any]) -> PyJWK | None:
    from jwt import PyJWK, PyJWTError

    kind, curve = entry.get("kty"), entry.get("crv")
    algorithm = _ALGORITHMS.get((kind, curve)) if isinstance(kind, str) and isinstance(curve, str | None) else None
    if algorithm is None or entry.get("use", "sig") != "sig" or entry.get("alg", algorithm) != algorithm:
        return None
    if not isinstance(entry.get("kid"), str | None):
        return None
    try:
        # Whoever publishes a private key has published nothing that proves anything.
        return None if "d" in entry else PyJWK(entry, algorithm)
    except (PyJWTError, ValueError, TypeError):
        return None
