"""Files as replies: originals, whole or a range of their bytes, and lines that are made for the reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from recollect.server.etags import unchanged
from recollect.server.problems import problem, respond

if TYPE_CHECKING:
    from recollect.model.original import Original


_PIECE_BYTES = 256 * 1024


class LinesResponse(StreamingResponse):
    """JSON Lines from a temporary file, which is closed when the response ends, read or not.

    Args:
        lines: What is sent.
        headers: Further headers.
    """

    def __init__(self, lines: Iterable[str], headers: Mapping[str, str] | None = None) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed when the response ends
        try:
            self._file.writelines(line.encode() for line in lines)
            self._file.seek(0)
        except BaseException:
            self._file.close()
            raise
        super().__init__(_pieces(self._file), media_type="application/jsonl", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        yield piece


# Originals as replies: whole or a range of their bytes, always to be saved and never to be shown as a page.


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


def saved_as(name: str) -> dict[str, str]:
    """The headers that have a browser keep a file under a name, and never show it as a page of this server."""
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "X-Content-Type-Options": "nosniff",
    }


def _sent(found: Original, part: ByteRange | None, tag: str) -> Response:
    whole = ByteRange(0, found.byte_count)
    sent = part or whole
    headers = {
        "ETag": tag,
        "Accept-Ranges": "bytes",
        "Content-Length": str(sent.stop - sent.start),
        **saved_as(found.name),
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


# Parts of something by bytes: ``Range`` and ``Content-Range`` (RFC 9110).

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes of something, one after the other.

    Attributes:
        start: The first, from 0.
        stop: Just behind the last.
    """

    start: int
    stop: int


class UnsatisfiableError(Exception):
    """The range begins behind the end."""


def range_of(header: str | None, total: int) -> ByteRange | None:
    """The one range that a header asks for; None: all of it, also where several ranges or other units are asked for.

    Raises:
        UnsatisfiableError: There is nothing in the range.
    """
    found = _RANGE.fullmatch(header.replace(" ", "").lower()) if header is not None else None
    if found is None:
        return None
    first, last = found.groups()
    if not first and not last:
        return None
    if not first:
        length = min(int(last), total)
        if not length:
            raise UnsatisfiableError
        return ByteRange(total - length, total)
    start = int(first)
    if last and int(last) < start:
        return None
    if start >= total:
        raise UnsatisfiableError
    return ByteRange(start, min(int(last) + 1, total) if last else total)


def bytes_of(original: Original, wanted: ByteRange) -> Iterator[bytes]:
    """The bytes of a range, piece by piece, however long it is."""
    left = wanted.stop - wanted.start
    skip = wanted.start
    for piece in original.pieces():
        if skip >= len(piece):
            skip -= len(piece)
            continue
        part = piece[skip : skip + left]
        skip = 0
        left -= len(part)
        yield part
        if not left:
            return
