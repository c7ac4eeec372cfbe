"""``/v1/recall`` and ``/v1/facts``: what conversations said, and what was drawn from them."""

from __future__ import annotations

from fastapi import APIRouter, Request

from recollect.operations.facts import FactOperations
from recollect.pipeline import View
from recollect.replies.facts import FactSearchJson
from recollect.replies.memory import RecallJson
from recollect.server.bound import bind
from recollect.server.dependencies import Asking, Reader
from recollect.server.problems import documented
from recollect.server.schemas.conversations import FactSearchBody, RecallBody

router = APIRouter(tags=["conversations"])


@router.post("/recall", summary="Find what was said", responses=documented(404))
async def recall(body: RecallBody, caller: Reader, service: Asking, request: Request) -> RecallJson:
    """As `recollect recall --json`: the turns that answer, with those around them."""
    return await service.searches.run(request, _recalled, caller, body)


def _recalled(caller: View, body: RecallBody) -> RecallJson:
    found = body.of(caller).recall(body.query, body.options())
    return {"query": body.query, "mode": body.mode, "results": found}


@router.post("/facts/search", summary="Find facts", responses=documented(404))
async def search(body: FactSearchBody, caller: Reader, service: Asking, request: Request) -> FactSearchJson:
    """Those that answer a question, with the words that they rest on."""
    return await service.searches.run(request, _found, caller, body)


def _found(caller: View, body: FactSearchBody) -> FactSearchJson:
    found = body.of(caller).facts.search(body.query, body.options())
    return {"query": body.query, "mode": body.mode, "results": found}


bind(router, FactOperations, lambda view: view.facts)
