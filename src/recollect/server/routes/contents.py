"""``/v1/documents/{id}/…``: what a document says, said before, and was read from."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse

from recollect.model.original import Original
from recollect.pipeline import View
from recollect.pipeline.contents import MAX_CHARACTERS
from recollect.replies.contents import (
    DocumentOutlineJson,
    DocumentPartJson,
    chunks_json,
    document_outline_json,
    document_part_json,
)
from recollect.replies.history import DocumentHistoryJson, VersionDiffJson, document_history_json, version_diff_json
from recollect.server.dependencies import Reader
from recollect.server.etags import IfNoneMatch, unchanged
from recollect.server.pages import Paging, cursor_at, shown
from recollect.server.problems import documented, problem, respond
from recollect.server.ranges import ByteRange, UnsatisfiableError, bytes_of, range_of
from recollect.server.schemas.base import Number
from recollect.server.schemas.documents import ChunkPage

router = APIRouter(prefix="/documents/{document_id}", tags=["documents"], responses=documented(404))

_MOST = 2**31 - 2

Version = Annotated[int | None, Query(ge=1, le=_MOST)]


@router.get("/content", summary="Read a document")
def content(
    document_id: Number,
    caller: Reader,
    start: Annotated[int, Query(ge=0, le=_MOST, description="The first character, from 0.")] = 0,
    length: Annotated[int, Query(ge=1, le=MAX_CHARACTERS, description="How many characters.")] = 10_000,
) -> DocumentPartJson:
    """A range of its text; offsets are characters, as searches and citations give them."""
    return document_part_json(_everywhere(caller).contents.read(document_id, start=start, length=length))


@router.get("/chunks", summary="List the chunks of a document")
def chunks(document_id: Number, caller: Reader, page: Paging) -> ChunkPage:
    """What it is cut into, in order: what is embedded, searched and found."""
    after = page.number()
    looked_up = _everywhere(caller).contents.chunks(document_id, after=-1 if after is None else after, limit=page.asked)
    found, more = shown(looked_up, page)
    next_cursor = cursor_at(found[-1].position) if more else None
    return {"document_id": document_id, "chunks": chunks_json(found), "next_cursor": next_cursor}


@router.get("/outline", summary="Outline a document")
def outline(document_id: Number, caller: Reader) -> DocumentOutlineJson:
    """Its headings and pages, with their offsets."""
    return document_outline_json(_everywhere(caller).contents.outline(document_id))


@router.get("/history", summary="List the versions of a document")
def history(document_id: Number, caller: Reader) -> DocumentHistoryJson:
    """As `recollect history --json`; it may be deleted."""
    return document_history_json(caller.documents.history(document_id))


@router.get("/diff", summary="Compare two versions of a document")
def diff(
    document_id: Number,
    caller: Reader,
    from_: Annotated[Version, Query(alias="from", description="Left out: the one before `to`.")] = None,
    to: Annotated[Version, Query(description="Left out: the newest.")] = None,
    context_lines: Annotated[int, Query(ge=0, le=1_000, description="Unchanged lines around each change.")] = 3,
) -> VersionDiffJson:
    """As `recollect diff --json`."""
    return version_diff_json(
        caller.documents.diff(document_id, from_version=from_, to_version=to, context_lines=context_lines)
    )


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
    caller: Reader,
    wanted: Annotated[str | None, Header(alias="Range", max_length=200, description="One range of bytes.")] = None,
    if_none_match: IfNoneMatch = None,
    if_range: Annotated[str | None, Header(max_length=200, description="The range only if this is its `ETag`.")] = None,
) -> Response:
    """As it came, for downloading; its `ETag` is its hash. Originals of uploads are kept by default."""
    found = _everywhere(caller).contents.original(document_id)
    tag = f'"{found.file_hash.hex()}"'
    if unchanged(tag, if_none_match):
        return Response(status_code=304, headers={"ETag": tag})
    try:
        part = range_of(wanted if if_range in {None, tag} else None, found.byte_count)
    except UnsatisfiableError:
        told = problem(416, "no-such-range", "No such range", f"The original has {found.byte_count:,} bytes.")
        return respond(told, {"Content-Range": f"bytes */{found.byte_count}"})
    return _sent(found, part, tag)


def _sent(found: Original, part: ByteRange | None, tag: str) -> Response:
    whole = ByteRange(0, found.byte_count)
    sent = part or whole
    headers = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Content-Length": str(sent.stop - sent.start),
        # Never shown by a browser as a page of this server, whatever it is.
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
        "X-Content-Type-Options": "nosniff",
        # Compressed, it would have no length and no ranges.
        "Content-Encoding": "identity",
    }
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{found.byte_count}"
    return StreamingResponse(
        bytes_of(found, sent),
        status_code=200 if part is None else 206,
        headers=headers,
        media_type=_header_safe(found.mime_type),
    )


def _header_safe(mime_type: str) -> str:
    plain = mime_type.isascii() and mime_type.isprintable() and "/" in mime_type
    return mime_type if plain else "application/octet-stream"


def _everywhere(caller: View) -> View:
    # A document is named by its number, whichever collection it is in.
    return caller.view(collections="*")
