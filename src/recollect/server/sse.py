"""Server-Sent Events: how they are sent, the events of an answer, and streams that outlive their connection."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Header
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import WithJsonSchema
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from recollect.errors import ConflictError, NotFoundError, RateLimitedError, UsageError
from recollect.model import Answer, Citation, Decided, SearchReply, ShownPassage, UnsupportedSentence
from recollect.model.record import json_of
from recollect.replies.retrieval import shown_answer
from recollect.server.problems import problem_of

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent
    from recollect.server.caller import Caller


MEDIA_TYPE = "text/event-stream"


# A comment that often: proxies cut connections that are silent for half a minute or a minute.
_HEARTBEAT_SECONDS = 10.0


def documented_events(*names: str) -> dict[str, Any]:
    """What a route's ``responses`` say of a stream's content.

    Args:
        names: Of its events; none: they have data alone, as those of OpenAI's chat completions.
    """
    # OpenAPI 3.2 has `itemSchema`. In 3.1 it makes the document invalid, and generators of clients drop the operation.
    one: dict[str, Any] = {
        "type": "object",
        "required": ["data", *(["event"] if names else [])],
        "properties": {
            "event": {"type": "string", **({"enum": list(names)} if names else {})},
            "data": {"type": "string", **({"contentMediaType": "application/json"} if names else {})},
            "id": {"type": "string"},
        },
    }
    return {MEDIA_TYPE: {"schema": {"type": "string"}, "x-item-schema": one}}


def wants_events(request: Request) -> bool:
    """Whether a request asks for events rather than for one document."""
    return MEDIA_TYPE in request.headers.get("accept", "")


def event(name: str, data: Mapping[str, Any], number: int | str) -> bytes:
    """One event; its data is one line of JSON."""
    told = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()
    return format_sse_event(event=name, data_str=told, id=str(number))


def event_stream(
    events: AsyncGenerator[tuple[str, Mapping[str, Any]]],
    *,
    identify: Callable[[Mapping[str, Any]], str] | None = None,
) -> StreamingResponse:
    """A response of events, as slow as whoever reads it; an error is its last event.

    Whoever goes away ends ``events``, and with it the model that writes them.

    Args:
        events: Names and data, in their order.
        identify: Makes the id of an event from its data, where a stream can be gone on with; None: they are numbered.
    """
    return frame_stream(numbered_frames(events, identify))


def frame_stream(frames: AsyncGenerator[bytes]) -> StreamingResponse:
    """As `event_stream`, of events that are written already; none of them may fail."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return _ClosedResponse(_kept_alive(frames), media_type=MEDIA_TYPE, headers=headers)


class _ClosedResponse(StreamingResponse):
    """Ends what it sends however it ends: whoever goes away while something is sent leaves it in the middle."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            close = getattr(self.body_iterator, "aclose", None)
            if close is not None:
                await close()


async def numbered_frames(
    events: AsyncGenerator[tuple[str, Mapping[str, Any]]], identify: Callable[[Mapping[str, Any]], str] | None = None
) -> AsyncGenerator[bytes]:
    """Events as they are sent, numbered from 1 or called by ``identify``; an error is the last of them."""
    number = 0
    async with aclosing(events):
        try:
            async for name, data in events:
                number += 1
                yield event(name, data, number if identify is None else identify(data))
        except Exception as exc:  # noqa: BLE001 - the status was sent long ago: an event tells it
            yield event("error", problem_of(exc), number + 1)


async def _kept_alive(frames: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with aclosing(frames):
        waiting: asyncio.Task[bytes] | None = None
        try:
            while True:
                waiting = waiting or asyncio.ensure_future(anext(frames))
                done, _ = await asyncio.wait([waiting], timeout=_HEARTBEAT_SECONDS)
                if not done:
                    yield KEEPALIVE_COMMENT
                    continue
                frame = waiting.result()
                waiting = None
                yield frame
        except StopAsyncIteration:
            return
        finally:
            if waiting is not None:
                # One that has ended already is looked at too, or it is logged as an error that nobody has seen.
                waiting.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await waiting


# Answers as the events that every door of this server streams.

_EVENT_OF = {
    Decided: "outcome",
    SearchReply: "sources",
    Citation: "citation",
    UnsupportedSentence: "unsupported",
    ShownPassage: "passage",
}

#: The events of an answer, and what ends it otherwise.
ANSWER_EVENTS = ("outcome", "sources", "token", "citation", "unsupported", "passage", "done", "error")


async def answer_events(
    stream: AsyncGenerator[AskEvent], *, explain: bool = False
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """``outcome``, ``sources``, ``token`` for each sentence with its ``citation`` and ``unsupported``, and ``done``.

    Before ``done`` comes a ``passage`` for each that may help in place of an answer. ``outcome`` comes first; where a
    language model writes, after ``sources`` and before the first ``token``.

    Args:
        stream: What `View.ask_events` gives; closed at the end.
        explain: Whether the whole answer says what came nearest to it.
    """
    cited: set[int] = set()
    async with aclosing(stream):
        async for piece in stream:
            match piece:
                case str():
                    yield "token", {"text": piece}
                case Answer():
                    # Quotes and passages come with their answer, not one by one.
                    for one in (*piece.citations, *piece.passages):
                        if not (isinstance(one, Citation) and one.marker in cited):
                            yield _EVENT_OF[type(one)], json_of(one)
                    yield "done", json_of(shown_answer(piece, explain=explain))
                case Decided() | SearchReply() | Citation() | UnsupportedSentence():
                    if isinstance(piece, Citation):
                        cited.add(piece.marker)
                    yield _EVENT_OF[type(piece)], json_of(piece)


# Answers that go on for a while after their connection broke, so that whoever asked can come back for the rest.
#
# Only where it is asked for (`Recollect-Keep-Stream: 60`, seconds): otherwise whoever goes away ends the model's
# work. A stream lives in the process that began it, and is its caller's alone.


#: How long a stream is kept without a reader, in seconds; asks for that.
KEEP_HEADER = "Recollect-Keep-Stream"


#: The id of a stream that is kept.
STREAM_HEADER = "Recollect-Stream"


MOST_SECONDS = 300


#: How long the caller wants a stream to be kept; None: not at all.
KeepStream = Annotated[
    int | None,
    Header(
        alias=KEEP_HEADER,
        ge=1,
        le=MOST_SECONDS,
        description="Keep the stream so many seconds after its connection broke, for `GET /v1/streams/{id}`.",
    ),
    # Left out it is None; no header says null.
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_SECONDS}),
]


#: Who makes a request, and what ends it in its place.
HandOver: TypeAlias = "Callable[[], tuple[Caller, Callable[[], None]]]"


# Of one caller at a time, and of all: each holds a model's answer.
_MOST_OF_A_CALLER = 32


_MOST = 1_000


# What nobody has read yet, after which the model waits; and what was read, and may have been lost on its way.
_UNREAD_BYTES = 1024 * 1024


_READ_BYTES = 1024 * 1024


class KeptStream:
    """One answer's events, with those that came before.

    Args:
        frames: The events, in their order, as they are sent.
        owner: Whose.
        seconds: How long it is kept without a reader.
        ended: Called once when nothing more comes of it.
        dropped: Called once when it is not kept any more.
    """

    def __init__(
        self,
        frames: AsyncGenerator[bytes],
        *,
        owner: tuple[Any, ...],
        seconds: float,
        ended: Callable[[], None],
        dropped: Callable[[], None],
    ) -> None:
        self.owner = owner
        self._seconds = seconds
        self._ended = ended
        self._dropped = dropped
        self._kept: deque[bytes] = deque()
        self._first = 1
        self._sent = 0
        self._unread = self._read = 0
        self._reader = 0
        self._over = False
        self._moved = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._work = asyncio.ensure_future(self._produce(frames))
        # Until its first reader comes, who may be gone already.
        self._keep(seconds)

    @property
    def over(self) -> bool:
        """Whether all of it has come."""
        return self._over

    async def _produce(self, frames: AsyncGenerator[bytes]) -> None:
        try:
            async with aclosing(frames):
                async for frame in frames:
                    while self._unread > _UNREAD_BYTES:
                        await self._change()
                    self._kept.append(frame)
                    self._unread += len(frame)
                    self._notify()
        finally:
            self._over = True
            self._ended()
            self._notify()

    async def frames(self, after: int) -> AsyncGenerator[bytes]:
        """What came behind an event, and what comes; whoever reads it last is its reader.

        Raises:
            ConflictError: That is not kept any more.
            UsageError: No such event has come.
        """
        self.require(after)
        self._reader += 1
        mine = self._reader
        self._keep(None)
        self._notify()
        number = after
        try:
            while mine == self._reader:
                if number < self._last:
                    number += 1
                    frame = self._kept[number - self._first]
                    self._pass(number)
                    yield frame
                elif self._over:
                    return
                else:
                    await self._change()
        finally:
            if mine == self._reader:
                # Its last event may have been lost on its way: it is kept for as long.
                self._keep(self._seconds)

    def require(self, after: int) -> None:
        """Refuses to go on where it cannot.

        Raises:
            ConflictError: What came next is not kept any more.
            UsageError: No such event has come.
        """
        if after > self._last:
            raise UsageError(f"Last-Event-ID: no event {after} has come of this stream; {self._last} have.")
        if after + 1 < self._first:
            raise ConflictError("What came next in this stream is not kept any more: ask the question again.")

    def close(self) -> None:
        """End it: the model stops, and nothing of it is kept."""
        self._keep(None)
        self._reader += 1
        self._notify()
        self._work.cancel()
        self._dropped()

    @property
    def _last(self) -> int:
        return self._first + len(self._kept) - 1

    def _pass(self, number: int) -> None:
        """Count an event as read, and let go of those that were read long ago."""
        if number <= self._sent:
            return
        self._sent = number
        size = len(self._kept[number - self._first])
        self._unread -= size
        self._read += size
        while self._read > _READ_BYTES and self._first < number:
            self._read -= len(self._kept.popleft())
            self._first += 1
        self._notify()

    def _keep(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.close)

    def _notify(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def _change(self) -> None:
        await self._moved.wait()


class KeptStreams:
    """The streams that a process keeps. Used in its event loop alone."""

    def __init__(self) -> None:
        self._streams: dict[str, KeptStream] = {}

    def begin(
        self, events: AsyncGenerator[tuple[str, Mapping[str, Any]]], *, hand_over: HandOver, seconds: int
    ) -> StreamingResponse:
        """A response of events that is gone on with where its connection breaks.

        Raises:
            RateLimitedError: The caller has as many as they may, or there are too many.
        """
        caller, end = hand_over()
        owner = _owner(caller)
        busy = [one for one in self._streams.values() if not one.over]
        if len(busy) >= _MOST or sum(one.owner == owner for one in busy) >= _MOST_OF_A_CALLER:
            end()
            raise RateLimitedError("Too many streams are kept: wait until one has ended.", retry_after_seconds=5.0)
        self._make_room()
        name = secrets.token_urlsafe(18)
        kept = KeptStream(
            numbered_frames(events),
            owner=owner,
            seconds=seconds,
            ended=end,
            dropped=lambda: self._drop(name),
        )
        self._streams[name] = kept
        response = frame_stream(kept.frames(0))
        response.headers[STREAM_HEADER] = name
        return response

    def resume(self, name: str, caller: Caller, after: int) -> StreamingResponse:
        """What came of a stream behind an event, and what comes.

        Raises:
            NotFoundError: No such stream of the caller's is kept here.
            ConflictError: What came next is not kept any more.
            UsageError: No such event has come.
        """
        kept = self._of(name, caller)
        kept.require(after)
        response = frame_stream(kept.frames(after))
        response.headers[STREAM_HEADER] = name
        return response

    def end(self, name: str, caller: Caller) -> None:
        """End a stream that nobody waits for.

        Raises:
            NotFoundError: No such stream of the caller's is kept here.
        """
        self._of(name, caller).close()

    async def close(self) -> None:
        """End all of them."""
        for kept in list(self._streams.values()):
            kept.close()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)

    def _of(self, name: str, caller: Caller) -> KeptStream:
        kept = self._streams.get(name)
        if kept is None or kept.owner != _owner(caller):
            raise NotFoundError(
                "There is no such stream: it was kept too long ago, or by another process. Ask the question again."
            )
        return kept

    def _drop(self, name: str) -> None:
        self._streams.pop(name, None)

    def _make_room(self) -> None:
        for kept in [one for one in self._streams.values() if one.over][: max(0, len(self._streams) + 1 - _MOST)]:
            kept.close()


def answer_response(
    kept: KeptStreams,
    events: AsyncGenerator[tuple[str, Mapping[str, Any]]],
    hand_over: HandOver,
    *,
    seconds: int | None,
) -> StreamingResponse:
    """An answer as events, gone on with after its connection broke where that is asked for.

    Args:
        kept: The streams of the process.
        events: The answer's.
        hand_over: Tells who asks, and what ends their request; called where the stream is kept.
        seconds: How long it is kept without a reader; None: not at all.
    """
    return event_stream(events) if seconds is None else kept.begin(events, hand_over=hand_over, seconds=seconds)


def _owner(caller: Caller) -> tuple[Any, ...]:
    return (caller.tenant, str(caller.credential), caller.principal)
