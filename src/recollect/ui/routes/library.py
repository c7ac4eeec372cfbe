"""The library: its collections, the documents in them, and what is added to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, cast, get_args

from fastapi import File, Form, Query, UploadFile
from pydantic import Field
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, Response, StreamingResponse

from recollect.chunking.registry import parameter_names
from recollect.errors import NotFoundError, RecollectError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.model import Document, RetrievalOptions
from recollect.model.arguments import UNSTORABLE
from recollect.model.collection import Collection
from recollect.model.document_record import (
    LISTING_SORTS,
    MOST_COUNTED,
    DocumentStatus,
    Listing,
    ListingPlace,
    ListingQuery,
    ListingSort,
)
from recollect.model.filter import parse_filter
from recollect.model.job import Job
from recollect.model.page import cursor_at, moment_of, position_of, unknown_cursor
from recollect.model.principal import read_token
from recollect.model.record import json_of
from recollect.model.source import SourceType
from recollect.model.time import read_time
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
from recollect.server.downloads import saved_as
from recollect.server.routes.documents import there
from recollect.server.routes.uploads import receive_files
from recollect.ui.visit import LIBRARY, PAGE_HEADERS, Administering, Reading, Visit, Writing, link, page_router

# The address of a list of documents: its filters, its order and its page, read and written.


STATUSES: tuple[str, ...] = get_args(DocumentStatus)
ORIGINS: tuple[str, ...] = get_args(SourceType)
PATH = "/library/documents"

_MOST_CHARACTERS = 2_000
_MOST_WORDS = 10
_MOST_KEY = 100
_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsAddress:
    """What the address of a list says, as it says it; what is empty stands in no address.

    Attributes:
        collection: By name; empty: all that may be read.
        q: Words of titles and paths.
        status: One of `STATUSES`.
        source: Where documents come from.
        source_type: One of `ORIGINS`.
        type: Of files.
        department: Of documents.
        tag: That documents have.
        language: Of documents.
        changed_from: A day, the first.
        changed_to: A day, the last.
        dated_from: A day of what documents tell of, the first.
        dated_to: The last.
        key: Of metadata.
        value: Of that key; empty: whichever.
        grant: Who may read.
        filter: JSON, in the language of filters.
        sort: One of `LISTING_SORTS`.
        cursor: Where the page begins or ends.
    """

    collection: str = ""
    q: str = ""
    status: str = ""
    source: str = ""
    source_type: str = ""
    type: str = ""
    department: str = ""
    tag: str = ""
    language: str = ""
    changed_from: str = ""
    changed_to: str = ""
    dated_from: str = ""
    dated_to: str = ""
    key: str = ""
    value: str = ""
    grant: str = ""
    filter: str = ""
    sort: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, params: QueryParams) -> DocumentsAddress:
        """What an address says; parameters of other names are left alone.

        Raises:
            UsageError: One of them is longer than any should be, or holds what no text has.
        """
        given = {field.name: params.get(field.name, "").strip() for field in fields(cls)}
        for name, text in given.items():
            if len(text) > _MOST_CHARACTERS:
                raise UsageError(f"{name} has more than {_MOST_CHARACTERS:,} characters.")
            if UNSTORABLE.search(text):
                raise UsageError(f"{name} holds a character that no document can hold (NUL or half a pair).")
        return cls(**given)

    def said(self) -> dict[str, str]:
        """What it says, without what is empty."""
        return {field.name: text for field in fields(self) if (text := getattr(self, field.name))}

    @property
    def tags(self) -> list[str]:
        """The tags, with commas between in the address."""
        return [tag.strip() for tag in self.tag.split(",") if tag.strip()]

    def filters(self) -> dict[str, str]:
        """What confines the list."""
        return {name: text for name, text in self.said().items() if name not in {"sort", "cursor"}}

    def path(self, **changes: str) -> str:
        """The path of a list that differs from this one; its first page, unless that is what differs."""
        return link(PATH, **replace(self, **{"cursor": "", **changes}).said())

    def at(self, place: ListingPlace) -> str:
        """The path of the page behind a place, or before it."""
        key = place.key.isoformat() if isinstance(place.key, datetime) else place.key
        if isinstance(key, str):
            key = key[:_MOST_KEY]
        return self.path(cursor=cursor_at([key, place.document_id, place.backwards, place.count]))

    def query(self) -> ListingQuery:
        """The list that is asked for.

        Raises:
            UsageError: A filter, a day or the cursor is none.
        """
        sort = self.sort or "newest"
        if sort not in LISTING_SORTS:
            raise UsageError(f"sort is one of {', '.join(LISTING_SORTS)}, not {sort!r}.")
        if self.status and self.status not in STATUSES:
            raise UsageError(f"status is one of {', '.join(STATUSES)}, not {self.status!r}.")
        where = self._where()
        return ListingQuery(
            words=tuple(self.q.split()[:_MOST_WORDS]),
            status=cast("DocumentStatus", self.status) if self.status else None,
            origin=self.source or None,
            mime_types=(self.type,) if self.type else (),
            changed_from=_day("changed_from", self.changed_from),
            changed_to=_day("changed_to", self.changed_to, last=True),
            grant=read_token(self.grant, name="grant") if self.grant else None,
            where=parse_filter(where) if where else None,
            sort=sort,
            place=_place(self.cursor, sort),
        )

    def _where(self) -> dict[str, Any]:
        """What the language of filters is asked."""
        plain = {"department": self.department, "language": self.language, "source_type": self.source_type}
        parts: list[Mapping[str, Any]] = [{name: text} for name, text in plain.items() if text]
        parts += [{"tags": {"contains": tag}} for tag in self.tags]
        if first := _day("dated_from", self.dated_from):
            parts.append({"event_time": {"gte": first}})
        if last := _day("dated_to", self.dated_to, last=True):
            parts.append({"event_time": {"lt": last}})
        if self.key:
            parts.append(_of_metadata(self.key, self.value))
        if self.filter:
            parts.append(_json(self.filter))
        return {"and": parts} if parts else {}


def _of_metadata(key: str, value: str) -> dict[str, Any]:
    name = f"metadata.{key}"
    if not value:
        return {name: {"exists": True}}
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return {name: value}
    # What looks like a number may have been stored as a text, and a text of a list is one of its entries.
    other = [{name: read}] if isinstance(read, bool | int | float) else []
    return {"or": [{name: value}, {name: {"contains": value}}, *other]}


def _json(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise UsageError('filter is JSON, for instance {"metadata.year": {"gte": 2024}}.') from exc
    if not isinstance(given, dict) or not given:
        raise UsageError('filter is an object, for instance {"metadata.year": {"gte": 2024}}.')
    return given


def _day(name: str, text: str, *, last: bool = False) -> datetime | None:
    if not text:
        return None
    try:
        at = read_time(text, name=name)
        return at + timedelta(days=1) if last and len(text) == len("2026-01-31") else at
    except OverflowError as exc:
        raise UsageError(f"{name} is a day, for instance 2026-01-31, not {text!r}.") from exc


def _place(cursor: str, sort: ListingSort) -> ListingPlace | None:
    if not cursor:
        return None
    match position_of(cursor):
        case [str() | int() as key, int(number), bool(backwards), int() | None as count] if 0 <= number <= _HIGHEST:
            return ListingPlace(key=_key(key, sort), document_id=number, backwards=backwards, count=count)
    raise unknown_cursor()


def _key(key: str | int, sort: ListingSort) -> str | int | datetime:
    """What a list is sorted by, as a cursor has it.

    Raises:
        UsageError: The cursor is of another list.
    """
    if isinstance(key, str) and sort == "changed":
        return moment_of(key)
    if isinstance(key, str) and sort == "title" and not UNSTORABLE.search(key):
        return key
    if isinstance(key, int) and sort not in {"changed", "title"} and 0 <= key <= _HIGHEST:
        return key
    raise unknown_cursor()


router = page_router()

_DESCRIPTION = 10_000

#: The collection that a page is of: names are anybody's, so none stands in a path.
Named = Annotated[Name, Query()]


def collection_path(name: str) -> str:
    """The page of a collection."""
    return link("/library/collection", name=name)


@router.get(LIBRARY.path)
async def first_page(visit: Reading) -> Response:
    """The collections that may be read."""
    collections, unstored = await visit.run(_overview, visit.view)
    return visit.page("library/overview.html", LIBRARY, collections=collections, unstored=unstored)


def _overview(view: View) -> tuple[list[Collection], dict[int, tuple[int, int]]]:
    return [*view.collections.each()], dict(unstored_counts(view.standpoint))


@router.get("/library/new")
async def new_collection(visit: Administering) -> Response:
    """What a new collection is called, and how it is cut."""
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
    visit: Administering,
    name: Annotated[Name, Form()],
    description: Annotated[Text, Form(max_length=_DESCRIPTION)] = "",
    content_language: Annotated[str, Form(max_length=20)] = "",
    strategy: Annotated[str, Form(max_length=50)] = "",
) -> Response:
    """Make a collection."""
    await visit.run(
        visit.administration.collections.create,
        name.strip(),
        description=description.strip(),
        language=content_language.strip() or None,
        chunking={"strategy": strategy} if strategy else None,
    )
    return visit.go_to(collection_path(name.strip()))


@router.get("/library/collection")
async def show(visit: Reading, name: Named) -> Response:
    """One collection."""
    shown = await visit.run(_found, visit.view, name)
    return visit.page("library/collection.html", LIBRARY, **shown, at=collection_path)


def _found(view: View, name: str) -> dict[str, Any]:
    found = view.collections.get(name)
    waiting, failed = unstored_counts(view.standpoint).get(found.collection_id, (0, 0))
    notes = view.collections.notes().get(found.collection_id)
    idle_days = None if notes is None else notes.idle_days
    return {"collection": found, "waiting": waiting, "failed": failed, "idle_days": idle_days}


@router.get("/library/collection/size")
async def size(visit: Reading, name: Named) -> Response:
    """What its documents take, which a page asks for behind everything else: every document is looked at."""
    taken = await visit.run(stored_size, visit.view_of(name).standpoint)
    return visit.fragment("library/size.html", size=taken)


@router.post("/library/collection/describe")
async def describe(
    visit: Administering, name: Named, description: Annotated[Text, Form(max_length=_DESCRIPTION)] = ""
) -> Response:
    """Say something else of a collection."""
    await visit.run(visit.administration.collections.update, name, description=description.strip())
    return visit.go_to(collection_path(name))


@router.post("/library/collection/keep")
async def keep(visit: Administering, name: Named, idle_days: Annotated[str, Form(max_length=10)] = "") -> Response:
    """Say after how many days without use its documents are closed; nothing: never."""
    given = idle_days.strip() or "0"
    if not given.isdecimal():
        raise UsageError(f"Days are a number, or nothing for never, not {given!r}.")
    await visit.run(visit.administration.collections.note, name, idle_days=int(given))
    return visit.go_to(collection_path(name))


@router.post("/library/collection/delete")
async def delete(visit: Administering, name: Named, confirmed: Annotated[str, Form(max_length=500)] = "") -> Response:
    """Remove a collection with everything in it, where its name was typed once more."""
    if confirmed.strip() != name:
        raise UsageError(f"To delete the collection, type its name: {name}")
    await visit.run(visit.administration.collections.delete, name)
    return visit.go_to(LIBRARY.path)


@router.get("/library/collection/export")
async def export(visit: Reading, name: Named) -> Response:
    """A collection as JSON Lines, for ``recollect import``: what may be read of it."""
    lines = await visit.run(_lines, visit, name)
    headers = PAGE_HEADERS | saved_as(f"{name}.jsonl")
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


def _lines(visit: Visit, name: str) -> Iterator[str]:
    view = visit.view_of(name)
    view.collections.get(name)
    return (f"{line}\n" for line in view.collections.export_lines())


# The library's documents: listed, filtered, chosen, and changed together.


_MOST_CHOSEN = 200

_Chosen = Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Form(max_length=_MOST_CHOSEN)]


@router.get(PATH)
async def documents(visit: Reading) -> Response:
    """A page of the list that the address says."""
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
    return listing, [*everywhere.collections.each()], hints


@router.get("/library/documents/choices")
async def choices(visit: Reading) -> Response:
    """What documents can be filtered by, asked for by whoever is about to choose."""
    address = DocumentsAddress.read(visit.request.query_params)
    found = await visit.run(filter_choices, _view(visit, address).standpoint)
    return visit.fragment("library/choices.html", choices=found)


@router.post("/library/documents/change")
async def change(
    visit: Writing,
    action: Annotated[Literal["delete", "tag", "untag", "retry"], Form()],
    document: _Chosen,
    tag: Annotated[Name | None, Form()] = None,
    job: _Chosen = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Do something with the documents that were chosen; each is done or says why it was not."""
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
async def add(visit: Writing, collection: Annotated[str, Query(max_length=500)] = "") -> Response:
    """Where files are dropped and addresses are given."""
    collections = await visit.run(visit.view.collections.list)
    name = collection or visit.view.config.collection
    return visit.page("library/add.html", LIBRARY, names=_names(collections, name), name=name)


def _names(collections: Sequence[Collection], chosen: str) -> list[str]:
    names = [one.name for one in collections]
    return names if chosen in names else sorted([*names, chosen])


@router.post("/library/files")
async def add_files(visit: Writing, collection: Annotated[Name, Query()]) -> Response:
    """Take files as ``POST /v1/collections/{name}/files`` does: here the name may hold a slash."""
    told = await receive_files(visit.request, visit.view, collection)
    jobs = [json_of(one) for one in told["jobs"]]
    return JSONResponse({"jobs": jobs}, status_code=202, headers=PAGE_HEADERS)


@router.post("/library/urls")
async def add_url(
    visit: Writing,
    url: Annotated[Text, Form(min_length=1, max_length=10_000)],
    collection: Annotated[Name, Form()],
    tags: Annotated[Text, Form(max_length=2_000)] = "",
    depth: Annotated[int, Form(ge=0, le=100)] = 0,
    max_pages: Annotated[int, Form(ge=1, le=100_000)] = 100,
) -> Response:
    """Ask for a page of the web, or a site; leads to its job."""
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
async def job(visit: Reading, job_id: Number) -> Response:
    """A job, which the page looks at again until it has ended."""
    found = await visit.run(_jobs_of(visit).jobs.get, job_id)
    if visit.is_fragment:
        return visit.fragment("library/job_state.html", job=found)
    return visit.page("library/job.html", LIBRARY, job=found)


@router.post("/library/jobs/{job_id}/{action}")
async def change_job(visit: Writing, job_id: Number, action: str) -> Response:
    """Stop a job, or try it again."""
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
    visit: Reading, job: Annotated[list[Annotated[int, Field(ge=1, le=2**63 - 1)]], Query(max_length=_MOST_JOBS)]
) -> Response:
    """How far jobs have come, for a page that waits for many of them."""
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
async def preview(visit: Writing) -> Response:
    """Where a text is pasted, or a file dropped, to see how it would be cut."""
    strategies = visit.view.standpoint.assembly.chunkers.names()
    return visit.page("library/preview.html", LIBRARY, strategies=strategies, chosen=_STRATEGIES)


@router.post("/library/preview")
async def preview_of(
    visit: Writing,
    first: Annotated[str, Form(max_length=50)] = _STRATEGIES[0],
    second: Annotated[str, Form(max_length=50)] = _STRATEGIES[1],
    first_size: Annotated[str, Form(max_length=10)] = "",
    second_size: Annotated[str, Form(max_length=10)] = "",
    text: Annotated[Text, Form(max_length=_SAMPLE_CHARACTERS)] = "",
    file: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """A text under two strategies, side by side. Nothing of it is stored."""
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
