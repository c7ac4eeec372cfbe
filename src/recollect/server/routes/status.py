"""``/v1/stats`` and ``/v1/requests``: what the store holds, how searches fare, and what providers were asked."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from recollect.model.page import cursor_at
from recollect.operations.values import Name
from recollect.replies.requests import RequestStatsJson, logged_request_json, request_stats_json
from recollect.replies.status import CleanupJson, StatusJson, cleanup_json, status_json
from recollect.server.dependencies import Administrator, Operator, Reader
from recollect.server.pages import Paging, shown
from recollect.server.problems import documented
from recollect.server.schemas.administration import RequestPage
from recollect.server.schemas.base import Moment

router = APIRouter(tags=["operation"])

_Since = Annotated[Moment | None, Query(description="Only of this time or later.")]
_Until = Annotated[Moment | None, Query(description="Only before this time.")]


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


@router.get("/requests", summary="List what was asked of providers of models")
def requests(
    caller: Administrator,
    page: Paging,
    kind: Annotated[Literal["embed", "rerank", "answer"] | None, Query(description="Only of this kind.")] = None,
    failed: Annotated[bool, Query(description="Only those without a usable answer.")] = False,
    since: _Since = None,
    until: _Until = None,
) -> RequestPage:
    """What it took and what it cost, newest first; never what it said."""
    found, more = shown(
        caller.audit.requests(
            kind=kind, failed=failed, since=since, until=until, before=page.number(), limit=page.asked
        ),
        page,
    )
    return {
        "requests": [logged_request_json(one) for one in found],
        "next_cursor": cursor_at(found[-1].request_id) if more else None,
    }


@router.get("/requests/stats", summary="Sum requests to providers up")
def totals(caller: Administrator, since: _Since = None, until: _Until = None) -> RequestStatsJson:
    """By kind and model."""
    return request_stats_json(caller.audit.request_totals(since=since, until=until))
