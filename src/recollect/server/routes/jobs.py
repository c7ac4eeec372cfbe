"""``/v1/jobs``: work in the background, looked at, followed, stopped and tried again."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.model.job import JobStatus
from recollect.pipeline import View
from recollect.replies.cursors import cursor_at
from recollect.replies.jobs import JobJson, job_json
from recollect.server.admission import follow
from recollect.server.dependencies import Asking, Reader, Writer
from recollect.server.pages import Paging, shown
from recollect.server.problems import documented
from recollect.server.schemas.base import Name, Number
from recollect.server.schemas.documents import JobPage
from recollect.server.sse import documented_events, event_stream

router = APIRouter(prefix="/jobs", tags=["jobs"])

# A job that moves is looked at so often; one that waits, less and less.
_LOOK_SECONDS = 0.2
_SELDOM_SECONDS = 2.0


@router.get("", summary="List jobs")
def jobs(
    caller: Reader,
    page: Paging,
    status: Annotated[JobStatus | None, Query()] = None,
    kind: Annotated[Name | None, Query(description="For instance `ingest_url`.")] = None,
    source: Annotated[Name | None, Query(description="Only those that change documents of this source.")] = None,
    collection: Annotated[Name | None, Query(description="Only those that write there.")] = None,
) -> JobPage:
    """As `recollect jobs list --json`, newest first: a user's own, and to the owner of the store the tenant's."""
    looked_up = caller.view(collections=collection).jobs.list(
        status=status, kind=kind, source=source, before=page.number() or None, limit=page.asked
    )
    found, more = shown(looked_up, page)
    return {"jobs": [job_json(job) for job in found], "next_cursor": cursor_at(found[-1].job_id) if more else None}


@router.get("/{job_id}", summary="Show a job", responses=documented(404))
def show(job_id: Number, caller: Reader) -> JobJson:
    """As it is at this moment."""
    return job_json(caller.jobs.get(job_id))


@router.get(
    "/{job_id}/events",
    summary="Follow a job",
    response_class=Response,
    responses={
        200: {"content": documented_events("job", "done", "error"), "description": "`job`, until it ends."},
        **documented(404),
    },
)
async def events(
    job_id: Number,
    caller: Reader,
    service: Asking,
    request: Request,
    last_event_id: Annotated[str | None, Header(max_length=100, description="Goes on behind this one.")] = None,
) -> Response:
    """An event `job` with the job as it is, and one whenever it has come further; the last is `done`.

    Only looked at, never run: that is for workers.
    """
    follow(request, service.limits)
    first = await run_in_threadpool(caller.jobs.get, job_id)
    return event_stream(_followed(caller, job_id, job_json(first), last_event_id), identify=_id)


@router.post("/{job_id}/cancel", summary="Cancel a job", responses=documented(404))
def cancel(job_id: Number, caller: Writer) -> JobJson:
    """One that waits does not run; one that runs ends at its next document. One that has ended is left as it is."""
    return job_json(caller.jobs.cancel(job_id))


@router.post("/{job_id}/retry", summary="Try a job again", responses=documented(404, 409))
def retry(job_id: Number, caller: Writer) -> JobJson:
    """One that has failed or was cancelled, with as many attempts as at first."""
    return job_json(caller.jobs.retry(job_id))


async def _followed(
    view: View, job_id: int, seen: JobJson, last_event_id: str | None
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    told, wait = last_event_id, _LOOK_SECONDS
    while True:
        if _id(seen) != told:
            told, wait = _id(seen), _LOOK_SECONDS
            yield "done" if seen["finished_at"] else "job", seen
        if seen["finished_at"]:
            return
        await asyncio.sleep(wait)
        wait = min(wait * 1.5, _SELDOM_SECONDS)
        seen = job_json(await run_in_threadpool(view.jobs.get, job_id))


def _id(job: Mapping[str, Any]) -> str:
    """Of the job's state: whoever has seen it is not told again."""
    state = {key: value for key, value in job.items() if key != "arguments"}
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:20]
