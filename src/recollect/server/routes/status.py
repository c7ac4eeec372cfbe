"""``/v1/stats`` and ``/v1/requests``: what the store holds, how searches fare, and what providers were asked."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from recollect.operations.audit import RequestOperations
from recollect.operations.values import Name
from recollect.replies.status import CleanupJson, StatusJson, cleanup_json, status_json
from recollect.server.bound import bind
from recollect.server.dependencies import Operator, Reader
from recollect.server.problems import documented

router = APIRouter(tags=["operation"])


@router.get("/stats", summary="What the store holds", responses=documented(404))
def stats(
    caller: Reader, collection: Annotated[Name | None, Query(description="This one alone.")] = None
) -> StatusJson:
    """As `recollect status --json`, of what may be read, and how searches fare."""
    return status_json(caller.view(collections=collection).maintenance.status())


@router.post("/cleanup", summary="Close what has expired")
def cleanup(caller: Operator) -> CleanupJson:
    """As `recollect cleanup --json`: it is done every so many hours anyway. Partitions hold what all tenants have."""
    return cleanup_json(caller.maintenance.cleanup())


bind(router, RequestOperations, lambda view: view.audit)
