"""Lines that are sent as a file: made first, so that whoever reads slowly holds no connection to the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO

from fastapi.responses import StreamingResponse

_PIECE_BYTES = 256 * 1024


def sent_lines(lines: Iterable[str]) -> StreamingResponse:
    """A response of lines."""
    copy = TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        copy.writelines(line.encode() for line in lines)
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return StreamingResponse(_pieces(copy), media_type="application/jsonl")


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
