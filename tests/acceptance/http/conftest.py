"""The server, asked as a client asks it: requests and responses of an application on a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from recollect import RAGPipeline
from recollect.server.app import create_app

HOST = "http://127.0.0.1:8321"


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    """What is served: an empty store, with an embedder that needs no model."""
    return pipeline


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
