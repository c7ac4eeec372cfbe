"""On whose behalf something is done: what is recorded of it, far below whoever knows, is recorded for them."""

from __future__ import annotations

from contextvars import ContextVar

from recollect.model.scope import DEFAULT_TENANT_ID, Scope

_TENANT: ContextVar[int] = ContextVar("recollect_asking_tenant", default=DEFAULT_TENANT_ID)


def asking_tenant() -> int:
    """The tenant whose data the calling thread or task has last read or written; the store's own where it has none."""
    return _TENANT.get()


def asked_for(scope: Scope) -> Scope:
    """Note whose data the calling thread or task reads or writes; returns the scope as it is."""
    _TENANT.set(scope.tenant_id)
    return scope
