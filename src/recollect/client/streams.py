"""Events and downloads that go on after their connection broke; nothing here sends anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

from httpx2 import ConnectError

from recollect.client.calls.base import Call, Event, EventStream, Reply, nothing, segment
from recollect.client.requests import Attempts, Settings, error_of, strange, unavailable
from recollect.errors import (
    ConflictError,
    NotFoundError,
    RecollectError,
    ServerError,
    ServerUnavailableError,
    StreamBrokenError,
)
from recollect.model.original import Original

T = TypeVar("T")


#: Asks the server to keep a stream so many seconds after its connection broke.
KEEP_HEADER = "Recollect-Keep-Stream"

#: What the server calls the stream that it keeps.
STREAM_HEADER = "Recollect-Stream"
KEEP_SECONDS = 60
MEDIA_TYPE = "text/event-stream"

# What the error of a broken stream says has come, at most.
_KEPT_PIECES = 10_000

#: One event at most: what a search of a thousand passages found is one.
MAX_EVENT_BYTES = 64 * 1024 * 1024


class Following(Generic[T]):
    """Where a stream is: what asks for it, what asks for the rest of it, and what has come.

    Args:
        stream: Which.
        settings: How often it is tried.
        url: Of the server.

    Attributes:
        over: Whether its last event has come.
        wait: Seconds before its next connection is opened.
    """

    def __init__(self, stream: EventStream[T], settings: Settings, *, url: str) -> None:
        self._stream = stream
        self._settings = settings
        self._url = url
        self._attempts = Attempts(stream.call, settings, url=url)
        self._last_id = ""
        self._kept: str | None = None
        self._received: deque[T] = deque(maxlen=_KEPT_PIECES)
        self.over = False
        self.wait = 0.0

    def call(self) -> Call[Any]:
        """What asks for it, or for the rest of it."""
        call = self._stream.call
        headers = {**call.headers, "Accept": MEDIA_TYPE, "Accept-Encoding": "identity"}
        if self._kept is not None:
            headers["Last-Event-ID"] = self._last_id or "0"
            return Call(method="GET", path=stream_path(self._kept), headers=headers, read=call.read)
        if self._stream.resumes == "kept":
            headers[KEEP_HEADER] = str(KEEP_SECONDS)
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        return replace(call, headers=headers)

    def leaving(self) -> Call[None] | None:
        """What tells the server that nobody waits any more; None: it knows by the connection."""
        if self._kept is None or self.over:
            return None
        return Call(method="DELETE", path=stream_path(self._kept), read=nothing)

    def opened(self, headers: Mapping[str, str]) -> None:
        """Its connection is open.

        Raises:
            ServerError: It is none of events.
        """
        if headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
            raise strange(self._url, 200, headers)
        if self._stream.resumes == "kept":
            self._kept = headers.get(STREAM_HEADER, self._kept)

    def take(self, event: Event) -> Sequence[T]:
        """What an event gives.

        Raises:
            RecollectError: It tells an error.
        """
        self._last_id = event.id or self._last_id
        # It has come further: what went wrong before does not count any more.
        self._attempts = Attempts(self._stream.call, self._settings, url=self._url)
        if event.name == "error":
            self.over = True
            raise self._told(event.json())
        try:
            given = self._stream.read(event)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise ServerError(
                f"The server at {self._url} sent an event {event.name!r} that this version does not understand.",
                url=self._url,
            ) from exc
        self.over = event.name in self._stream.ends
        self._received.extend(given)
        return given

    def broke(self, exc: Exception | None) -> None:
        """Its connection broke, or ended too early: ``wait`` says when the next is opened.

        Raises:
            StreamBrokenError: It does not go on.
            ServerUnavailableError: It has not begun.
        """
        reason = exc or ServerError("the connection ended before the stream did", url=self._url)
        if not self._resumable(exc):
            raise self._lost(reason) if self._last_id else unavailable(self._url, reason) from exc
        try:
            self.wait = self._attempts.failed(reason)
        except ServerUnavailableError:
            if self._last_id:
                raise self._lost(reason) from exc
            raise

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """The server does not give it, or the rest of it: ``wait`` says when it is asked again.

        Raises:
            StreamBrokenError: The rest of it is not to be had.
            RecollectError: What the server says is wrong.
        """
        try:
            self.wait = self._attempts.refused(status, headers, body)
        except RecollectError as exc:
            if self._kept is None and not self._last_id:
                raise
            raise self._lost(exc) from exc

    def _resumable(self, exc: Exception | None) -> bool:
        if self._kept is not None or (self._last_id and self._stream.resumes == "restarted"):
            return True
        # What has not reached the server can be asked again, and so can what changes nothing.
        return not self._last_id and (isinstance(exc, ConnectError) or not self._stream.call.writes)

    def _told(self, problem: object) -> RecollectError:
        told = problem if isinstance(problem, dict) else {}
        status = told.get("status")
        return error_of(told, url=self._url, status=status if isinstance(status, int) else 500)

    def _lost(self, reason: Exception) -> StreamBrokenError:
        gone = isinstance(reason, NotFoundError | ConflictError)
        why = "the server does not keep it any more" if gone else f"it could not be gone on with ({reason})"
        error = StreamBrokenError(
            f"The connection to {self._url} broke in the middle of a stream, and {why}. What had come is in its "
            "received; ask again for all of it.",
            url=self._url,
            received=self._received,
        )
        error.request_id = getattr(reason, "request_id", None)
        return error


def stream_path(stream: str) -> str:
    """Where a stream is that the server keeps."""
    return f"/v1/streams/{segment(stream)}"


# A download that goes on where its connection broke, where the server can begin in the middle.


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
