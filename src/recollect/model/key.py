"""Keys that programs present to a server: what they open, for whom, and how long."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from recollect.errors import UsageError
from recollect.model.audit import LIBRARY
from recollect.model.principal import Principal

#: What a credential opens: ``read``: search, ask, read documents; ``write``: ingest, delete, remember; ``admin``:
#: grants, keys, the audit, collections and settings of its tenant; ``operator``: the tenants of the store. None of them
#: includes another.
AccessScope = Literal["read", "write", "admin", "operator"]
ACCESS_SCOPES: tuple[AccessScope, ...] = get_args(AccessScope)

KeyStatus = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
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
    """

    tenant_id: int
    key_id: str
    name: str
    scopes: tuple[AccessScope, ...]
    principal: Principal | None
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    rotated_at: datetime | None
    previous_until: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    status: KeyStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class NewApiKey:
    """A key that was just made or rotated.

    Attributes:
        key: What is kept of it.
        secret: The key as it is presented, secret and all. It is shown here alone, and not by ``repr``.
    """

    key: ApiKey
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMaker:
    """Who makes a key, as far as the key may not go beyond it.

    Attributes:
        scopes: What the maker's own credential opens.
        expires_at: When it ends; None: it does not.
        actor: The maker's name, for the audit.

    Raises:
        UsageError: A scope is unknown, or the actor has no name.
    """

    scopes: tuple[AccessScope, ...] = ACCESS_SCOPES
    expires_at: datetime | None = None
    actor: str = LIBRARY

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", read_scopes(self.scopes))
        actor: object = self.actor
        if not isinstance(actor, str) or not actor or not actor.isprintable():
            raise UsageError(f"actor must be a name, not {reprlib.repr(actor)}.")
        ends: object = self.expires_at
        if ends is not None and (not isinstance(ends, datetime) or ends.tzinfo is None):
            raise UsageError(f"expires_at must be a time with its zone, not {reprlib.repr(ends)}.")


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
