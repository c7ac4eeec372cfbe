"""What becomes of personal data, how long things are kept, and how much there may be."""

from __future__ import annotations

from starlette.responses import Response

from recollect.pipeline import View
from recollect.ui.page_route import page_router
from recollect.ui.routes.administration.asking import POLICIES, Administering, shown

router = page_router()


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
        for one in view.collections.list()
    ]


@router.post(f"{POLICIES.path}/expired")
async def close_expired(visit: Administering) -> Response:
    """Close the documents whose time is over, without waiting for the next clean-up."""
    await visit.run(visit.administration.maintenance.close_expired)
    return visit.go_to(f"{POLICIES.path}?told=cleaned")
