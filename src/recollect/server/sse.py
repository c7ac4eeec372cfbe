"""Answers as Server-Sent Events: ``sources``, ``token``, ``citation``, ``done``, ``error``, each with a number."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from recollect.model import Answer, Citation, SearchReply, UnsupportedSentence
from recollect.model.record import json_of
from recollect.replies.retrieval import answer_json, search_reply_json
from recollect.server.problems import problem_of

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent


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
    return frame_stream(_identified(events, identify))


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


def numbered_frames(events: AsyncGenerator[tuple[str, Mapping[str, Any]]]) -> AsyncGenerator[bytes]:
    """Events as they are sent, numbered from 1; an error is the last of them."""
    return _identified(events, None)


async def _identified(
    events: AsyncGenerator[tuple[str, Mapping[str, Any]]], identify: Callable[[Mapping[str, Any]], str] | None
) -> AsyncGenerator[bytes]:
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


#: The events of an answer, and what ends it otherwise.
ANSWER_EVENTS = ("sources", "token", "citation", "unsupported", "done", "error")


async def answer_events(
    stream: AsyncGenerator[AskEvent], *, explain: bool = False
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """``sources``, ``token`` for each sentence with its ``citation`` and ``unsupported``, and ``done``.

    Args:
        stream: What `View.ask_events` gives; closed at the end.
        explain: Whether the whole answer says what came nearest to it.
    """
    cited: set[int] = set()
    async with aclosing(stream):
        async for piece in stream:
            match piece:
                case SearchReply():
                    yield "sources", json_of(search_reply_json(piece))
                case str():
                    yield "token", {"text": piece}
                case Citation():
                    cited.add(piece.marker)
                    yield "citation", json_of(piece)
                case UnsupportedSentence():
                    yield "unsupported", asdict(piece)
                case Answer():
                    # Quotes come with their answer, not one by one.
                    for citation in piece.citations:
                        if citation.marker not in cited:
                            yield "citation", json_of(citation)
                    yield "done", answer_json(piece, explain=explain)
