"""``/api``: what clients of earlier assistants expect: one question, streamed, totals, and documents read anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, cast

from fastapi import APIRouter, Query, Request
from pydantic import AliasChoices, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from typing_extensions import TypedDict

from recollect.errors import NotFoundError
from recollect.ingest.report import FileError
from recollect.model.search_options import MAX_QUERY_CHARACTERS
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.pipeline.chat import Conversation
from recollect.pipeline.refreshing import known_roots
from recollect.server.bodies import Body
from recollect.server.dependencies import Administrator, Asking, Reader
from recollect.server.openai.errors import RefusedRequestError
from recollect.server.openai.models import Choice, chosen
from recollect.server.problems import documented
from recollect.server.searches import while_connected
from recollect.server.sse import ANSWER_EVENTS, answer_events, documented_events, event_stream

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent

_NAMED = 100

router = APIRouter(prefix="/api", tags=["assistant"], responses=documented(400, 401, 403, 422, 429, 500, 503))


class AssistantChatBody(Body):
    """A question."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    model: Name | None = Field(
        None,
        description="A collection, COLLECTION@MODEL, or a language model; left out: what is configured.",
    )


class RagStatsJson(TypedDict):
    """What may be read."""

    total_chunks: int
    total_documents: int
    departments: dict[str, int]
    """Chunks by department; documents of none count under the empty name."""
    embedding_dimension: int


class SkippedSourceJson(TypedDict):
    """A source that was not there to be read."""

    source: str
    reason: str


class ReloadStatsJson(RagStatsJson):
    """What may be read now, and what was done; what was done is left out where jobs do it."""

    read: NotRequired[list[str]]
    """The folders, sites and sources that were read."""
    added: NotRequired[int]
    updated: NotRequired[int]
    removed: NotRequired[int]
    unchanged: NotRequired[int]
    failed: NotRequired[list[FileError]]
    """Files that could not be read or stored: the first hundred."""
    skipped: NotRequired[list[SkippedSourceJson]]
    """Folders that are not there, and why they were not read; their documents stay."""
    jobs: NotRequired[list[int]]
    """The jobs that read."""


class ReloadedJson(TypedDict):
    """That everything was read anew."""

    status: Literal["reloaded", "queued"]
    stats: ReloadStatsJson


@router.post(
    "/chat",
    summary="Answer a question, as Server-Sent Events",
    response_class=Response,
    responses={
        200: {"content": documented_events(*ANSWER_EVENTS), "description": "The answer as it comes."},
        **documented(404, 502),
    },
)
async def chat(body: AssistantChatBody, caller: Reader, service: Asking) -> Response:
    """The events are those of `/v1/ask`. Department and role are those of the credential."""
    choice = await run_in_threadpool(_chosen, caller, body.model)
    view = caller if choice is None else caller.view(collections=choice.collection or "*")

    def ask() -> Iterator[AskEvent]:
        return Conversation(view, history=(), model=None if choice is None else choice.model).ask(body.query)

    return event_stream(answer_events(service.streams.stream(ask)))


@router.get("/rag/stats", summary="Totals of what may be read")
def stats(caller: Reader) -> RagStatsJson:
    """Of all collections."""
    return _stats(caller)


@router.post(
    "/rag/reload",
    summary="Read known folders, sites and sources anew",
    responses={202: {"model": ReloadedJson, "description": "Jobs read them."}, **documented(502)},
)
async def reload(
    caller: Administrator,
    service: Asking,
    request: Request,
    response: Response,
    background: Annotated[bool, Query(description="Have jobs read them, and reply at once.")] = False,
) -> ReloadedJson:
    """Every folder that was ingested or is watched, every site, every source. What is unchanged costs no embedding.

    Replies when all of them have been read; `stats` says what was read, changed and skipped.
    """
    everywhere = caller.view(collections="*")

    def anew() -> ReloadStatsJson:
        if background:
            roots = known_roots([*everywhere.sources.each()])
            jobs = [caller.view(collections=one.collection).jobs.refresh(one.name).job_id for one in roots]
            return cast("ReloadStatsJson", {**_stats(caller), "jobs": jobs})
        done = everywhere.sources.refresh_all()
        told = {
            "read": list(done.read),
            **{name: getattr(done.files, name) for name in ("added", "updated", "removed", "unchanged")},
            "failed": [{"path": one.path, "error": one.error} for one in done.files.errors[:_NAMED]],
            "skipped": [{"source": one.path, "reason": one.error} for one in done.skipped],
        }
        return cast("ReloadStatsJson", {**_stats(caller), **told})

    stats = await while_connected(request, service.streams.run(anew))
    response.status_code = 202 if background else 200
    return {"status": "queued" if background else "reloaded", "stats": stats}


def _stats(view: View) -> RagStatsJson:
    found = view.maintenance.status()
    return {
        "total_chunks": found.total_chunks,
        "total_documents": found.total_documents,
        "departments": dict(found.departments),
        "embedding_dimension": found.embedding_dimension,
    }


def _chosen(view: View, name: str | None) -> Choice | None:
    try:
        return None if name is None else chosen(view, name)
    except RefusedRequestError as exc:
        raise NotFoundError(str(exc)) from exc
