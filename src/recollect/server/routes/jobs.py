"""``/v1/jobs``: work in the background, looked at, followed, stopped and tried again."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.model.record import json_of
from recollect.operations.jobs import JobOperations
from recollect.operations.values import Number
from recollect.pipeline import View
from recollect.server.admission import follow
from recollect.server.bound import bind
from recollect.server.dependencies import Asking, Reader
from recollect.server.problems import documented
from recollect.server.sse import documented_events, event_stream

router = APIRouter(prefix="/jobs", tags=["jobs"])
bind(router, JobOperations, lambda view: view.jobs)

# A job that moves is looked at so often; one that waits, less and less.
_LOOK_SECONDS = 0.2
_SELDOM_SECONDS = 2.0


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
    return event_stream(_followed(caller, job_id, json_of(first), last_event_id), identify=_id)


async def _followed(
    view: View, job_id: int, seen: Mapping[str, Any], last_event_id: str | None
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
        seen = json_of(await run_in_threadpool(view.jobs.get, job_id))


def _id(job: Mapping[str, Any]) -> str:
    """Of the job's state: whoever has seen it is not told again."""
    state = {key: value for key, value in job.items() if key != "arguments"}
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()[:20]
