"""What comes into the library: files, pages of the web, and the jobs that store them; and how a text would be cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import File, Form, Query, UploadFile
from pydantic import Field
from starlette.responses import JSONResponse, Response

from recollect.chunking.registry import parameter_names
from recollect.errors import RecollectError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.model import Document
from recollect.model.collection import Collection
from recollect.model.job import Job
from recollect.pipeline import View
from recollect.pipeline.library import ChunkPreview, preview_chunks, read_for_preview, several_jobs
from recollect.pipeline.preparing import ChunkSizes
from recollect.plugins import Plugins
from recollect.server.routes.documents import there
from recollect.server.routes.uploads import receive_files
from recollect.server.schemas.base import Name, Number, Text
from recollect.ui.navigation import LIBRARY
from recollect.ui.page_route import page_router
from recollect.ui.visit import PAGE_HEADERS, Visit, Visiting

router = page_router()

_MOST_JOBS = 100
_MOST_PREVIEWED = 200_000
_MOST_SHOWN = 300
_STRATEGIES = ("recursive", "markdown")
_SAMPLE_CHARACTERS = 1_000_000


@router.get("/library/add")
async def add(visit: Visiting, collection: Annotated[str, Query(max_length=500)] = "") -> Response:
    """Where files are dropped and addresses are given."""
    await visit.require("write")
    collections = await visit.run(visit.view.collections.list)
    name = collection or visit.view.config.collection
    return visit.page("library/add.html", LIBRARY, names=_names(collections, name), name=name)


def _names(collections: Sequence[Collection], chosen: str) -> list[str]:
    names = [one.name for one in collections]
    return names if chosen in names else sorted([*names, chosen])


@router.post("/library/files")
async def add_files(visit: Visiting, collection: Annotated[Name, Query()]) -> Response:
    """Take files as ``POST /v1/collections/{name}/files`` does: here the name may hold a slash."""
    await visit.require("write", "ingest")
    told = await receive_files(visit.request, visit.view, collection)
    return JSONResponse(told, status_code=202, headers=PAGE_HEADERS)


@router.post("/library/urls")
async def add_url(
    visit: Visiting,
    url: Annotated[Text, Form(min_length=1, max_length=10_000)],
    collection: Annotated[Name, Form()],
    tags: Annotated[Text, Form(max_length=2_000)] = "",
    depth: Annotated[int, Form(ge=0, le=100)] = 0,
    max_pages: Annotated[int, Form(ge=1, le=100_000)] = 100,
) -> Response:
    """Ask for a page of the web, or a site; leads to its job."""
    await visit.require("write", "ingest")
    plan = CrawlPlan(depth=depth, max_pages=max_pages) if depth else None
    wanted = tuple(tag.strip() for tag in tags.split(",") if tag.strip())
    job = await visit.run(_ask, visit.view, collection, url.strip(), wanted, plan)
    return visit.go_to(f"/library/jobs/{job.job_id}")


def _ask(view: View, collection: str, url: str, tags: tuple[str, ...], plan: CrawlPlan | None) -> Job:
    return there(view, collection).ingest_url(url, tags=tags, crawl=plan, wait=False)


def _jobs_of(visit: Visit) -> View:
    """What sees the jobs that a visitor may see: their own, and of whoever administers the tenant, its."""
    return visit.administration if visit.may("admin") else visit.view


@router.get("/library/jobs/{job_id}")
async def job(visit: Visiting, job_id: Number) -> Response:
    """A job, which the page looks at again until it has ended."""
    await visit.require("read")
    found = await visit.run(_jobs_of(visit).jobs.get, job_id)
    if visit.is_fragment:
        return visit.fragment("library/job_state.html", job=found)
    return visit.page("library/job.html", LIBRARY, job=found)


@router.post("/library/jobs/{job_id}/{action}")
async def change_job(visit: Visiting, job_id: Number, action: str) -> Response:
    """Stop a job, or try it again."""
    await visit.require("write", "ingest")
    jobs = _jobs_of(visit).jobs
    known = {"retry": jobs.retry, "cancel": jobs.cancel}
    if action not in known:
        raise UsageError(f"A job can be retried or cancelled, not {action!r}.")
    found = await visit.run(known[action], job_id)
    if visit.is_fragment:
        return visit.fragment("library/job_state.html", job=found)
    return visit.go_to(f"/library/jobs/{job_id}")


@router.get("/library/progress")
async def progress(
    visit: Visiting, job: Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Query(max_length=_MOST_JOBS)]
) -> Response:
    """How far jobs have come, for a page that waits for many of them."""
    await visit.require("read")
    found = await visit.run(several_jobs, _jobs_of(visit).standpoint, job)
    return JSONResponse({"jobs": [_told(one) for one in found]}, headers=PAGE_HEADERS)


def _told(job: Job) -> dict[str, Any]:
    stages = [stage for stage in job.stages if stage.total]
    share = sum(stage.done / stage.total for stage in stages if stage.total) / len(job.stages) if job.stages else 0
    return {
        "job_id": job.job_id,
        "status": job.status,
        "share": 1 if job.status == "succeeded" else share,
        "error": job.error,
        "document_id": (job.result or {}).get("document_id"),
        "outcome": (job.result or {}).get("status"),
        "chunks": (job.result or {}).get("chunks"),
    }


@router.get("/library/preview")
async def preview(visit: Visiting) -> Response:
    """Where a text is pasted, or a file dropped, to see how it would be cut."""
    await visit.require("write")
    strategies = visit.view.standpoint.assembly.chunkers.names()
    return visit.page("library/preview.html", LIBRARY, strategies=strategies, chosen=_STRATEGIES)


@router.post("/library/preview")
async def preview_of(
    visit: Visiting,
    first: Annotated[str, Form(max_length=50)] = _STRATEGIES[0],
    second: Annotated[str, Form(max_length=50)] = _STRATEGIES[1],
    first_size: Annotated[str, Form(max_length=10)] = "",
    second_size: Annotated[str, Form(max_length=10)] = "",
    text: Annotated[Text, Form(max_length=_SAMPLE_CHARACTERS)] = "",
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """A text under two strategies, side by side. Nothing of it is stored."""
    await visit.require("write", "ingest")
    data = b"" if file is None else await file.read()
    name = "" if file is None else file.filename or ""
    shown = await visit.run(_previewed, visit, text, data, name, ((first, first_size), (second, second_size)))
    return visit.fragment("library/previewed.html", **shown)


def _previewed(visit: Visit, text: str, data: bytes, name: str, wanted: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    at = visit.view.standpoint
    if data:
        document = read_for_preview(at, data, name=name)
    elif text.strip():
        document = read_for_preview(at, text.encode(), name="text.md")
    else:
        raise UsageError("Paste a text, or choose a file.")
    shortened = len(document.content) > _MOST_PREVIEWED
    if shortened:
        document = Document(
            content=document.content[:_MOST_PREVIEWED], title=document.title, mime_type=document.mime_type
        )
    sides: list[ChunkPreview | str] = []
    for strategy, size in wanted:
        try:
            sides.append(preview_chunks(at, document, _chunking(strategy, size, at.assembly.chunkers)))
        except RecollectError as exc:
            sides.append(str(exc))
    return {"document": document, "sides": sides, "most": _MOST_SHOWN, "shortened": shortened}


def _chunking(strategy: str, size: str, chunkers: Plugins) -> dict[str, Any]:
    parameter_names(strategy, chunkers)  # says which there are
    if not size.strip():
        return {"strategy": strategy}
    if not size.strip().isdecimal():
        raise UsageError(f"The size of chunks is a number, not {size!r}.")
    return ChunkSizes(size=int(size)).within({"strategy": strategy}, chunkers)
