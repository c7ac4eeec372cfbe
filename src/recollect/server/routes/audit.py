"""``/v1/audit``: what was done, by whom and when, in a chain that shows whether it was changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from recollect.model.page import cursor_at
from recollect.operations.values import Name
from recollect.replies.accesses import access_json
from recollect.replies.audit import AuditVerificationJson, audit_record_json, audit_verification_json
from recollect.server.dependencies import Administrator
from recollect.server.downloads import LinesResponse
from recollect.server.pages import Paging, shown
from recollect.server.schemas.administration import AccessPage, AuditPage
from recollect.server.schemas.base import Moment

router = APIRouter(prefix="/audit", tags=["people and rights"])

_Action = Annotated[Name | None, Query(description="Only of this kind: erase, restore, forget, …")]
_Since = Annotated[Moment | None, Query(description="Only of this time or later.")]
_Until = Annotated[Moment | None, Query(description="Only before this time.")]


@router.get("", summary="List what was done")
def audit(
    caller: Administrator, page: Paging, action: _Action = None, since: _Since = None, until: _Until = None
) -> AuditPage:
    """Newest first."""
    found, more = shown(
        caller.audit.list(action=action, since=since, until=until, before=page.number(), limit=page.asked), page
    )
    return {
        "entries": [audit_record_json(one) for one in found],
        "next_cursor": cursor_at(found[-1].audit_id) if more else None,
    }


@router.get("/accesses", summary="List what was asked, and which documents were shown to whom")
def accesses(
    caller: Administrator,
    page: Paging,
    document: Annotated[
        int | None, Query(ge=1, lt=2**63, description="Only where the document of this id was shown.")
    ] = None,
    actor: Annotated[Name | None, Query(description="Only of this one, for instance user:ann.")] = None,
    since: _Since = None,
    until: _Until = None,
) -> AccessPage:
    """Newest first, requests that changed something among them."""
    found, more = shown(
        caller.audit.accesses(
            document=document, actor=actor, since=since, until=until, before=page.number(), limit=page.asked
        ),
        page,
    )
    return {
        "accesses": [access_json(one) for one in found],
        "next_cursor": cursor_at(found[-1].access_id) if more else None,
    }


@router.get("/verification", summary="Follow the audit's chain")
def verification(caller: Administrator) -> AuditVerificationJson:
    """From end to end: whether an entry was changed, removed or put in."""
    return audit_verification_json(caller.audit.verify())


@router.get(
    "/export",
    summary="Export the audit",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}},
)
def export(
    caller: Administrator, action: _Action = None, since: _Since = None, until: _Until = None
) -> StreamingResponse:
    """As JSON Lines with its hashes, oldest first, so that others can verify it without the store."""
    return LinesResponse(caller.audit.export(action=action, since=since, until=until))
