"""The library: its collections, the documents in them, and what is added to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import quote, quote_plus

from fastapi import File, Form, Query, UploadFile
from pydantic import Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from recollect.chunking.registry import parameter_names
from recollect.errors import NotFoundError, RecollectError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.model import Document, RetrievalOptions
from recollect.model.collection import Collection
from recollect.model.job import Job
from recollect.model.listing import LISTING_SORTS, MOST_COUNTED, Listing, ListingQuery
from recollect.operations.values import Name, Number, Text
from recollect.pipeline import View
from recollect.pipeline.library import (
    ChunkPreview,
    filter_choices,
    list_documents,
    preview_chunks,
    read_for_preview,
    several_jobs,
    stored_size,
    unstored_counts,
)
from recollect.pipeline.preparing import ChunkSizes
from recollect.plugins import Plugins
from recollect.server.routes.documents import there
from recollect.server.routes.uploads import receive_files
from recollect.ui.library_query import ORIGINS, PATH, STATUSES, DocumentsAddress
from recollect.ui.page_route import page_router
from recollect.ui.visit import LIBRARY, PAGE_HEADERS, Visit, Visiting

router = page_router()

_DESCRIPTION = 10_000

#: The collection that a page is of: names are anybody's, so none stands in a path.
Named = Annotated[Name, Query()]


def collection_path(name: str) -> str:
    """The page of a collection."""
    return f"/library/collection?name={quote_plus(name)}"


@router.get(LIBRARY.path)
async def first_page(visit: Visiting) -> Response:
    """The collections that may be read."""
    await visit.require("read")
    collections, unstored = await visit.run(_overview, visit.view)
    return visit.page("library/overview.html", LIBRARY, collections=collections, unstored=unstored)


def _overview(view: View) -> tuple[list[Collection], dict[int, tuple[int, int]]]:
    return view.collections.list(), dict(unstored_counts(view.standpoint))


@router.get("/library/new")
async def new_collection(visit: Visiting) -> Response:
    """What a new collection is called, and how it is cut."""
    await visit.require("admin")
    settings = visit.view.config
    return visit.page(
        "library/new.html",
        LIBRARY,
        strategies=visit.view.standpoint.assembly.chunkers.names(),
        configured=settings.chunking.strategy,
        language_code=settings.language,
    )


@router.post("/library/collections")
async def create(
    visit: Visiting,
    name: Annotated[Name, Form()],
    description: Annotated[Text, Form(max_length=_DESCRIPTION)] = "",
    content_language: Annotated[str, Form(max_length=20)] = "",
    strategy: Annotated[str, Form(max_length=50)] = "",
) -> Response:
    """Make a collection."""
    await visit.require("admin", "ingest")
    await visit.run(
        visit.administration.collections.create,
        name.strip(),
        description=description.strip(),
        language=content_language.strip() or None,
        chunking={"strategy": strategy} if strategy else None,
    )
    return visit.go_to(collection_path(name.strip()))


@router.get("/library/collection")
async def show(visit: Visiting, name: Named) -> Response:
    """One collection."""
    await visit.require("read")
    shown = await visit.run(_found, visit.view, name)
    return visit.page("library/collection.html", LIBRARY, **shown, at=collection_path)


def _found(view: View, name: str) -> dict[str, Any]:
    found = view.collections.get(name)
    waiting, failed = unstored_counts(view.standpoint).get(found.collection_id, (0, 0))
    notes = view.collections.notes().get(found.collection_id)
    idle_days = None if notes is None else notes.idle_days
    return {"collection": found, "waiting": waiting, "failed": failed, "idle_days": idle_days}


@router.get("/library/collection/size")
async def size(visit: Visiting, name: Named) -> Response:
    """What its documents take, which a page asks for behind everything else: every document is looked at."""
    await visit.require("read")
    taken = await visit.run(stored_size, visit.view_of(name).standpoint)
    return visit.fragment("library/size.html", size=taken)


@router.post("/library/collection/describe")
async def describe(
    visit: Visiting, name: Named, description: Annotated[Text, Form(max_length=_DESCRIPTION)] = ""
) -> Response:
    """Say something else of a collection."""
    await visit.require("admin", "ingest")
    await visit.run(visit.administration.collections.update, name, description=description.strip())
    return visit.go_to(collection_path(name))


@router.post("/library/collection/keep")
async def keep(visit: Visiting, name: Named, idle_days: Annotated[str, Form(max_length=10)] = "") -> Response:
    """Say after how many days without use its documents are closed; nothing: never."""
    await visit.require("admin", "ingest")
    given = idle_days.strip() or "0"
    if not given.isdecimal():
        raise UsageError(f"Days are a number, or nothing for never, not {given!r}.")
    await visit.run(visit.administration.collections.note, name, idle_days=int(given))
    return visit.go_to(collection_path(name))


@router.post("/library/collection/delete")
async def delete(visit: Visiting, name: Named, confirmed: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Remove a collection with everything in it, where its name was typed once more."""
    await visit.require("admin", "ingest")
    if confirmed.strip() != name:
        raise UsageError(f"To delete the collection, type its name: {name}")
    await visit.run(visit.administration.collections.delete, name)
    return visit.go_to(LIBRARY.path)


@router.get("/library/collection/export")
async def export(visit: Visiting, name: Named) -> Response:
    """A collection as JSON Lines, for ``recollect import``: what may be read of it."""
    await visit.require("read")
    lines = await visit.run(_lines, visit, name)
    headers = {
        **PAGE_HEADERS,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}.jsonl",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


def _lines(visit: Visit, name: str) -> Iterator[str]:
    view = visit.view_of(name)
    view.collections.get(name)
    return (f"{line}\n" for line in view.collections.export_lines())


# The library's documents: listed, filtered, chosen, and changed together.


_MOST_CHOSEN = 200

_Chosen = Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Form(max_length=_MOST_CHOSEN)]


@router.get(PATH)
async def documents(visit: Visiting) -> Response:
    """A page of the list that the address says."""
    await visit.require("read")
    address = DocumentsAddress.read(visit.request.query_params)
    query = address.query()
    view = _view(visit, address)
    listing, collections, hints = await visit.run(_looked_up, view, visit.view, query, address)
    return visit.page(
        "library/documents.html",
        LIBRARY,
        address=address,
        listing=listing,
        collections=collections,
        hints=hints,
        statuses=STATUSES,
        origins=ORIGINS,
        sorts=LISTING_SORTS,
        most=MOST_COUNTED,
        previous=None if listing.previous is None else visit.base + address.at(listing.previous),
        following=None if listing.following is None else visit.base + address.at(listing.following),
    )


def _view(visit: Visit, address: DocumentsAddress) -> View:
    return visit.view_of(address.collection) if address.collection else visit.view


def _looked_up(
    view: View, everywhere: View, query: ListingQuery, address: DocumentsAddress
) -> tuple[Listing, list[Collection], list[str]]:
    listing = list_documents(view.standpoint, query)
    hints: list[str] = []
    if not listing.documents and (address.department or address.tag or address.key):
        options = RetrievalOptions(
            department=(address.department,) if address.department else (),
            tags=tuple(address.tags),
            metadata_filters={address.key.partition(".")[0]: address.value} if address.key else {},
        )
        hints = view.documents.filter_hints(options)
    return listing, everywhere.collections.list(), hints


@router.get("/library/documents/choices")
async def choices(visit: Visiting) -> Response:
    """What documents can be filtered by, asked for by whoever is about to choose."""
    await visit.require("read")
    address = DocumentsAddress.read(visit.request.query_params)
    found = await visit.run(filter_choices, _view(visit, address).standpoint)
    return visit.fragment("library/choices.html", choices=found)


@router.post("/library/documents/change")
async def change(
    visit: Visiting,
    action: Annotated[Literal["delete", "tag", "untag", "retry"], Form()],
    document: _Chosen,
    tag: Annotated[Name | None, Form()] = None,
    job: _Chosen = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Do something with the documents that were chosen; each is done or says why it was not."""
    await visit.require("write", "ingest")
    view = visit.view
    address = DocumentsAddress.read(visit.request.query_params)
    act: Callable[[int], object]
    match action:
        case "delete":
            act = lambda number: view.documents.delete([number])  # noqa: E731 - one of several
        case "retry":
            act, document = view.jobs.retry, job
        case _:
            act = _tagger(view, tag, add=action == "tag")
    done, problems = await visit.run(_each, act, document)
    return visit.fragment("library/changed.html", action=action, done=done, problems=problems, back=address.path())


def _tagger(view: View, tag: str | None, *, add: bool) -> Callable[[int], object]:
    words = [word.strip() for word in (tag or "").split(",") if word.strip()]

    def change(number: int) -> None:
        found = view.documents.get(number)
        kept = [one for one in found.tags if one not in words]
        view.documents.update(number, tags=[*found.tags, *(w for w in words if w not in found.tags)] if add else kept)

    return change


def _each(act: Callable[[int], object], numbers: Sequence[int]) -> tuple[int, list[str]]:
    """How many were done, and why others were not."""
    done, problems = 0, list[str]()
    for number in dict.fromkeys(numbers):
        try:
            act(number)
        except NotFoundError as exc:
            problems.append(str(exc))
        except RecollectError as exc:
            problems.append(f"{number}: {exc}")
        else:
            done += 1
    return done, problems


# What comes into the library: files, pages of the web, and the jobs that store them; and how a text would be cut.


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
