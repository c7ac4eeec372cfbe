"""Connections that their clients leave hanging are closed: nobody holds one, and what belongs to it, for nothing.

uvicorn limits only how long a connection may be idle between two requests.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: How long a client may take for the head of a request, and for the rest of a body that was replied to already.
HEAD_SECONDS = 30.0
#: How long a body may pause on its way, and a reply lie unread.
STALLED_SECONDS = 120.0
#: How often that is looked at.
LOOK_SECONDS = 5.0
#: Connections that have sent no whole head yet. For each further one the oldest is closed.
MOST_WITHOUT_REQUEST = 1_000
#: A body may have so many chunks, however short they are.
MOST_SHORT_CHUNKS = 1_000

# Each chunk is parsed by itself: sixty times as much for a body of single bytes as for the same body in one piece.
_CHUNK_BYTES = 64


class _Parser(h11.Connection):
    """h11's, which refuses bodies in crumbs."""

    _chunks = _bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks += event.chunk_start
            self._bytes += len(event.data)
            if self._chunks > MOST_SHORT_CHUNKS and self._bytes < _CHUNK_BYTES * self._chunks:
                raise h11.RemoteProtocolError("The body comes in too many too short chunks.")
        return event


class Connection(H11Protocol):
    """One connection. How long a request is computed, and how long a stream is silent, is not limited here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        super().__init__(*args, **kwargs)
        self.conn = _Parser(h11.SERVER, self.config.h11_max_incomplete_event_size or 64 * 1024)
        self._received = 0
        self._seen: tuple[object, ...] = ()
        self._seen_at = self.loop.time()
        self._looking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look at what the client does."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > MOST_WITHOUT_REQUEST:
            # All are of this class: the server makes no others.
            known = cast("set[Connection]", self.connections)
            waiting = [one for one in known if one._awaited()[1] == ("asks", None)]
            if len(waiting) > MOST_WITHOUT_REQUEST:
                min(waiting, key=lambda one: one._seen_at).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        self._received += len(data)
        super().data_received(data)

    def _look(self) -> None:
        (seconds, seen), now = self._awaited(), self.loop.time()
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        elif now - self._seen_at > seconds:
            self.transport.abort()
            return
        self._looking = self.loop.call_later(LOOK_SECONDS, self._look)

    def _awaited(self) -> tuple[float, tuple[object, ...]]:
        """How long the client may leave this as it is, and what would change if it does something."""
        unsent, cycle = self.transport.get_write_buffer_size(), self.cycle
        if unsent:
            return STALLED_SECONDS, ("reads", cycle, unsent)
        if self.conn.their_state is h11.SEND_BODY:
            if cycle.response_complete:
                return HEAD_SECONDS, ("ends", cycle)
            return inf if self.flow.read_paused else STALLED_SECONDS, ("sends", cycle, self._received)
        if self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None:
            return HEAD_SECONDS, ("asks", cycle)
        return inf, ()
