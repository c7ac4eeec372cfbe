"""Running the server: bound first, then served by uvicorn, with a worker beside it, until it is told to end."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.errors import UsageError
from recollect.operations.declaring import make_checks
from recollect.pipeline.working import worker_of
from recollect.server.app import create_app
from recollect.server.authentication import Authenticator

if TYPE_CHECKING:
    from fastapi import FastAPI

    from recollect.pipeline import RAGPipeline


logger = logging.getLogger(__name__)


# Requests that run when the server is told to end have so long; then their connections are cut.
_GRACE_SECONDS = 20


_BACKLOG = 2048


def serve(
    rag: RAGPipeline,
    *,
    worker: bool = True,
    on_ready: Callable[[str], None] = lambda _: None,
    install: Callable[[FastAPI], None] = lambda _: None,
) -> None:
    """Serve a store until a signal says otherwise: the first lets requests and jobs come to their end.

    Args:
        rag: The open store; its settings say where the server listens.
        worker: Whether jobs are run beside it.
        on_ready: Told the address when requests are accepted.
        install: Adds to the application: the web interface (`recollect.ui.install`), or nothing.

    Raises:
        ConfigurationError: Anybody on the network could ask: it would listen at an address that is not this machine's
            alone, and no credentials are configured.
        UsageError: The address cannot be listened at.
    """
    settings = rag.config.server
    require_authentication(rag)
    app = create_app(rag)
    install(app)
    config = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=settings.keep_alive_seconds,
        h11_max_incomplete_event_size=64 * 1024,
        proxy_headers=False,
    )
    keep_few_arenas()
    with (
        _listening(settings.host, settings.port) as (bound, url),
        seldom_collecting() as settle,
        _working(rag, wanted=worker) as stop_working,
    ):
        server = _Server(config, on_ready=lambda: on_ready(url), on_end=stop_working)
        _warm(app, rag, settle)
        server.run(sockets=[bound])


def require_authentication(rag: RAGPipeline) -> None:
    """Refuse to be reached from elsewhere by anybody.

    Raises:
        ConfigurationError: See `serve`.
    """
    Authenticator(rag).require_usable()


class _Server(uvicorn.Server):
    """Tells when requests are accepted, and when no more are."""

    def __init__(self, config: uvicorn.Config, *, on_ready: Callable[[], None], on_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._on_end = on_end

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn does, which afterwards sends itself what it was sent: the store is to be closed first."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_end()
        await super().shutdown(sockets=sockets)


@contextmanager
def _listening(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """A socket that is bound; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) through sockets that name their protocol alone: through others every small
    # response waits forty milliseconds until what was sent before it is confirmed.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host.strip("[]"), port))
        except OSError as exc:
            raise UsageError(
                f"Nothing can listen at {host}:{port} ({exc.strerror}). --port 0 takes any that is free."
            ) from exc
        bound.listen(_BACKLOG)
        bound.setblocking(False)
        name = f"[{host.strip('[]')}]" if family == socket.AF_INET6 else host
        yield bound, f"http://{name}:{bound.getsockname()[1]}"
    finally:
        bound.close()


@contextmanager
def _working(rag: RAGPipeline, *, wanted: bool) -> Iterator[Callable[[], None]]:
    """A worker in a thread of its own, for the time of a block.

    Yields:
        What tells it to take no more jobs: it ends while the last requests do.
    """
    if not wanted:
        yield lambda: None
        return

    worker = worker_of(rag.standpoint.assembly, concurrency=rag.config.server.worker_concurrency)

    def work() -> None:
        try:
            worker.run()
        except Exception:
            logger.exception("The worker ended. Requests are answered; jobs wait for another one.")

    thread = threading.Thread(target=work, name="recollect-worker")
    thread.start()
    try:
        yield worker.stop
    finally:
        worker.stop()
        thread.join()


def _warm(app: FastAPI, rag: RAGPipeline, settle: Callable[[], None]) -> None:
    """Make and load, while the first request is awaited, what it would wait for otherwise; then ``settle``."""

    def load() -> None:
        try:
            assembly = rag.standpoint.assembly
            assembly.embedder.embed_query("a question")
            readers = [assembly.reader_for(assembly.embedder)]
            if assembly.config.answer.provider != "extractive":
                readers.append(assembly.checker_for(assembly.embedder))
            for reader in filter(None, readers):
                reader.read("a question", ["a passage"])
        except Exception as exc:  # noqa: BLE001 - the first request will say so to whoever asks
            logger.warning("The embedding model cannot be loaded yet: %s", exc)

    warming = [
        threading.Thread(target=work, name="recollect-warm", daemon=True) for work in (load, lambda: make_ready(app))
    ]

    def settled() -> None:
        for thread in warming:
            thread.join()
        settle()

    for thread in (*warming, threading.Thread(target=settled, name="recollect-settle", daemon=True)):
        thread.start()


def make_ready(app: FastAPI) -> None:
    """Make what is made of routes, operations and templates when they are first used, which takes seconds."""
    make_checks()
    # FastAPI makes what validates requests when a path is first compared with a route's.
    nowhere = {"type": "http", "method": "GET", "path": "/-", "root_path": "", "headers": []}
    for route in app.router.routes:
        route.matches(dict(nowhere))
    getattr(app.state, "warm_up", lambda: None)()


# How memory is handed out and taken back in a process of many threads that runs for months.

# <malloc.h>
_M_ARENA_MAX = -8


_ARENAS = 2


# Objects that a young collection waits for, and how many of each kind the next older one does. By default it comes
# several times in every search, and looks each time at what the searches that run are just using.
_THRESHOLDS = (10_000, 20, 10)


def keep_few_arenas() -> bool:
    """Have all threads share two heaps of the C library, where it would give every thread one of its own.

    What libraries in C allocate (models, the driver, compression) is small beside what is kept in half-empty heaps: a
    server of 70 threads under half an hour of mixed load holds 23 MiB less, and is as large as it gets after twenty
    minutes instead of forty. Python's own objects do not come from there. ``MALLOC_ARENA_MAX`` says otherwise, and
    other C libraries than glibc have no such heaps.

    Returns:
        Whether anything was set.
    """
    if "MALLOC_ARENA_MAX" in os.environ or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl
        return False
    return bool(mallopt(_M_ARENA_MAX, _ARENAS))


@contextmanager
def seldom_collecting() -> Iterator[Callable[[], None]]:
    """Have Python look for garbage in cycles less often, within the block.

    A server's objects are freed by their counts; what it makes in cycles is little.

    Yields:
        To be called once everything that stays is there: modules, routes, models. It is not looked through any more,
        which would stop all threads for a tenth of a second.
    """

    def settle() -> None:
        gc.collect()
        gc.freeze()

    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield settle
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


# Connections that their clients leave hanging are closed: nobody holds one, and what belongs to it, for nothing.
#
# uvicorn limits only how long a connection may be idle between two requests.


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
