"""The connections of a client that awaits; what differs from `connection` is that nothing blocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import httpx2

from recollect.client.calls.base import Call, Event, EventStream, Pages, Pause, Reply, Steps
from recollect.client.requests import LIMITS, Attempts, Settings, refusal_of, request_of, too_long, trusted, unreadable
from recollect.client.streams import MAX_EVENT_BYTES, Downloading, Following
from recollect.errors import RecollectError
from recollect.forking import leave_to_parent, renew_in_children

T = TypeVar("T")

# Of a request that ends a stream which nobody reads any more: it is not worth waiting for.
_LEAVING: Mapping[str, Any] = {"retries": 0, "timeout_seconds": 2.0, "on_reply": None}


class AsyncPool:
    """The connections to a server, of one event loop at a time, and renewed in the child of a fork.

    Args:
        url: Of the server.
        headers: Of every request; a key is among them.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.url = url
        self._headers = dict(headers)
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._of: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()

    @property
    def http(self) -> httpx2.AsyncClient:
        """Those of the running event loop: a connection is of the loop that opened it."""
        loop = asyncio.get_running_loop()
        if loop not in self._of:
            # A redirect is not followed: it could lead the key elsewhere.
            self._of[loop] = httpx2.AsyncClient(
                headers=self._headers, limits=LIMITS, follow_redirects=False, verify=trusted()
            )
        return self._of[loop]

    def renew_in_child(self) -> None:
        """In the child of a fork: connections of its own. The parent's are neither used nor closed."""
        leave_to_parent(*self._of.values())
        self._begin()

    async def close(self) -> None:
        """Close what is open in the running event loop; the next request opens it anew."""
        old = self._of.pop(asyncio.get_running_loop(), None)
        if old is not None:
            await old.aclose()


class AsyncConnection:
    """Asks a server, and awaits what it says.

    Args:
        pool: The connections to it.
        settings: How it is asked.
    """

    def __init__(self, pool: AsyncPool, settings: Settings) -> None:
        self.pool = pool
        self.url = pool.url
        self.settings = settings

    async def run(self, made: Call[T] | Steps[T]) -> T:
        """Send a request, or several in turn."""
        if isinstance(made, Call):
            return await self._sent(made)
        try:
            asked = next(made)
            while True:
                try:
                    given = await self._step(asked)
                except RecollectError as exc:
                    asked = made.throw(exc)
                else:
                    asked = made.send(given)
        except StopIteration as end:
            result: T = end.value
            return result

    async def each(self, made: Pages[T] | Steps[Pages[T]]) -> AsyncGenerator[T]:
        """The entries of a list, page by page."""
        pages = made if isinstance(made, Pages) else await self.run(made)
        cursor = pages.cursor
        while True:
            page = await self._sent(pages.page(cursor, limit=100))
            for one in pages.items(page):
                yield one
            cursor = page["next_cursor"]
            if cursor is None:
                return

    async def follow(self, stream: EventStream[T]) -> AsyncGenerator[T]:
        """The events of a stream, over as many connections as it takes."""
        following = Following(stream, self.settings, url=self.url)
        try:
            while not following.over:
                try:
                    async with aclosing(self._events(following)) as events:
                        async for one in events:
                            yield one
                except httpx2.TransportError as exc:
                    following.broke(exc)
                await asyncio.sleep(following.wait)
        finally:
            leave = following.leaving()
            if leave is not None:
                with suppress(RecollectError):
                    await AsyncConnection(self.pool, replace(self.settings, **_LEAVING)).run(leave)

    async def _events(self, following: Following[T]) -> AsyncGenerator[T]:
        """What comes over one connection."""
        call = following.call()
        async with self._open(call, call.headers) as response:
            if response.status_code >= 300:
                following.refused(response.status_code, response.headers, await self._body(response))
                return
            following.opened(response.headers)
            async for event in httpx2.EventSource(response, max_event_size=MAX_EVENT_BYTES):
                for one in following.take(Event(event.event, event.data, event.id, self.url)):
                    yield one
                if following.over:
                    return
        following.broke(None)

    async def download(self, call: Call[Any]) -> AsyncGenerator[bytes]:
        """The bytes of a reply as they come; a download that can be gone on with is, where its connection broke."""
        attempts, got = Downloading(call, self.settings, url=self.url), 0
        while not attempts.over:
            try:
                asked = attempts.call(got)
                async with self._open(asked, asked.headers) as response:
                    if response.status_code >= 300:
                        raise refusal_of(
                            response.status_code, response.headers, await self._body(response), url=self.url
                        )
                    attempts.opened(response.status_code, response.headers)
                    async for piece in response.aiter_bytes():
                        got += len(piece)
                        yield piece
                    attempts.over = True
            except httpx2.HTTPError as exc:
                await asyncio.sleep(attempts.broke(exc, got))

    async def head(self, call: Call[Any]) -> Reply:
        """What the headers say of a download: that of its first byte alone."""
        async with self._open(call, {**call.headers, "Range": "bytes=0-0"}) as response:
            if response.status_code >= 300:
                raise refusal_of(response.status_code, response.headers, await self._body(response), url=self.url)
            return Reply(status=response.status_code, headers=dict(response.headers))

    async def _step(self, asked: Call[Any] | Pause) -> Any:  # noqa: ANN401 - of each its own
        if isinstance(asked, Call):
            return await self._sent(asked)
        return await asyncio.sleep(asked.seconds)

    async def _sent(self, call: Call[T]) -> T:
        attempts = Attempts(call, self.settings, url=self.url)
        while True:
            try:
                async with self._open(call, attempts.headers) as response:
                    status, headers = response.status_code, response.headers
                    body = await self._body(response)
            except httpx2.TransportError as exc:
                wait = attempts.failed(exc)
            else:
                if status < 300:
                    return attempts.replied(status, headers, body)
                wait = attempts.refused(status, headers, body)
            await asyncio.sleep(wait)

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        try:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > self.settings.max_reply_bytes:
                    raise too_long(self.url, self.settings.max_reply_bytes)
        except httpx2.DecodingError as exc:
            raise unreadable(self.url, exc) from exc
        return bytes(body)

    @asynccontextmanager
    async def _open(self, call: Call[Any], headers: Mapping[str, str]) -> AsyncIterator[httpx2.Response]:
        async with AsyncExitStack() as open_files:
            sends = {} if call.upload is None else open_files.enter_context(call.upload.opened())
            yield await open_files.enter_async_context(
                self.pool.http.stream(**request_of(self.url, call, headers, self.settings), **sends)
            )
