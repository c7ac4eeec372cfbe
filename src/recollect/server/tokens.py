"""Bearer tokens of an issuer (JWT): verified, and read as whose and who.

The key that is configured decides the algorithm; what a token says of it only has to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recollect.errors import AuthenticationError, ConfigurationError, UsageError
from recollect.installation import install_command
from recollect.model.key import ACCESS_SCOPES, AccessScope
from recollect.model.principal import Principal
from recollect.server.published_keys import published_keys

if TYPE_CHECKING:
    from recollect.config.server import JwtConfig

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
