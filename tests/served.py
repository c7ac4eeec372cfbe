"""A server that listens, on a store with something in it, and what comes between it and its clients."""

from __future__ import annotations

import asyncio
import socket
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import uvicorn

from recollect import Client, Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.pipeline.working import worker_of
from recollect.server.app import create_app
from recollect.server.running import Connection, make_ready
from recollect.store.database import Database
from recollect.ui import install


class _Server(uvicorn.Server):
    """Leaves no connection behind, which a process would take along; here another test would be blamed for it."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # Whose replies are not read, and those that came while the others were closed: browsers connect ahead of need.
        for _ in range(3):
            for connection in list(self.server_state.connections):
                connection.transport.abort()
            await asyncio.sleep(0)


@contextmanager
def listening(app, port: int = 0) -> Iterator[str]:
    """An application that is served, for the time of a block."""
    # Named, so that what is sent is not held back until the other end has confirmed what was sent before.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    bound.listen()
    settings = uvicorn.Config(app, http=Connection, log_config=None, lifespan="on", timeout_graceful_shutdown=2)
    server = _Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    with _never_waiting_in(thread):
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            bound.close()


@contextmanager
def _never_waiting_in(thread: threading.Thread) -> Iterator[None]:
    """For the time of the block a server's event loop may not wait for the database, or all its visitors would."""
    take = Database._check_out
    waited = []

    def take_elsewhere(self, pool):
        if threading.current_thread() is thread:
            waited.append("".join(traceback.format_stack(limit=12)))
        return take(self, pool)

    with patch.object(Database, "_check_out", take_elsewhere):
        yield
    assert waited == [], waited[0]


@dataclass
class Served:
    """What is served, and where."""

    rag: RAGPipeline
    url: str

    def client(self, key: str | None = None, **options) -> Client:
        return Client(self.url, key, **options)


@contextmanager
def serving(
    dsn: str, folder, *, worker: bool = True, chat_model=None, pages: bool = False, port: int = 0, **settings
) -> Iterator[Served]:
    config = RAGConfig.load(
        storage={"data_dir": folder / "unused", "dsn": dsn}, embedding={"provider": "hashing"}, **settings
    )
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=chat_model) as rag:
        working = worker_of(rag.standpoint.assembly, concurrency=1) if worker else None
        thread = threading.Thread(target=working.run) if working is not None else None
        if thread is not None:
            thread.start()
        try:
            app = create_app(rag)
            if pages:
                install(app)
                # Once a process, and seconds on a busy machine: no client is to wait so long.
                make_ready(app)
            with listening(app, port) as url:
                yield Served(rag, url)
        finally:
            if working is not None and thread is not None:
                working.stop()
                thread.join()


def fill(rag: RAGPipeline) -> None:
    """Two collections, a conversation with facts, and rights."""
    rag.ingest(
        Document(
            content="# Leave\n\n## Annual leave\n\nEvery employee has 30 days of annual leave.\n\n## Sick leave\n\n"
            "Whoever is ill for three days brings a certificate.",
            source="hr/leave.md",
            department="hr",
            tags=("official",),
            metadata={"year": 2026},
        )
    )
    rag.ingest(Document(content="Salaries are paid on the 25th of each month.", source="hr/pay.txt", department="hr"))
    rag.view(collections="it").ingest(
        Document(content="ERR-4012 means that too many sessions are open.", source="err.md")
    )
    rag.view(session="talk", user="ada").remember(["My sister lives in Lisbon.", "Noted."])
    rag.sessions.create("desk")
    rag.view(session="desk").ingest(Document(content="The draft says 31 days of annual leave.", source="draft.md"))
