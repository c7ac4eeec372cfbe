"""Originals as replies: whole or a range of their bytes, always to be saved and never to be shown as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from recollect.server.etags import unchanged
from recollect.server.problems import problem, respond
from recollect.server.ranges import ByteRange, UnsatisfiableError, bytes_of, range_of

if TYPE_CHECKING:
    from recollect.model.original import Original


def original_reply(
    original: Original, *, wanted: str | None = None, if_none_match: str | None = None, if_range: str | None = None
) -> Response:
    """The file that a document was read from, as it came; its `ETag` is its hash.

    Args:
        original: The file.
        wanted: The header ``Range``.
        if_none_match: The header ``If-None-Match``.
        if_range: The header ``If-Range``.
    """
    tag = f'"{original.file_hash.hex()}"'
    if unchanged(tag, if_none_match):
        return Response(status_code=304, headers={"ETag": tag})
    try:
        part = range_of(wanted if if_range in {None, tag} else None, original.byte_count)
    except UnsatisfiableError:
        told = problem(416, "no-such-range", "No such range", f"The original has {original.byte_count:,} bytes.")
        return respond(told, {"Content-Range": f"bytes */{original.byte_count}"})
    return _sent(original, part, tag)


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
