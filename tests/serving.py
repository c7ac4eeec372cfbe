"""The server at a port of loopback, in a thread of the tests' process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from recollect import RAGPipeline
from recollect.server import running


@contextmanager
def serving(rag: RAGPipeline, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    addresses: list[str] = []
    servers: list[running._Server] = []
    ready = threading.Event()
    make = running._Server.__init__

    def made(self: running._Server, *args: object, **kwargs: object) -> None:
        make(self, *args, **kwargs)
        servers.append(self)

    def told(url: str) -> None:
        addresses.append(url)
        ready.set()

    monkeypatch.setattr(running._Server, "__init__", made)
    thread = threading.Thread(target=running.serve, args=(rag,), kwargs={"worker": False, "on_ready": told})
    thread.start()
    try:
        assert ready.wait(30)
        yield addresses[0]
    finally:
        servers[0].should_exit = True
        thread.join(60)
        assert not thread.is_alive()
