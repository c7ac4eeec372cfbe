"""Lines that are sent as a file: made first, so that a slow client holds no connection to the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import IO

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

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
