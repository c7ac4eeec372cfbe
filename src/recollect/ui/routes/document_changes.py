"""What becomes of one document: how long it is found, deleted, restored, and erased with its receipt."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import Form
from starlette.responses import Response

from recollect.replies.erasure import erasure_receipt_json
from recollect.server.schemas.base import Number
from recollect.ui.editions import edition_of
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.visit import Visit, Visiting

router = page_router()

_Version = Annotated[int, Form(ge=1, le=2**31 - 2)]


@router.post("/documents/{document_id}/delete")
async def delete(visit: Visiting, document_id: Number, version: _Version) -> Response:
    """Close it, as it was when that was decided; it can be restored."""
    await visit.require("write", "ingest")
    await visit.run(visit.view.documents.delete, [document_id], if_version=version)
    return visit.go_to(f"/documents/{document_id}")


@router.post("/documents/{document_id}/lifetime")
async def set_lifetime(
    visit: Visiting, document_id: Number, lifetime: Annotated[str, Form(max_length=100)] = ""
) -> Response:
    """Say how long it is found from now on; nothing: for ever."""
    await visit.require("write", "ingest")

    def change() -> None:
        edition_of(visit, document_id)
        visit.view.documents.set_ttl(document_id, lifetime.strip() or None)

    await visit.run(change)
    return visit.go_to(f"/documents/{document_id}#facts-title")


@router.post("/documents/{document_id}/restore")
async def restore(visit: Visiting, document_id: Number, version: _Version) -> Response:
    """Make what a version said the newest version."""
    await visit.require("write", "ingest")
    await visit.run(visit.view.documents.restore, document_id, version)
    return visit.go_to(f"/documents/{document_id}")


@router.get("/documents/{document_id}/erase")
async def ask_before_erasing(visit: Visiting, document_id: Number) -> Response:
    """What erasing it means, and whether that is meant."""
    await visit.require("write", "search")
    return await _asked(visit, document_id)


@router.post("/documents/{document_id}/erase")
async def erase(
    visit: Visiting,
    document_id: Number,
    confirm: Annotated[str, Form(max_length=100)] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Remove it for good, once it has been confirmed, and show the receipt."""
    await visit.require("write", "ingest")
    if confirm.strip() != str(document_id):
        problem = visit.language.gettext("Nothing was erased: type the number of the document to confirm.")
        return await _asked(visit, document_id, reason=reason, problem=problem)
    receipt = await visit.run(visit.view.documents.erase, [document_id], reason=reason.strip() or None)
    written = json.dumps(erasure_receipt_json(receipt), indent=2)
    return visit.page("documents/erased.html", LIBRARY, receipt=receipt, written=written)


async def _asked(visit: Visit, document_id: int, *, reason: str = "", problem: str = "") -> Response:
    edition = await visit.run(edition_of, visit, document_id)
    assert edition.version is not None
    return visit.page(
        "documents/erase.html",
        LIBRARY,
        status=422 if problem else 200,
        tab="",
        edition=edition,
        title=edition.version.title,
        reason=reason,
        problem=problem,
    )
