"""``/v1/documents/{id}/…``: what a document says, said before, and was read from."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from recollect.model.contents import DocumentChunk, DocumentOutline, DocumentPart
from recollect.model.duplicates import Duplicates
from recollect.model.history import DocumentHistory, VersionDiff
from recollect.model.page import Page
from recollect.operations.values import Number
from recollect.pipeline.contents import MAX_CHARACTERS
from recollect.server.dependencies import Asking, DocumentReader
from recollect.server.etags import IfNoneMatch
from recollect.server.originals import original_reply
from recollect.server.pages import PageCursor, PageLimit
from recollect.server.problems import documented

router = APIRouter(prefix="/documents/{document_id}", tags=["documents"], responses=documented(404))

_MOST = 2**31 - 2

Version = Annotated[int | None, Query(ge=1, le=_MOST)]


@router.get("/content", summary="Read a document")
def content(
    document_id: Number,
    caller: DocumentReader,
    start: Annotated[int, Query(ge=0, le=_MOST, description="The first character, from 0.")] = 0,
    length: Annotated[int, Query(ge=1, le=MAX_CHARACTERS, description="How many characters.")] = 10_000,
) -> DocumentPart:
    """A range of its text; offsets are characters, as searches and citations give them."""
    return caller.contents.read(document_id, start=start, length=length)


@router.get("/chunks", summary="List the chunks of a document")
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


@router.get("/outline", summary="Outline a document")
def outline(document_id: Number, caller: DocumentReader) -> DocumentOutline:
    """Its headings and pages, with their offsets."""
    return caller.contents.outline(document_id)


@router.get("/duplicates", summary="List the documents that say the same")
def duplicates(document_id: Number, caller: DocumentReader) -> Duplicates:
    """In the same words, or nearly, as far as they may be read."""
    return caller.documents.duplicates(document_id)


@router.get("/history", summary="List the versions of a document")
def history(document_id: Number, caller: DocumentReader) -> DocumentHistory:
    """As `recollect history --json`; it may be deleted."""
    return caller.documents.history(document_id)


@router.get("/diff", summary="Compare two versions of a document")
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
    "/original",
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
