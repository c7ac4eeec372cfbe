"""The connections of a client that waits: requests sent, sent again where that is safe, and streams gone on with."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

import httpx2

from recollect.client.calls.base import Call, Event, EventStream, Pages, Pause, Reply, Steps
from recollect.client.requests import LIMITS, Attempts, Settings, refusal_of, request_of, too_long, trusted, unreadable
from recollect.client.streams import MAX_EVENT_BYTES, Downloading, Following
from recollect.errors import RecollectError
from recollect.forking import leave_to_parent, renew_in_children

T = TypeVar("T")

# Of a request that ends a stream which nobody reads any more: it is not worth waiting for.
_LEAVING: Mapping[str, Any] = {"retries": 0, "timeout_seconds": 2.0, "on_reply": None}


class Pool:
    """The connections to a server. Safe to share between threads, and renewed in the child of a fork.

    Args:
        url: Of the server.
        headers: Of every request; a key is among them.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.url = url
        self._headers = dict(headers)
        self.http = self._opened()
        renew_in_children(self)

    def _opened(self) -> httpx2.Client:
        # A redirect is not followed: it could lead the key elsewhere.
        return httpx2.Client(headers=self._headers, limits=LIMITS, follow_redirects=False, verify=trusted())

    def renew_in_child(self) -> None:
        """In the child of a fork: connections of its own. The parent's are neither used nor closed."""
        leave_to_parent(self.http)
        self.http = self._opened()

    def close(self) -> None:
        """Close what is open; the next request opens it anew."""
        old, self.http = self.http, self._opened()
        old.close()


class Connection:
    """Asks a server, and waits for what it says.

    Args:
        pool: The connections to it.
        settings: How it is asked.
    """

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self.pool = pool
        self.url = pool.url
        self.settings = settings

    def run(self, made: Call[T] | Steps[T]) -> T:
        """Send a request, or several in turn."""
        if isinstance(made, Call):
            return self._sent(made)
        try:
            asked = next(made)
            while True:
                try:
                    given = self._step(asked)
                except RecollectError as exc:
                    asked = made.throw(exc)
                else:
                    asked = made.send(given)
        except StopIteration as end:
            result: T = end.value
            return result

    def each(self, made: Pages[T] | Steps[Pages[T]]) -> Iterator[T]:
        """The entries of a list, page by page."""
        pages = made if isinstance(made, Pages) else self.run(made)
        cursor = pages.cursor
        while True:
            page = self._sent(pages.page(cursor, limit=100))
            yield from pages.items(page)
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def follow(self, stream: EventStream[T]) -> Iterator[T]:
        """The events of a stream, over as many connections as it takes."""
        following = Following(stream, self.settings, url=self.url)
        try:
            while not following.over:
                try:
                    yield from self._events(following)
                except httpx2.TransportError as exc:
                    following.broke(exc)
                time.sleep(following.wait)
        finally:
            leave = following.leaving()
            if leave is not None:
                with suppress(RecollectError):
                    Connection(self.pool, replace(self.settings, **_LEAVING)).run(leave)

    def _events(self, following: Following[T]) -> Iterator[T]:
        """What comes over one connection."""
        call = following.call()
        with self._open(call, call.headers) as response:
            if response.status_code >= 300:
                following.refused(response.status_code, response.headers, self._body(response))
                return
            following.opened(response.headers)
            for event in httpx2.EventSource(response, max_event_size=MAX_EVENT_BYTES):
                yield from following.take(Event(event.event, event.data, event.id, self.url))
                if following.over:
                    return
        following.broke(None)

    def download(self, call: Call[Any]) -> Iterator[bytes]:
        """The bytes of a reply as they come; a download that can be gone on with is, where its connection broke."""
        attempts, got = Downloading(call, self.settings, url=self.url), 0
        while not attempts.over:
            try:
                asked = attempts.call(got)
                with self._open(asked, asked.headers) as response:
                    if response.status_code >= 300:
                        raise refusal_of(response.status_code, response.headers, self._body(response), url=self.url)
                    attempts.opened(response.status_code, response.headers)
                    for piece in response.iter_bytes():
                        got += len(piece)
                        yield piece
                    attempts.over = True
            except httpx2.HTTPError as exc:
                time.sleep(attempts.broke(exc, got))

    def head(self, call: Call[Any]) -> Reply:
        """What the headers say of a download: that of its first byte alone."""
        with self._open(call, {**call.headers, "Range": "bytes=0-0"}) as response:
            if response.status_code >= 300:
                raise refusal_of(response.status_code, response.headers, self._body(response), url=self.url)
            return Reply(status=response.status_code, headers=dict(response.headers))

    def _step(self, asked: Call[Any] | Pause) -> Any:  # noqa: ANN401 - of each its own
        if isinstance(asked, Call):
            return self._sent(asked)
        return time.sleep(asked.seconds)

    def _sent(self, call: Call[T]) -> T:
        attempts = Attempts(call, self.settings, url=self.url)
        while True:
            try:
                with self._open(call, attempts.headers) as response:
                    status, headers = response.status_code, response.headers
                    body = self._body(response)
            except httpx2.TransportError as exc:
                wait = attempts.failed(exc)
            else:
                if status < 300:
                    return attempts.replied(status, headers, body)
                wait = attempts.refused(status, headers, body)
            time.sleep(wait)

    def _body(self, response: httpx2.Response) -> bytes:
        body, began = bytearray(), time.monotonic()
        try:
            for piece in response.iter_bytes():
                body += piece
                if time.monotonic() - began > (self.settings.total_seconds or math.inf):
                    raise httpx2.ReadTimeout("its reply takes too long")
                if len(body) > self.settings.max_reply_bytes:
                    raise too_long(self.url, self.settings.max_reply_bytes)
        except httpx2.DecodingError as exc:
            raise unreadable(self.url, exc) from exc
        return bytes(body)

    @contextmanager
    def _open(self, call: Call[Any], headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
        with ExitStack() as open_files:
            sends = {} if call.upload is None else open_files.enter_context(call.upload.opened())
            yield open_files.enter_context(
                self.pool.http.stream(**request_of(self.url, call, headers, self.settings), **sends)
            )
