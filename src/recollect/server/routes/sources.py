"""``/v1/sources``: where documents come from: listed, added, refreshed and removed."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from recollect.model.job import Job
from recollect.operations.values import Name, Text
from recollect.replies.sources import (
    RemovedSourceJson,
    SourceJson,
    SourceListJson,
    removed_source_json,
    source_json,
    source_list_json,
)
from recollect.server.dependencies import Administrator, AdministratorCaller, Asking
from recollect.server.machine import require_machine
from recollect.server.problems import documented
from recollect.server.schemas.sources import RefreshBody, SourceBody

router = APIRouter(prefix="/sources", tags=["operation"], responses=documented(404))

_Collection = Annotated[Name | None, Query(description="Of this one; left out: of the configured one.")]


@router.get("", summary="List where documents come from")
def sources(
    caller: Administrator,
    collection: _Collection = None,
    everywhere: Annotated[bool, Query(description="Of all collections.")] = False,
) -> SourceListJson:
    """As `recollect sources list --json`, with how the last refresh of each went."""
    return source_list_json(caller.view(collections="*" if everywhere else collection).sources.list())


@router.post("", status_code=201, summary="Have a place outside read", responses=documented(409))
def add(body: SourceBody, caller: AdministratorCaller, service: Asking) -> SourceJson:
    """As `recollect sources add --no-refresh --json`. Nothing is contacted before it is refreshed.

    Folders of the server's machine, and what is read with its credentials, need a key of whoever runs the server
    (`operator`).
    """
    require_machine(caller, body.location, connector=body.connector, settings=body.settings)
    record = body.of(caller.administration(service.rag)).sources.add(
        body.location,
        connector=body.connector,
        name=body.name,
        settings=body.settings,
        every=body.every,
        metadata=body.metadata,
    )
    return source_json(record)


@router.post("/refresh", status_code=202, summary="Read a source anew")
def refresh(body: RefreshBody, caller: Administrator, response: Response) -> Job:
    """As `recollect sources refresh SOURCE --background`: a worker reads it; the job says what became of it."""
    job = body.of(caller).jobs.refresh(body.source, confirm_removals=body.confirm_removals, anew=body.anew)
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job


@router.delete("", summary="Have a source read no longer")
def remove(
    caller: Administrator,
    source: Annotated[Text, Query(min_length=1, max_length=10_000, description="By its name.")],
    collection: _Collection = None,
    documents: Annotated[
        Literal["close", "keep", "erase"], Query(description="What becomes of what was read of it.")
    ] = "close",
) -> RemovedSourceJson:
    """As `recollect sources remove --json`."""
    done = caller.view(collections=collection).sources.remove(source, documents=documents)
    return removed_source_json(source, done, erased=documents == "erase")
