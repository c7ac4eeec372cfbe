"""A download that goes on where its connection broke, where the server can begin in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from recollect.client.attempts import Attempts, Settings, unavailable
from recollect.client.calls.base import Call, Reply
from recollect.errors import ServerError
from recollect.model.original import Original


class Lines:
    """Lines of what comes in pieces, each with its end."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, piece: bytes) -> Iterator[str]:
        """Those that a piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        return (f"{line.decode()}\n" for line in whole)

    def rest(self) -> Iterator[str]:
        """What is left at the end."""
        if self._rest:
            yield self._rest.decode()


def original_of(head: Reply, opened: Callable[[], Iterator[bytes]]) -> Original:
    """The file that a document was read from, as the headers of its first byte tell.

    Args:
        head: The reply to a request for that.
        opened: Fetches all of it.
    """
    name = unquote(head.headers.get("content-disposition", "").rpartition("filename*=UTF-8''")[2])
    count = head.headers.get("content-range", "").rpartition("/")[2]
    return Original(
        name=name or "original",
        mime_type=head.headers.get("content-type", "application/octet-stream").partition(";")[0],
        byte_count=int(count if count.isdecimal() else head.headers.get("content-length", "0")),
        file_hash=bytes.fromhex((head.etag or "").strip('"')),
        opened=opened,
    )


class Downloading:
    """Where a download is.

    Args:
        call: What is asked for.
        settings: How often.
        url: Of the server.
    """

    def __init__(self, call: Call[Any], settings: Settings, *, url: str) -> None:
        self._call = call
        self._url = url
        self._attempts = Attempts(call, settings, url=url)
        self._got = 0
        self._etag: str | None = None
        self.over = False

    def call(self, got: int) -> Call[Any]:
        """What asks for it, or for what is behind the bytes that have come."""
        self._got = got
        # Compressed, it has no places to begin at.
        headers = {**self._call.headers, "Accept-Encoding": "identity"}
        if got and self._etag is not None:
            headers |= {"Range": f"bytes={got}-", "If-Range": self._etag}
        return replace(self._call, headers=headers)

    def opened(self, status: int, headers: Mapping[str, str]) -> None:
        """Its connection is open.

        Raises:
            ServerError: What comes is not the rest of what has come.
        """
        if self._got and status != 206:
            raise ServerError(
                f"What was being downloaded from {self._url} has changed meanwhile: download it again.",
                url=self._url,
                status=status,
            )
        if headers.get("accept-ranges") == "bytes":
            self._etag = headers.get("etag")

    def broke(self, exc: Exception, got: int) -> float:
        """Its connection broke; returns how long to wait before the next.

        Raises:
            ServerUnavailableError: It cannot be gone on with.
        """
        if got == 0 or self._etag is not None:
            return self._attempts.failed(exc)
        raise unavailable(self._url, exc) from exc
