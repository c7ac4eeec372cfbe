"""``/v1/search``, ``/v1/ask``, ``/v1/context``, ``/v1/why-not``."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.model import RetrievalOptions
from recollect.pipeline import View
from recollect.replies.answers import AnswerJson, answer_json
from recollect.replies.contexts import AssembledContextJson, assembled_context_json
from recollect.replies.search import SearchReplyJson, search_reply_json
from recollect.replies.why_not import WhyNotJson, why_not_json
from recollect.server.answer_events import answer_events
from recollect.server.dependencies import Asking, Reader, streaming
from recollect.server.problems import documented
from recollect.server.schemas.retrieval import AskBody, ContextBody, SearchBody, WhyNotBody
from recollect.server.sse import MEDIA_TYPE, event_stream, wants_events

router = APIRouter(tags=["retrieval"], responses=documented(404))


@router.post("/search", summary="Find the passages that answer a query", response_model=SearchReplyJson)
def search(body: SearchBody, caller: Reader) -> Response:
    """As `recollect query --json`: best first, with offsets into the documents' contents."""
    view, options = body.searched(caller)
    reply = view.search(body.query, options)
    # Written here, where a thread is at it already: FastAPI would hand it to another one to look it through once more.
    return json_response(search_reply_json(reply, warnings=[] if reply.results else hints(view, options)))


@router.post("/context", summary="What a language model should read to answer a query")
def context(body: ContextBody, caller: Reader) -> AssembledContextJson:
    """As `recollect query --context --json`: numbered passages within a budget."""
    view, options = body.searched(caller)
    found = view.context(
        body.query, options, token_budget=body.token_budget, max_context_length=body.max_context_length
    )
    return assembled_context_json(
        body.query,
        found,
        collection=view.standpoint.searched_name,
        warnings=[] if found.blocks else hints(view, options),
    )


@router.post("/why-not", summary="Why a search misses a document")
def why_not(body: WhyNotBody, caller: Reader) -> WhyNotJson:
    """Where the document stands at every stage of the search, and what to change."""
    view, options = body.searched(caller)
    return why_not_json(view.why_not(body.query, body.document, options))


@router.post(
    "/ask",
    summary="Answer a question from the documents",
    response_model=AnswerJson,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}, **documented(502)},
)
async def ask(body: AskBody, caller: Reader, service: Asking, request: Request) -> Response | AnswerJson:
    """With citations, or a refusal.

    With `Accept: text/event-stream` it comes as it is written: `sources`, then `token` for each checked sentence,
    `citation` and `unsupported` behind the sentence that they belong to, and `done` with the whole answer.
    """
    view, options = body.searched(caller)
    if wants_events(request):
        return event_stream(
            answer_events(streaming(view, service).ask_events(body.question, options), explain=options.explain)
        )
    return await run_in_threadpool(lambda: _answered(view, body.question, options))


def _answered(view: View, question: str, options: RetrievalOptions) -> AnswerJson:
    answer = view.ask(question, options)
    return answer_json(answer, explain=options.explain, warnings=hints(view, options) if answer.refused else [])


def json_response(reply: object) -> Response:
    """A reply, written as it is."""
    return Response(to_json(reply, inf_nan_mode="null"), media_type="application/json")


def hints(view: View, options: RetrievalOptions) -> list[str]:
    """Why a search can have found nothing."""
    at = view.standpoint
    if (
        at.session is None
        and at.principal is None
        and not any(
            place.document_count for place in view.view(as_of=None).collections.list() if place.name in at.names
        )
    ):
        return [f"The collection {at.names[0]!r} is empty."]
    return view.documents.filter_hints(options)
