"""Keys of a server and logins of browsers: what is stored of them, and how their texts are written."""

from __future__ import annotations

import hashlib
import re
import reprlib
import secrets
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from recollect.errors import AuthenticationError, UsageError
from recollect.model.principal import Principal
from recollect.model.record import Public, Record

#: What a credential opens: ``read``: search, ask, read documents; ``write``: ingest, delete, remember; ``admin``:
#: grants, keys, the audit, collections and settings of its tenant; ``operator``: the tenants of the store. None of them
#: includes another.
AccessScope = Literal["read", "write", "admin", "operator"]
ACCESS_SCOPES: tuple[AccessScope, ...] = get_args(AccessScope)

_MOST_ORIGINS = 20
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)(:[1-9][0-9]{0,4})?"
)

KeyStatus = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WidgetUse(Record):
    """What a key of a widget is for, and opens alone.

    Attributes:
        collection: Whose documents answer, by name.
        origins: The sites whose pages may show the widget, for instance ``https://intranet.example.com``.
    """

    collection: Public[str]
    origins: Public[tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(Record):
    """A key, without its secret, which nobody knows but whoever was shown it.

    Attributes:
        tenant_id: Whose knowledge it opens.
        key_id: Its public name: it stands in the key itself, in the audit and in logs.
        name: What it is for, in words.
        scopes: What it opens, in the order of `ACCESS_SCOPES`.
        principal: As whom, with the roles that it was made with; None: as the owner of the tenant's store.
        created_by: Who made it.
        created_at: When.
        expires_at: From when on it is refused; None: never.
        rotated_at: When it last got another secret; None: it has its first.
        previous_until: How long the secret before that is still taken; None: it is not.
        revoked_at: When it was revoked; None: it was not.
        last_used_at: When it was presented last, to the minute; None: never.
        status: Whether it is taken now.
        widget: What it is for, where pages of other sites hold it; None: it is presented by programs and browsers.
    """

    tenant_id: Public[int]
    key_id: Public[str]
    name: Public[str]
    scopes: Public[tuple[AccessScope, ...]]
    principal: Public[Principal | None]
    created_by: Public[str]
    created_at: Public[datetime]
    expires_at: Public[datetime | None]
    rotated_at: Public[datetime | None]
    previous_until: Public[datetime | None]
    revoked_at: Public[datetime | None]
    last_used_at: Public[datetime | None]
    status: Public[KeyStatus]
    widget: Public[WidgetUse | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey(Record):
    """A key that was just made or rotated.

    Attributes:
        key: What is kept of it.
        secret: The key as it is presented, secret and all. It is shown here alone, and not by ``repr``.
    """

    key: Public[ApiKey]
    secret: Public[str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLogin(Record):
    """The login of the browser that asks.

    Attributes:
        login_id: Its public name.
        created_at: Since when.
        idle_until: When it ends, where it is not used again; told to the minute.
        expires_at: When it ends at the latest.
    """

    login_id: Public[str]
    created_at: Public[datetime]
    idle_until: Public[datetime]
    expires_at: Public[datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownUser:
    """A user whom keys or logins name.

    Attributes:
        principal: The user, with the roles, department and groups of their newest key or login.
        keys: Keys that are theirs and taken now.
        logins: Logins of theirs that have not ended.
        last_used_at: When one of them was used last; None: never.
    """

    principal: Principal
    keys: int
    logins: int
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMaker:
    """Who makes a key, as far as the key may not go beyond it.

    Attributes:
        scopes: What the maker's own credential opens.
        expires_at: When it ends; None: it does not.

    Raises:
        UsageError: A scope is unknown.
    """

    scopes: tuple[AccessScope, ...] = ACCESS_SCOPES
    expires_at: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", read_scopes(self.scopes))
        ends: object = self.expires_at
        if ends is not None and (not isinstance(ends, datetime) or ends.tzinfo is None):
            raise UsageError(f"expires_at must be a time with its zone, not {reprlib.repr(ends)}.")


def read_origins(given: Sequence[str]) -> tuple[str, ...]:
    """Sites, as browsers name them: a scheme, a host and perhaps a port, and nothing else.

    Raises:
        UsageError: One is none, is reached without encryption from elsewhere, or there is none or too many.
    """
    found = sorted({_origin(one) for one in given})
    if not found or len(found) > _MOST_ORIGINS:
        raise UsageError(f"origins are 1 to {_MOST_ORIGINS} sites, for instance https://intranet.example.com.")
    return tuple(found)


def _origin(text: str) -> str:
    match = _ORIGIN.fullmatch(text.strip().rstrip("/").lower())
    if match is None or (match["scheme"] == "http" and match["host"] not in {"localhost", "127.0.0.1"}):
        raise UsageError(
            f"A site is https:// with a host and perhaps a port, for instance https://intranet.example.com, not "
            f"{reprlib.repr(text)}; http:// on this machine alone."
        )
    return match[0]


def read_scopes(given: Iterable[str] | str) -> tuple[AccessScope, ...]:
    """Scopes, each once, in the order of `ACCESS_SCOPES`.

    Raises:
        UsageError: One is unknown, or there is none.
    """
    try:
        wanted = {given} if isinstance(given, str) else set(given)
    except TypeError:
        wanted = set()
    if not wanted or not wanted <= set(ACCESS_SCOPES):
        raise UsageError(f"scopes must be of {', '.join(ACCESS_SCOPES)}, not {reprlib.repr(given)}.")
    return tuple(scope for scope in ACCESS_SCOPES if scope in wanted)


# How a key is written: `rk_<tenant>_<id>_<secret and checksum>`.
#
# The tenant stands in it because the database shows a connection nothing before it knows whose it is. The prefix and
# the lengths are what scanners for leaked secrets look for (`PATTERN`); the checksum tells a key that was cut off or
# mistyped from one that was revoked, without asking the database, and keeps the scanners from false alarms.


PREFIX = "rk_"

#: What a browser's cookie begins with after a login; it is written like a key, and taken nowhere else.
LOGIN_PREFIX = "rl_"

#: What keys look like, for scanners.
PATTERN = r"rk_[1-9][0-9]{0,9}_[0-9A-Za-z]{14}_[0-9A-Za-z]{49}"

#: What keys and cookies look like: nothing of either is to stand in a log or an address.
SECRET_PATTERN = r"r[kl]_[1-9][0-9]{0,9}_[0-9A-Za-z]{14}_[0-9A-Za-z]{49}"

#: In the order of ASCII, so that ids sort as the times that they begin with.
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TIME_DIGITS, _RANDOM_DIGITS = 6, 8
# 62^43 is more than 2^256.
_SECRET_DIGITS = 43
_CHECKSUM_DIGITS = 6
_SECRET = re.compile(SECRET_PATTERN, re.ASCII)
_LARGEST_TENANT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class KeyText:
    """A key as it is presented.

    Attributes:
        tenant_id: Whose it says that it is.
        key_id: Its public part.
        text: All of it; ``repr`` does not show it.
    """

    tenant_id: int
    key_id: str
    text: str = field(repr=False)

    @property
    def hash(self) -> bytes:
        """What is kept of it: SHA-256 of the whole."""
        return hashlib.sha256(self.text.encode("ascii")).digest()


def draw_key(tenant_id: int, key_id: str | None = None) -> KeyText:
    """A new key.

    Args:
        tenant_id: Whose.
        key_id: Of a key that gets another secret; None: a new id.
    """
    return _new(PREFIX, tenant_id, key_id)


def draw_login(tenant_id: int) -> KeyText:
    """What a browser's cookie holds after a login to a tenant; its `key_id` is the login's public id."""
    return _new(LOGIN_PREFIX, tenant_id, None)


def read_key(text: str) -> KeyText:
    """A key that somebody presents; whether there is such a key is the store's to say.

    Raises:
        AuthenticationError: It is none, or was cut off or mistyped. The message repeats nothing of it.
    """
    if not text.startswith(PREFIX) or _SECRET.fullmatch(text) is None:
        raise AuthenticationError("That is no API key: one begins with rk_ and has 69 characters or a few more.")
    read = _read(text)
    if read is None:
        raise AuthenticationError("The API key was not copied whole, or was changed: its checksum does not fit.")
    return read


def read_login(text: str) -> KeyText:
    """What a browser's cookie says of its login; whether there is such a one is the store's to say.

    Raises:
        AuthenticationError: It is none. The message repeats nothing of it.
    """
    whole = text.startswith(LOGIN_PREFIX) and _SECRET.fullmatch(text) is not None
    read = _read(text) if whole else None
    if read is None:
        raise AuthenticationError("The browser's cookie is of no login: log in.")
    return read


def _new(prefix: str, tenant_id: int, key_id: str | None) -> KeyText:
    key_id = key_id or _written(int(time.time()), _TIME_DIGITS) + _drawn(_RANDOM_DIGITS)
    body = f"{prefix}{tenant_id}_{key_id}_{_drawn(_SECRET_DIGITS)}"
    return KeyText(tenant_id, key_id, body + _checksum(body))


def _read(text: str) -> KeyText | None:
    body, checksum = text[:-_CHECKSUM_DIGITS], text[-_CHECKSUM_DIGITS:]
    _, tenant, key_id, _ = text.split("_")
    fits = secrets.compare_digest(_checksum(body), checksum) and int(tenant) <= _LARGEST_TENANT
    return KeyText(int(tenant), key_id, text) if fits else None


def _checksum(body: str) -> str:
    return _written(zlib.crc32(body.encode("ascii")), _CHECKSUM_DIGITS)


def _drawn(count: int) -> str:
    return "".join(secrets.choice(_DIGITS) for _ in range(count))


def _written(number: int, count: int) -> str:
    digits = []
    for _ in range(count):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


# Logins of browsers: who is logged in, since when, and how long.


#: By what somebody was known who logged in: an API key, or an issuer's word (OpenID Connect).
LoginMethod = Literal["key", "oidc"]

LoginStatus = Literal["active", "expired", "revoked", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Login(Record):
    """A browser that is logged in, or was; without its cookie, which nobody knows but the browser.

    Attributes:
        tenant_id: Whose knowledge it opens.
        login_id: Its public name: it stands in lists and in the audit.
        method: How its user was known: by an API key, or by an issuer's word (OpenID Connect).
        key_id: The API key that it was made with; None: an issuer vouched for the user.
        scopes: What it opens.
        principal: As whom; None: as the owner of the tenant's store.
        created_at: Since when.
        last_used_at: When it was used last, to the minute.
        idle_until: When it ends, where it is not used again.
        expires_at: When it ends at the latest, however much it is used.
        key_expires_at: When its key ends; None: that does not, or there is none.
        ended_at: When it was logged out or revoked; None: it was not.
        status: Whether it is taken now: ``active``; ``expired``: its time is over, or it was not used for too long;
            ``revoked``: its key is not taken any more; ``ended``: it was logged out, or an administrator ended it.
    """

    tenant_id: Public[int]
    login_id: Public[str]
    method: Public[LoginMethod]
    key_id: Public[str | None]
    scopes: Public[tuple[AccessScope, ...]]
    principal: Public[Principal | None]
    created_at: Public[datetime]
    last_used_at: Public[datetime]
    idle_until: Public[datetime]
    expires_at: Public[datetime]
    key_expires_at: datetime | None = None
    ended_at: Public[datetime | None]
    status: Public[LoginStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLogin:
    """A login that was just made.

    Attributes:
        login: What is kept of it.
        secret: What the browser's cookie holds. It is shown here alone, and not by ``repr``.
    """

    login: Login
    secret: str = field(repr=False)
