"""Whose knowledge a read may see, as of when, and on whose behalf something is done."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.principal import Principal
    from recollect.model.remote import Remote


DEFAULT_TENANT_ID = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The first argument of every read of tenant data.

    Attributes:
        tenant_id: The tenant whose rows exist for this read; no other tenant's do.
        as_of: Known time of the read (time-zone aware); None means the present.
        principal: Who reads: what they may not read does not exist for this read; None: an unrestricted caller.
        reads_as: Further grants that include them, by the rules for their roles (``[rag.access] role_departments``).
        ranked_for: Whose department and roles move the order of results; it hides nothing.
        session: The hidden collection (its id) of the document session that the read belongs to; None: documents of
            sessions do not exist for this read.
    """

    tenant_id: int = DEFAULT_TENANT_ID
    as_of: datetime | None = None
    principal: Principal | None = None
    reads_as: tuple[str, ...] = ()
    ranked_for: Principal | None = None
    session: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A collection that is searched beside the scope's own ones: a session's, or another tenant's.

    Attributes:
        scope: As whom it is read.
        collection: Its name there.
        label: What replies call it.
    """

    scope: Scope
    collection: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a search looks; the scope says whose, who and when.

    Attributes:
        collections: By name; None: every collection that the scope may read.
        optional: Names among them that are empty, rather than an error, where there is no such collection.
        session: The hidden collection of a document session, searched before them; nothing of it is kept.
        shared: What other tenants share, searched behind them: left out where it was taken back or its tenant is
            suspended.
        remotes: What is searched at the same time, and fused with what is found here.
    """

    collections: tuple[str, ...] | None = ()
    optional: frozenset[str] = frozenset()
    session: Guest | None = None
    shared: tuple[Guest, ...] = ()
    remotes: tuple[Remote, ...] = ()

    @classmethod
    def of(cls, *collections: str) -> Target:
        """These collections, each of which must exist."""
        return cls(collections=collections)


# On whose behalf something is done: what is recorded of it, far below whoever knows, is recorded for them.


_TENANT: ContextVar[int] = ContextVar("recollect_asking_tenant", default=DEFAULT_TENANT_ID)


def asking_tenant() -> int:
    """The tenant whose data the calling thread or task has last read or written; the store's own where it has none."""
    return _TENANT.get()


def asked_for(scope: Scope) -> Scope:
    """Note whose data the calling thread or task reads or writes; returns the scope as it is."""
    _TENANT.set(scope.tenant_id)
    return scope
