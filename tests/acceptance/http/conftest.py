"""The server, asked as a client asks it: requests and responses of an application on a real store."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from fastapi.testclient import TestClient

from recollect import RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.server.app import create_app

HOST = "http://127.0.0.1:8321"


@pytest.fixture
def rag(dsn: str, tmp_path) -> Iterator[RAGPipeline]:
    """What is served: an empty store, with an embedder that needs no model."""
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def connect(rag: RAGPipeline) -> Iterator[Callable[..., TestClient]]:
    """Makes clients of one application: ``connect()`` is the local user, ``connect(key)`` whoever has that key."""
    app = create_app(rag)
    clients: list[TestClient] = []

    def made(key: str | None = None) -> TestClient:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        client = TestClient(app, base_url=HOST, headers=headers, raise_server_exceptions=False)
        clients.append(client)
        return client

    yield made
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[..., TestClient]) -> TestClient:
    """The one user of a server that nobody else reaches."""
    return connect()


@pytest.fixture
def serve() -> Iterator[Callable[[RAGPipeline], str]]:
    """Serves a store at a port of this machine, for clients that bring their own transport: gives the address."""
    with ExitStack() as served:
        yield lambda rag: served.enter_context(_served(rag))


@contextmanager
def _served(rag: RAGPipeline) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(create_app(rag), log_config=None, lifespan="on", timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
