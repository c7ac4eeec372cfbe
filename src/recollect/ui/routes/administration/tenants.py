"""Tenants, for whoever runs the store: made, limited, suspended and erased; and the policies of one's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, get_args

from fastapi import Form
from starlette.responses import Response

from recollect.errors import UsageError
from recollect.model.tenant import PersonalDataPolicy, Tenant, TenantQuota
from recollect.pipeline import View
from recollect.ui.routes.administration.asking import PAGE_SIZE, POLICIES, TENANTS, Cursor, shown
from recollect.ui.visit import Administering, Operating, Visit, page_router

router = page_router()

_Text = Annotated[str, Form(max_length=1_000)]
_POLICIES = get_args(PersonalDataPolicy)


@router.get(TENANTS.path)
async def tenants(visit: Operating, cursor: Cursor = None) -> Response:
    """By name."""
    page = await visit.run(lambda: _operator(visit).tenants.list(cursor=cursor or None, limit=PAGE_SIZE))
    return shown(visit, TENANTS, "tenants.html", tenants=page, next_cursor=page.next_cursor)


@router.post(TENANTS.path)
async def create(visit: Operating, name: _Text = "") -> Response:
    """Make one."""
    made = await visit.run(lambda: _operator(visit).tenants.create(name))
    return visit.go_to(f"{TENANTS.path}/{made.tenant_id}?told=made")


@router.get(f"{TENANTS.path}/{{tenant_id}}")
async def tenant(visit: Operating, tenant_id: int) -> Response:
    """What it stores, and how much it may."""
    found = await visit.run(lambda: _operator(visit).tenants.get(tenant_id))
    return shown(visit, TENANTS, "tenant.html", tenant=found, policies=_POLICIES, config=visit.service.rag.config)


@router.post(f"{TENANTS.path}/{{tenant_id}}")
async def change(
    visit: Operating,
    tenant_id: int,
    pii: _Text = "",
    max_documents: _Text = "",
    max_chunks: _Text = "",
    max_bytes: _Text = "",
) -> Response:
    """Say how much it may store, and what becomes of personal data."""
    if pii and pii not in _POLICIES:
        raise UsageError(f"The policy is one of {', '.join(_POLICIES)}.")
    policy: PersonalDataPolicy | None = next((one for one in _POLICIES if one == pii), None)
    quota = TenantQuota(max_documents=_limit(max_documents), max_chunks=_limit(max_chunks), max_bytes=_limit(max_bytes))

    def decide(now: Tenant) -> Tenant:
        return replace(now, pii=policy, quota=quota)

    await visit.run(lambda: _operator(visit).tenants.change(tenant_id, decide))
    return visit.go_to(f"{TENANTS.path}/{tenant_id}?told=changed")


@router.post(f"{TENANTS.path}/{{tenant_id}}/status")
async def set_status(
    visit: Operating, tenant_id: int, status: Annotated[Literal["active", "suspended"], Form()]
) -> Response:
    """Suspend or resume it."""
    view = _operator(visit)
    if status == "suspended" and tenant_id == visit.caller.tenant:
        raise UsageError("Who suspends the tenant of their own credential shuts themselves out: use the command line.")
    await visit.run(lambda: (view.tenants.suspend if status == "suspended" else view.tenants.resume)(tenant_id))
    return visit.go_to(f"{TENANTS.path}/{tenant_id}?told=changed")


@router.post(f"{TENANTS.path}/{{tenant_id}}/erase")
async def erase(visit: Operating, tenant_id: int, name: _Text = "", reason: _Text = "") -> Response:
    """Remove it with everything that is its; its name is typed again, because nothing brings it back."""
    view = _operator(visit)
    found = await visit.run(lambda: view.tenants.get(tenant_id))
    if name.strip() != found.name:
        raise UsageError("Type the tenant's name as it is: nothing brings back what is erased.")
    receipt = await visit.run(lambda: view.tenants.erase(tenant_id, reason=reason.strip() or None))
    return shown(visit, TENANTS, "tenant_erased.html", receipt=receipt)


def _operator(visit: Visit) -> View:
    """The view of whoever runs the store."""
    return visit.caller.owner(visit.service.rag)


def _limit(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text.strip())
    except ValueError:
        raise UsageError(f"A quota is a number, or nothing for any amount, not {text[:20]!r}.") from None


# What becomes of personal data, how long things are kept, and how much there may be.


@router.get(POLICIES.path)
async def policies(visit: Administering) -> Response:
    """The tenant's, as they are: its own, or those of the server's settings."""
    tenant = await visit.run(lambda: visit.administration.tenants.get(visit.caller.tenant))
    collections = await visit.run(_collections, visit.administration)
    config = visit.service.rag.config
    return shown(visit, POLICIES, "policies.html", tenant=tenant, collections=collections, config=config)


def _collections(view: View) -> list[tuple[str, int | None]]:
    """Every collection, with the days without use after which its documents are closed."""
    notes = view.collections.notes()
    return [
        (one.name, notes[one.collection_id].idle_days if one.collection_id in notes else None)
        for one in view.collections.each()
    ]


@router.post(f"{POLICIES.path}/expired")
async def close_expired(visit: Administering) -> Response:
    """Close the documents whose time is over, without waiting for the next clean-up."""
    await visit.run(visit.administration.maintenance.close_expired)
    return visit.go_to(f"{POLICIES.path}?told=cleaned")
