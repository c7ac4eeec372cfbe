"""``/v1/collections/{name}/documents`` and ``/v1/documents/{id}``: documents put in, read and taken out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from pydantic import AfterValidator, Field
from starlette.responses import Response
from typing_extensions import TypedDict

from recollect.errors import FetchError, UsageError
from recollect.fetching.crawl import CrawlPlan
from recollect.fetching.urls import parse_url
from recollect.model import Document, IngestResult
from recollect.model.contents import DocumentChunk, DocumentOutline, DocumentPart
from recollect.model.document_record import DocumentRecord, Duplicates, SameDocument
from recollect.model.history import DocumentHistory, ErasureReceipt, VersionDiff, VersionRecord
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.time import read_time
from recollect.operations.values import Name, Number, Text
from recollect.pipeline import View
from recollect.pipeline.contents import MAX_CHARACTERS
from recollect.server.bodies import Body
from recollect.server.dependencies import Asking, DocumentReader, DocumentWriter, PageCursor, PageLimit, Reader, Writer
from recollect.server.downloads import original_reply
from recollect.server.etags import IfMatch, IfNoneMatch, required_version, unchanged, version_tag
from recollect.server.problems import documented

_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It has not changed since."}}


_MOST = 2**31 - 2


Version = Annotated[int | None, Query(ge=1, le=_MOST)]


# A text that is sent as JSON; the limit of the body comes first. Longer ones are files.
_MAX_CHARACTERS = 100_000_000
_MAX_TAGS = 1_000


class DocumentBody(Body):
    """A text to be stored; the fields are those of `Document`."""

    content: Text = Field(max_length=_MAX_CHARACTERS, description="What is cut, searched and quoted.")
    source: Name | None = Field(
        None,
        description="Where it came from. Without an `id` it identifies the document within the collection. Left out: "
        "the id, or the text's hash, so that one text is stored once.",
    )
    id: Name | None = Field(
        None,
        description="Identifies the document within the collection, whatever its source is: several may share a "
        "source, such as the turns of a chat.",
    )
    title: Text | None = Field(None, max_length=10_000)
    metadata: dict[str, Any] = Field(default_factory=dict)
    tags: tuple[Name, ...] = Field((), max_length=_MAX_TAGS)
    department: Name | None = None
    language: Name | None = Field(None, description="ISO 639-1; left out: the collection's.")
    event_time: Text | None = Field(None, max_length=100, description="When it happened or was written: ISO 8601.")
    event_end: Text | None = Field(None, max_length=100, description="When that ended.")
    ttl: Text | None = Field(
        None, max_length=100, description="How long it is found, for instance 30d; never: without end."
    )
    permissions: tuple[Name, ...] | None = Field(
        None,
        max_length=_MAX_TAGS,
        description="Who may read it: role:hr, user:ann; left out: as the collection says.",
    )
    force: bool = Field(False, description="Store it anew even if it is unchanged.")

    def document(self) -> Document:
        """As the library takes it.

        Raises:
            UsageError: A time is none.
        """
        return Document(
            content=self.content,
            source=self.source,
            id=self.id,
            title=self.title,
            metadata=self.metadata,
            tags=self.tags,
            department=self.department,
            language=self.language,
            event_time=None if self.event_time is None else read_time(self.event_time, name="event_time"),
            event_end=None if self.event_end is None else read_time(self.event_end, name="event_end"),
            ttl=self.ttl,
            permissions=self.permissions,
        )


class DescriptionBody(Body):
    """What is said of a document; what is left out stays as it is."""

    title: Text | None = Field(None, min_length=1, max_length=10_000)
    metadata: dict[str, Any] | None = Field(None, description="All of it from now on.")
    tags: tuple[Name, ...] | None = Field(None, max_length=_MAX_TAGS, description="All of them from now on.")
    department: Name | None = None


def _of_the_web(url: str) -> str:
    try:
        return str(parse_url(url))
    except FetchError as exc:
        raise ValueError(exc.reason) from exc


class UrlBody(Body):
    """A page of the web to be stored, or the pages of a site; the fields are the options of `recollect ingest URL`."""

    url: Annotated[Text, AfterValidator(_of_the_web)] = Field(min_length=1, max_length=10_000)
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    headers: dict[str, Text] = Field(default_factory=dict, max_length=100, description="Sent with it, shown to nobody.")
    data: Text | None = Field(None, max_length=1_000_000, description="Sent as the request's body.")
    chunk_size: int | None = Field(None, ge=1, le=1_000_000)
    chunk_overlap: int | None = Field(None, ge=0, le=1_000_000)
    tag: tuple[Name, ...] = Field((), max_length=_MAX_TAGS)
    grant: tuple[Name, ...] | None = Field(None, max_length=_MAX_TAGS, description="Who may read the pages.")
    force: bool = False
    crawl: bool = Field(False, description="Store the pages that it leads to within its site too.")
    depth: int | None = Field(None, ge=0, le=1_000)
    max_pages: int | None = Field(None, ge=1, le=1_000_000)
    below: Text | None = Field(None, max_length=10_000)
    sitemaps: bool = False
    delay: float | None = Field(None, ge=0, le=3_600)

    def plan(self) -> CrawlPlan | None:
        """How far links are followed; None: not at all.

        Raises:
            UsageError: Options of a crawl are given without one.
        """
        said = {
            "depth": self.depth,
            "max_pages": self.max_pages,
            "below": self.below,
            "delay_seconds": self.delay,
            "sitemaps": self.sitemaps or None,
        }
        chosen: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        if not self.crawl:
            if chosen:
                raise UsageError("depth, max_pages, below, sitemaps and delay are of a crawl: add crawl.")
            return None
        return CrawlPlan(**{"depth": 2, **chosen}).checked()


class ErasureBody(Body):
    """Why a document is erased."""

    reason: Text | None = Field(None, max_length=10_000, description="For the receipt.")
    scrub: bool = Field(False, description="Take it out of the database's files too; for the store's owner.")


class RereadBody(Body):
    """How an original is read anew."""

    force: bool = Field(False, description="Store it anew even if nothing is different.")


class RestoreBody(Body):
    """Which version is the newest again."""

    version: int = Field(ge=1, le=2**31 - 1, description="From 1.")


class LifetimeBody(Body):
    """How long a document is found."""

    ttl: Name | None = Field(description="From now on, such as 12h or 30d; null or never: for ever.")


class DocumentIds(TypedDict):
    """Documents that were named otherwise; several of a source that documents with ids share."""

    document_id: int
    document_ids: list[int]


router = APIRouter(tags=["documents"], responses=documented(404))


@router.get("/collections/{name:named}/documents", summary="List the documents of a collection")
def documents(
    name: Name,
    caller: Reader,
    status: Annotated[
        Literal["pending", "embedded", "error"] | None,
        Query(description="Only those that are stored, that a job is to store, or that it could not."),
    ] = None,
    source: Annotated[
        Name | None, Query(description="Only this one, or those of this folder, domain or other origin.")
    ] = None,
    department: Annotated[Name | None, Query()] = None,
    tag: Annotated[tuple[Name, ...], Query(description="Only those with all of these.")] = (),
    sort: Annotated[Literal["oldest", "newest"], Query(description="By their ids.")] = "oldest",
    cursor: PageCursor = None,
    limit: PageLimit = 100,
) -> Page[DocumentRecord]:
    """As `recollect documents list --json`, page by page."""
    return caller.view(collections=name).documents.list(
        status=status,
        source=source,
        department=department,
        tags=tag,
        newest_first=sort == "newest",
        cursor=cursor,
        limit=limit,
    )


@router.post(
    "/collections/{name:named}/documents", status_code=201, summary="Store a text", responses=documented(409, 502)
)
def add(name: Name, body: DocumentBody, caller: Writer, response: Response) -> IngestResult:
    """A document of the same source becomes a new version; an equal one is left alone. It is findable at once."""
    written = there(caller, name).ingest(body.document(), force=body.force)
    response.headers["Location"] = f"/v1/documents/{written.document_id}"
    return written


@router.post(
    "/collections/{name:named}/urls", status_code=202, summary="Store a page of the web", responses=documented(502)
)
def add_url(name: Name, body: UrlBody, caller: Writer, response: Response) -> Job:
    """As `recollect ingest URL --background`: a worker fetches it; the job says what became of it."""
    job = there(caller, name).ingest_url(
        body.url,
        method=body.method or ("GET" if body.data is None else "POST"),
        headers=body.headers,
        body=body.data,
        chunk_size=body.chunk_size,
        chunk_overlap=body.chunk_overlap,
        tags=body.tag,
        permissions=body.grant,
        force=body.force,
        crawl=body.plan(),
        wait=False,
    )
    response.headers["Location"] = f"/v1/jobs/{job.job_id}"
    return job


@router.get("/documents", summary="Find a document by its source")
def named(
    caller: Reader,
    source: Annotated[
        Text, Query(min_length=1, max_length=10_000, description="Its source, the id that it was given, or its number.")
    ],
    collection: Annotated[
        tuple[Name, ...], Query(description="The collections; * means all; left out: the configured one.")
    ] = (),
    several: Annotated[
        bool, Query(description="Reply with every document of a source that documents with ids share, not with a 400.")
    ] = False,
) -> DocumentIds:
    """One that may be read. A closed one has its name still, where no other has it."""
    found = caller.view(collections=collection or None).documents.resolve([source], each_one=not several)
    return {"document_id": found[0], "document_ids": found}


@router.get(
    "/documents/{document_id}", summary="Show a document", response_model=DocumentRecord, responses=_NOT_MODIFIED
)
def show(
    document_id: Number, caller: DocumentReader, response: Response, if_none_match: IfNoneMatch = None
) -> DocumentRecord | Response:
    """Without its text, which is its content. Its `ETag` is its version."""
    record = caller.documents.get(document_id)
    tag = version_tag(record)
    if unchanged(tag, if_none_match):
        return Response(status_code=304, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return record


@router.put("/documents/{document_id}", summary="Describe a document", responses=documented(409, 412))
def describe(
    document_id: Number, body: DescriptionBody, caller: DocumentWriter, response: Response, if_match: IfMatch = None
) -> IngestResult:
    """Title, metadata, tags and department: a new version with the same text."""
    written = caller.documents.update(
        document_id,
        title=body.title,
        metadata=body.metadata,
        tags=body.tags,
        department=body.department,
        if_version=_required(caller, document_id, if_match),
    )
    response.headers["ETag"] = f'"{written.version}"'
    return written


@router.delete("/documents/{document_id}", status_code=204, summary="Close a document", responses=documented(412))
def close(document_id: Number, caller: DocumentWriter, if_match: IfMatch = None) -> None:
    """Searches of the present find it no longer; its history stays. To remove it for good, erase it."""
    caller.documents.delete([document_id], if_version=_required(caller, document_id, if_match))


@router.post("/documents/{document_id}/erase", summary="Erase a document")
def erase(document_id: Number, body: ErasureBody, caller: DocumentWriter) -> ErasureReceipt:
    """With every version, physically: it cannot be taken back. The receipt proves it and holds none of the content."""
    return caller.documents.erase([document_id], reason=body.reason, scrub=body.scrub)


@router.post("/documents/{document_id}/reingest", summary="Read an original anew", responses=documented(502))
def reingest(document_id: Number, body: RereadBody, caller: DocumentWriter) -> IngestResult:
    """The kept original, as files are read, cut and embedded now: a new version where anything is different."""
    return caller.documents.reread(document_id, force=body.force)


@router.post("/documents/{document_id}/restore", summary="Restore a version")
def restore(document_id: Number, body: RestoreBody, caller: DocumentWriter) -> IngestResult:
    """What it said becomes the newest version. Department, tags and grants stay as they are."""
    return caller.documents.restore(document_id, body.version)


@router.put("/documents/{document_id}/ttl", summary="Decide how long a document is found")
def set_ttl(document_id: Number, body: LifetimeBody, caller: DocumentWriter) -> VersionRecord:
    """From now on; then it is closed as though it were deleted, and its history stays."""
    caller.documents.set_ttl(document_id, body.ttl)
    return caller.documents.history(document_id).versions[-1]


@router.get("/duplicates", summary="List documents that have the same text")
def duplicates(caller: Reader, cursor: PageCursor = None, limit: PageLimit = 100) -> Page[tuple[SameDocument, ...]]:
    """Group by group, in all collections, as far as they may be read."""
    return caller.documents.list_duplicates(cursor=cursor, limit=limit)


def _required(caller: View, document_id: int, if_match: str | None) -> int | None:
    return None if if_match is None else required_version(caller.documents.get(document_id), if_match)


def there(caller: View, name: str) -> View:
    """The view of a collection that documents are stored in: one that there is, or the configured one.

    A name that is misspelt makes no collection: that is for whoever administers the tenant.

    Raises:
        NotFoundError: There is none of that name.
    """
    if name != caller.config.collection:
        caller.collections.get(name)
    return caller.view(collections=name)


@router.get("/documents/{document_id}/content", summary="Read a document")
def content(
    document_id: Number,
    caller: DocumentReader,
    start: Annotated[int, Query(ge=0, le=_MOST, description="The first character, from 0.")] = 0,
    length: Annotated[int, Query(ge=1, le=MAX_CHARACTERS, description="How many characters.")] = 10_000,
) -> DocumentPart:
    """A range of its text; offsets are characters, as searches and citations give them."""
    return caller.contents.read(document_id, start=start, length=length)


@router.get("/documents/{document_id}/chunks", summary="List the chunks of a document")
def chunks(
    document_id: Number,
    caller: DocumentReader,
    start: Annotated[int, Query(ge=0, le=_MOST, description="Only those that hold this character or a later one.")] = 0,
    end: Annotated[
        int | None, Query(ge=0, le=_MOST, description="Only those that hold a character before this one.")
    ] = None,
    cursor: PageCursor = None,
    limit: PageLimit = 100,
) -> Page[DocumentChunk]:
    """What it is cut into, in order: what is embedded, searched and found."""
    return caller.contents.chunks(document_id, cursor=cursor, limit=limit, start=start, end=end)


@router.get("/documents/{document_id}/outline", summary="Outline a document")
def outline(document_id: Number, caller: DocumentReader) -> DocumentOutline:
    """Its headings and pages, with their offsets."""
    return caller.contents.outline(document_id)


@router.get("/documents/{document_id}/duplicates", name="duplicates", summary="List the documents that say the same")
def duplicates_of(document_id: Number, caller: DocumentReader) -> Duplicates:
    """In the same words, or nearly, as far as they may be read."""
    return caller.documents.duplicates(document_id)


@router.get("/documents/{document_id}/history", summary="List the versions of a document")
def history(document_id: Number, caller: DocumentReader) -> DocumentHistory:
    """As `recollect history --json`; it may be deleted."""
    return caller.documents.history(document_id)


@router.get("/documents/{document_id}/diff", summary="Compare two versions of a document")
async def diff(
    document_id: Number,
    caller: DocumentReader,
    service: Asking,
    request: Request,
    from_: Annotated[Version, Query(alias="from", description="Left out: the one before `to`.")] = None,
    to: Annotated[Version, Query(description="Left out: the newest.")] = None,
    context_lines: Annotated[int, Query(ge=0, le=1_000, description="Unchanged lines around each change.")] = 3,
) -> VersionDiff:
    """As `recollect diff --json`."""

    def compared() -> VersionDiff:
        return caller.documents.diff(document_id, from_version=from_, to_version=to, context_lines=context_lines)

    return await service.searches.run(request, compared)


@router.get(
    "/documents/{document_id}/original",
    summary="Download the file that a document was read from",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The file, byte by byte."},
        206: {"content": {"application/octet-stream": {}}, "description": "The range that was asked for."},
        304: {"description": "It has not changed since."},
        **documented(416),
    },
)
def original(
    document_id: Number,
    caller: DocumentReader,
    wanted: Annotated[str | None, Header(alias="Range", max_length=200, description="One range of bytes.")] = None,
    if_none_match: IfNoneMatch = None,
    if_range: Annotated[str | None, Header(max_length=200, description="The range only if this is its `ETag`.")] = None,
) -> Response:
    """As it came, for downloading; its `ETag` is its hash. Originals of uploads are kept by default."""
    found = caller.contents.original(document_id)
    return original_reply(found, wanted=wanted, if_none_match=if_none_match, if_range=if_range)
