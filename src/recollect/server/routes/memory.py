"""``/v1/recall`` and ``/v1/facts``: what conversations said, and what was drawn from them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from recollect.model.facts import ConsolidationReport
from recollect.model.page import cursor_at
from recollect.operations.values import Name
from recollect.pipeline import View
from recollect.replies.facts import (
    FactHistoryJson,
    FactJson,
    FactSearchJson,
    fact_history_json,
    fact_json,
    fact_search_json,
)
from recollect.replies.memory import RecallJson, recall_json
from recollect.server.dependencies import Asking, Reader, Writer
from recollect.server.pages import Paging, shown
from recollect.server.problems import documented
from recollect.server.schemas.base import Moment
from recollect.server.schemas.conversations import ConsolidationBody, FactPage, FactSearchBody, RecallBody

router = APIRouter(tags=["conversations"])

_Number = Annotated[int, Path(ge=1, le=2**63 - 1, description="Its number.")]
_AsOf = Annotated[Moment | None, Query(description="As it was known at this time (without a zone: UTC).")]


@router.post("/recall", summary="Find what was said", responses=documented(404))
async def recall(body: RecallBody, caller: Reader, service: Asking, request: Request) -> RecallJson:
    """As `recollect recall --json`: the turns that answer, with those around them."""
    return await service.searches.run(request, _recalled, caller, body)


def _recalled(caller: View, body: RecallBody) -> RecallJson:
    found = body.of(caller).recall(body.query, body.options())
    return recall_json(body.query, found, mode=body.mode)


@router.get("/facts", summary="List facts", responses=documented(404))
def facts(
    caller: Reader,
    page: Paging,
    user: Annotated[Name | None, Query(description="Only from this user's conversations.")] = None,
    session: Annotated[Name | None, Query(description="Only from this conversation.")] = None,
    superseded: Annotated[
        bool, Query(alias="all", description="Also those that others have taken the place of.")
    ] = False,
    as_of: _AsOf = None,
) -> FactPage:
    """What was said last first."""
    view = caller.view(user=user, session=session, as_of=as_of)
    found, more = shown(
        view.facts.list(superseded=superseded, limit=page.asked, offset=page.offset(), after=page.moment()), page
    )
    return {
        "facts": [fact_json(fact) for fact in found],
        "next_cursor": cursor_at([found[-1].said_at.isoformat(), found[-1].fact_id]) if more else None,
    }


@router.post("/facts/search", summary="Find facts", responses=documented(404))
async def search(body: FactSearchBody, caller: Reader, service: Asking, request: Request) -> FactSearchJson:
    """Those that answer a question, with the words that they rest on."""
    return await service.searches.run(request, _found, caller, body)


def _found(caller: View, body: FactSearchBody) -> FactSearchJson:
    found = body.of(caller).facts.search(body.query, body.options())
    return fact_search_json(body.query, found, mode=body.mode)


@router.post("/facts/consolidate", summary="Draw facts from what is asked for again and again")
def consolidate(body: ConsolidationBody, caller: Writer) -> ConsolidationReport:
    """Each turn is looked at once. Without a language model, sentences that state something become facts."""
    view = caller.view(user=body.user)
    return view.facts.consolidate(min_retrievals=body.min_retrievals, limit=body.limit)


@router.get("/facts/{fact:int}", summary="Show a fact", responses=documented(404))
def show(fact: _Number, caller: Reader, as_of: _AsOf = None) -> FactJson:
    """With the words that it rests on."""
    return fact_json(caller.view(as_of=as_of).facts.get(fact))


@router.get("/facts/{fact:int}/history", summary="Follow a fact through time", responses=documented(404))
def history(fact: _Number, caller: Reader, as_of: _AsOf = None) -> FactHistoryJson:
    """What was said of the same before and after, the earliest first."""
    return fact_history_json(fact, caller.view(as_of=as_of).facts.history(fact))


@router.delete("/facts/{fact:int}", status_code=204, summary="Remove a fact", responses=documented(404))
def delete(fact: _Number, caller: Writer) -> None:
    """The turns that it rests on stay, and what it superseded is current again."""
    caller.facts.delete(fact)
