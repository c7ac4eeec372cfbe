"""Keys that programs present to a server: what they open, for whom, and how long."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from recollect.errors import UsageError
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
