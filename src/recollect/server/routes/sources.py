"""``/v1/sources``: where documents come from: listed, added, refreshed and removed."""

from __future__ import annotations

from fastapi import APIRouter, Response

from recollect.model.job import Job
from recollect.model.source import SourceRecord
from recollect.operations.sources import SourceOperations
from recollect.server.bound import bind
from recollect.server.dependencies import Administrator, AdministratorCaller, Asking
from recollect.server.machine import require_machine
from recollect.server.problems import documented
from recollect.server.schemas.sources import RefreshBody, SourceBody

router = APIRouter(prefix="/sources", tags=["operation"], responses=documented(404))

bind(router, SourceOperations, lambda view: view.sources)


@router.post("", status_code=201, summary="Have a place outside read", responses=documented(409))
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


@router.post("/refresh", status_code=202, summary="Read a source anew")
def refresh(body: RefreshBody, caller: Administrator, response: Response) -> Job:
    """As `recollect sources refresh SOURCE --background`: a worker reads it; the job says what became of it."""
    job = body.of(caller).jobs.refresh(body.source, confirm_removals=body.confirm_removals, anew=body.anew)
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job
