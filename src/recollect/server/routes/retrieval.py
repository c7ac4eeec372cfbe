"""``/v1/search``, ``/v1/ask``, ``/v1/context``, ``/v1/why-not`` and ``/v1/streams``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request, Security
from pydantic_core import to_json
from starlette.responses import Response

from recollect.context import RetrievalWeights
from recollect.model import Answer, RetrievalOptions, SearchReply
from recollect.model.contents import DocumentEntry, GrepReply
from recollect.model.history import EvidenceDiff
from recollect.model.page import Page
from recollect.pipeline import View
from recollect.pipeline.standpoint import EVERY_COLLECTION
from recollect.replies.contexts import (
    AssembledContextJson,
    ContextAssemblyJson,
    assembled_context_json,
    context_assembly_json,
)
from recollect.replies.retrieval import SearchHintsJson, WhyNotJson, shown_answer, why_not_json
from recollect.server.admission import hand_over
from recollect.server.bodies import (
    AskBody,
    AssemblyBody,
    ContextBody,
    DiffBody,
    EntriesBody,
    GrepBody,
    SearchBody,
    SearchOptions,
    Viewpoint,
    WhyNotBody,
)
from recollect.server.caller import Caller
from recollect.server.dependencies import Asking, Reader, asking, service_of, streaming
from recollect.server.direct import DirectRoute
from recollect.server.problems import documented
from recollect.server.searches import while_connected
from recollect.server.sse import (
    ANSWER_EVENTS,
    KeepStream,
    answer_events,
    answer_response,
    documented_events,
    wants_events,
)

router = APIRouter(tags=["retrieval"], responses=documented(404))


@router.post("/search", summary="Find the passages that answer a query", response_model=SearchReply)
async def search(body: SearchBody, caller: Reader, request: Request) -> Response:
    """As `recollect query --json`: best first, with offsets into the documents' contents."""
    return await service_of(request).searches.run(request, _found, caller, body)


#: Searches are what most requests are: their way is short.
direct = DirectRoute("/v1/search", SearchBody, search)


def _found(caller: View, body: SearchBody) -> Response:
    view, options = body.searched(caller)
    reply = view.search(body.query, options)
    # Written here, where a thread is at it already: FastAPI would hand it to another one to look it through once more.
    return json_response(reply if reply.results else replace(reply, warnings=(*reply.warnings, *hints(view, options))))


@router.post("/search/hints", summary="Why filters find nothing")
def search_hints(body: SearchOptions, caller: Reader) -> SearchHintsJson:
    """What a search with these options would be told where it finds nothing, such as a tag that no document has."""
    view, options = body.of(caller), body.options()
    return {"warnings": view.documents.filter_hints(options)}


@router.post("/grep", summary="Find exact text, or what a regular expression matches")
async def grep(body: GrepBody, caller: Reader, service: Asking, request: Request) -> GrepReply:
    """Wherever it stands. Documents are looked at by their id; the reply says where to go on."""
    asked = body.model_dump(include=GrepBody.model_fields.keys() - Viewpoint.model_fields.keys())
    return await service.searches.run(request, lambda: body.of(caller).contents.grep(**asked))


@router.post("/contents", summary="List the documents that a search looks into")
def contents(body: EntriesBody, caller: Reader) -> Page[DocumentEntry]:
    """By id, as they were known at the moment of the request."""
    return body.of(caller).contents.list(
        name=body.name, department=body.department, cursor=body.cursor, limit=body.limit
    )


@router.post("/context", summary="What a language model should read to answer a query")
async def context(body: ContextBody, caller: Reader, service: Asking, request: Request) -> AssembledContextJson:
    """As `recollect query --context --json`: numbered passages within a budget."""
    return await service.searches.run(request, _assembled, caller, body)


def _assembled(caller: View, body: ContextBody) -> AssembledContextJson:
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


@router.post("/context/assembly", summary="What a language model should read of documents, conversations and facts")
async def assembly(body: AssemblyBody, caller: Reader, service: Asking, request: Request) -> ContextAssemblyJson:
    """As `recollect context --json`: numbered passages of all of them within one budget."""
    return await service.searches.run(request, _put_together, caller, body)


def _put_together(caller: View, body: AssemblyBody) -> ContextAssemblyJson:
    view, weights = body.of(caller), body.weights
    assembler = view.memory.assembler(
        weights=None if weights is None else RetrievalWeights(weights.rag, weights.memory),
        min_relevance=body.min_relevance,
    )
    found = assembler.assemble(body.query, body.strategy, body.token_budget, body.session)
    warnings = [] if found.passages else hints(view, RetrievalOptions())
    return context_assembly_json(body.query, found, explain=body.explain, warnings=warnings)


@router.post("/diff", summary="How the evidence for a question changed")
async def diff(body: DiffBody, caller: Reader, service: Asking, request: Request) -> EvidenceDiff:
    """As `recollect diff --json`: what came, went, changed and stayed from one moment to another."""
    return await service.searches.run(request, _changed, caller, body)


def _changed(caller: View, body: DiffBody) -> EvidenceDiff:
    view, options = body.searched(caller)
    return view.documents.diff_evidence(body.question, from_time=body.from_, to_time=body.to, options=options)


@router.post("/why-not", summary="Why a search misses a document")
async def why_not(body: WhyNotBody, caller: Reader, service: Asking, request: Request) -> WhyNotJson:
    """Where the document stands at every stage of the search, and what to change."""
    return await service.searches.run(request, _missed, caller, body)


def _missed(caller: View, body: WhyNotBody) -> WhyNotJson:
    view, options = body.searched(caller)
    return why_not_json(view.why_not(body.query, body.document, options))


@router.post(
    "/ask",
    summary="Answer a question from the documents",
    response_model=Answer,
    responses={200: {"content": documented_events(*ANSWER_EVENTS)}, **documented(502)},
)
async def ask(
    body: AskBody, caller: Reader, service: Asking, request: Request, keep: KeepStream = None
) -> Response | Answer:
    """With citations; without an exact answer, with passages that may help, or with nothing: `outcome` says which.

    With `Accept: text/event-stream` it comes as it is written: `outcome`, `sources`, then `token` for each checked
    sentence, `citation` and `unsupported` behind the sentence that they belong to, each `passage`, and `done` with the
    whole answer. Where a language model writes, `outcome` comes after `sources`, before the first `token`. With
    `Recollect-Keep-Stream` the stream can be gone on with after its connection broke.
    """
    view, options = body.searched(caller)
    if wants_events(request):
        # Whoever comes back for the rest is a program that shows all there is, as the library does.
        explain = options.explain or keep is not None
        events = answer_events(streaming(view, service).ask_events(body.question, options), explain=explain)
        return answer_response(service.kept, events, partial(hand_over, request), seconds=keep)
    # Whoever goes away meanwhile ends the model's work, as of a stream.
    return await while_connected(request, service.streams.run(_answered, view, body.question, options))


def _answered(view: View, question: str, options: RetrievalOptions) -> Answer:
    answer = view.ask(question, options)
    return shown_answer(
        answer, explain=options.explain, warnings=hints(view, options) if answer.outcome == "none" else []
    )


def json_response(reply: object) -> Response:
    """A reply, written as it is."""
    return Response(to_json(reply, inf_nan_mode="null"), media_type="application/json")


def hints(view: View, options: RetrievalOptions) -> list[str]:
    """Why a search can have found nothing."""
    at = view.standpoint
    if at.session is not None:  # whose documents have tags of their own, which are not counted
        return []
    everywhere = EVERY_COLLECTION in at.names
    if at.principal is None and not any(
        place.document_count
        for place in view.view(as_of=None).collections.each()
        if everywhere or place.name in at.names
    ):
        return ["Every collection is empty." if everywhere else f"The collection {at.names[0]!r} is empty."]
    return view.documents.filter_hints(options)


# `/v1/streams`: answers whose connection broke, gone on with.


_Reader = Annotated[Caller, Security(asking, scopes=["read"])]


_Stream = Annotated[str, Path(max_length=100, description="`Recollect-Stream` of the response that broke off.")]


@router.get(
    "/streams/{stream}",
    summary="Go on with an answer",
    response_class=Response,
    responses={
        200: {"content": documented_events(*ANSWER_EVENTS), "description": "What had not come of it."},
        **documented(409),
    },
)
async def resume(
    stream: _Stream,
    caller: _Reader,
    service: Asking,
    last_event_id: Annotated[int, Header(ge=0, le=2**53, description="Goes on behind this event.")] = 0,
) -> Response:
    """One that was asked for with `Recollect-Keep-Stream`, by whoever asked for it, in the process that writes it."""
    return service.kept.resume(stream, caller, last_event_id)


@router.delete("/streams/{stream}", status_code=204, summary="End an answer")
async def end(stream: _Stream, caller: _Reader, service: Asking) -> None:
    """Nobody waits for it any more: the model stops."""
    service.kept.end(stream, caller)
