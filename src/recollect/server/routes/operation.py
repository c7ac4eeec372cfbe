"""``/v1/sources``, ``/v1/jobs``, ``/v1/stats``, ``/v1/cleanup`` and ``/v1/requests``: how the store is kept up."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from recollect.model.job import Job
from recollect.model.record import json_of
from recollect.model.source import SourceRecord
from recollect.operations.collections import SourceOperations
from recollect.operations.jobs import JobOperations, MaintenanceOperations
from recollect.operations.people import RequestOperations
from recollect.operations.values import Name, Number, Text
from recollect.pipeline import View
from recollect.server.admission import follow
from recollect.server.bodies import Body
from recollect.server.bound import bind
from recollect.server.caller import require_machine
from recollect.server.dependencies import Administrator, AdministratorCaller, Asking, Reader
from recollect.server.problems import documented
from recollect.server.sse import documented_events, event_stream

# A job that moves is looked at so often; one that waits, less and less.
_LOOK_SECONDS = 0.2
_SELDOM_SECONDS = 2.0


_MAX_CHARACTERS = 10_000


class _OfCollection(Body):
    """Whose sources."""

    collection: Name | None = Field(None, description="The collection; left out: the configured one.")

    def of(self, view: View) -> View:
        """The view of the collection."""
        return view.view(collections=self.collection)


class SourceBody(_OfCollection):
    """A place outside that is to be read; the fields are the options of `recollect sources add`."""

    location: Text = Field(
        min_length=1,
        max_length=_MAX_CHARACTERS,
        description="s3://BUCKET/PREFIX, imaps://USER@HOST, a repository, a site, or a folder of the server's machine "
        "by its whole path.",
    )
    connector: Name | None = Field(None, description="What reads it; left out: what the location looks like.")
    name: Text | None = Field(
        None, min_length=1, max_length=_MAX_CHARACTERS, description="What it is called; left out: the location."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, max_length=100, description="The connector's. Credentials: env:NAME, of the server."
    )
    every: Text | None = Field(
        None, max_length=100, description="How often a worker refreshes it: 15m, 6h, 1d; left out: when it is asked."
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        max_length=100,
        description="Given to every document of the source that does not have the key itself.",
    )


class RefreshBody(_OfCollection):
    """A source that is to be read anew."""

    source: Text = Field(min_length=1, max_length=_MAX_CHARACTERS, description="By its name.")
    confirm_removals: bool = Field(False, description="Close what has gone, however much it is.")
    anew: bool = Field(False, description="Look at every item, not only at what changed since the last time.")


router = APIRouter(tags=["operation"])


bind(router, SourceOperations, lambda view: view.sources)


@router.post("/sources", status_code=201, summary="Have a place outside read", responses=documented(404, 409))
def add(body: SourceBody, caller: AdministratorCaller, service: Asking) -> SourceRecord:
    """As `recollect sources add --no-refresh --json`. Nothing is contacted before it is refreshed.

    Folders of the server's machine, and what is read with its credentials, need a key of whoever runs the server
    (`operator`).
    """
    require_machine(caller, body.location, connector=body.connector, settings=body.settings)
    return body.of(caller.administration(service.rag)).sources.add(
        body.location,
        connector=body.connector,
        name=body.name,
        settings=body.settings,
        every=body.every,
        metadata=body.metadata,
    )


@router.post("/sources/refresh", status_code=202, summary="Read a source anew", responses=documented(404))
def refresh(body: RefreshBody, caller: Administrator, response: Response) -> Job:
    """As `recollect sources refresh SOURCE --background`: a worker reads it; the job says what became of it."""
    job = body.of(caller).jobs.refresh(body.source, confirm_removals=body.confirm_removals, anew=body.anew)
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job


# `/v1/jobs`: work in the background, looked at, followed, stopped and tried again.

jobs = APIRouter(tags=["jobs"])


bind(jobs, JobOperations, lambda view: view.jobs)


@jobs.get(
    "/jobs/{job_id}/events",
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


# `/v1/stats`, `/v1/cleanup` and `/v1/requests`: what the store holds, and what providers were asked.

bind(router, MaintenanceOperations, lambda view: view.maintenance)


bind(router, RequestOperations, lambda view: view.audit)
