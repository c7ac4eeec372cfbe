"""``/v1/audit``: what was done, by whom and when, in a chain that shows whether it was changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from recollect.operations.audit import AuditOperations
from recollect.operations.values import Name, Time
from recollect.server.bound import bind
from recollect.server.dependencies import Administrator
from recollect.server.downloads import LinesResponse

router = APIRouter(prefix="/audit", tags=["people and rights"])
bind(router, AuditOperations, lambda view: view.audit)


@router.get(
    "/export",
    summary="Export the audit",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {"schema": {"type": "string"}}}}},
)
def export(
    caller: Administrator,
    action: Annotated[Name | None, Query(description="Only of this kind: erase, restore, forget, …")] = None,
    since: Annotated[Time | None, Query(description="Only of this time or later.")] = None,
    until: Annotated[Time | None, Query(description="Only before this time.")] = None,
) -> StreamingResponse:
    """As JSON Lines with its hashes, oldest first, so that others can verify it without the store."""
    return LinesResponse(caller.audit.export(action=action, since=since, until=until))
