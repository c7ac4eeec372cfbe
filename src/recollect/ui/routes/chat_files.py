"""Files that are dropped into a conversation: read by jobs, and found in that conversation alone."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field
from starlette.responses import Response

from recollect.model.original import Original
from recollect.server.forms import received_form
from recollect.server.schemas.base import Name
from recollect.ui.conversation import Talk
from recollect.ui.page_route import page_router
from recollect.ui.session_files import files_of, place_for_files
from recollect.ui.visit import Visit, Visiting

router = page_router()

_User = Annotated[Name | None, Query()]
_Session = Annotated[Name, Path()]


@router.post("/conversations/{session:path}/files")
async def add(session: _Session, visit: Visiting, user: _User = None) -> Response:
    """Put files into a conversation, which may not have begun."""
    await visit.require("write", "ingest")
    talk, view = Talk(session, user), visit.own_view(user)

    async with received_form(visit.request) as form:

        def store() -> list[int]:
            files = [
                Original.of_open_file(
                    one.file, name=one.filename or "", mime_type=one.content_type or "application/octet-stream"
                )
                for one in form.files
            ]
            return [job.job_id for job in place_for_files(view, session).jobs.upload(files)]

        jobs = await visit.run(store)
    if not visit.is_fragment:
        return visit.go_to(talk.path())
    return await _shown(visit, talk, jobs)


@router.get("/conversations/{session:path}/files")
async def show(
    session: _Session,
    visit: Visiting,
    user: _User = None,
    job: Annotated[tuple[Annotated[int, Field(ge=1, le=2**63 - 1)], ...], Query(max_length=100)] = (),
) -> Response:
    """The files of a conversation, and how far those have come that were just sent."""
    await visit.require("read")
    return await _shown(visit, Talk(session, user), job)


async def _shown(visit: Visit, talk: Talk, jobs: tuple[int, ...] | list[int]) -> Response:
    files = await visit.run(files_of, visit.own_view(talk.user), talk.session, tuple(jobs))
    told = "".join(f"&job={one.job_id}" for one in files.jobs)
    return visit.fragment("chat/files.html", talk=talk, files=files, jobs=told)
