"""What ``recollect serve`` refuses, and connections as clients really have them: begun, broken off, many at once."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from serving import serving

LEAVE = "Every employee has thirty days of annual leave."


class PatientModel:
    """Writes sentences until nobody listens any more, or until it is told to end."""

    model_name = "patient"

    def __init__(self) -> None:
        self.begun, self.ended = threading.Event(), threading.Event()
        self.enough = False

    async def stream(self, messages: object, **_: object) -> AsyncIterator[str]:
        try:
            number = 0
            while not self.enough:
                number += 1
                yield f"Every employee has thirty days of annual leave, sentence {number} [1]. "
                self.begun.set()
                await asyncio.sleep(0)
        finally:
            self.ended.set()


@pytest.fixture
def model() -> PatientModel:
    return PatientModel()


@pytest.fixture
def rag(dsn: str, tmp_path, model: PatientModel) -> Iterator[RAGPipeline]:
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"}, server={"port": 0}
    )
    with RAGPipeline(config, embedder=HashingEmbedder(), chat_model=model) as opened:
        opened.ingest(Document(content=LEAVE, source="leave.md"))
        yield opened


def question(url: str, **more: object) -> tuple[socket.socket, bytes]:
    """A connection that has asked for a streamed answer, and the first of it."""
    host, _, port = url.removeprefix("http://").partition(":")
    body = json.dumps({"question": "How many days of leave?", **more}).encode()
    head = (
        f"POST /v1/ask HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.sendall(head.encode() + body)
    text = b""
    while b"event: token" not in text:
        text += connection.recv(4_096)
    return connection, text


def test_whoever_goes_away_ends_the_model(rag, model, monkeypatch):
    with serving(rag, monkeypatch) as url:
        connection, _ = question(url)
        assert model.begun.is_set()
        connection.close()
        assert model.ended.wait(30)
        assert httpx2.get(f"{url}/healthz").status_code == 200


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/ask", {"question": "How many days?"}),
        ("/v1/chat/completions", {"model": "default", "messages": [{"role": "user", "content": "How many days?"}]}),
    ],
)
def test_whoever_goes_away_before_a_whole_answer_ends_the_model(rag, model, monkeypatch, caplog, path, asked):
    with serving(rag, monkeypatch) as url:
        body = json.dumps(asked).encode()
        host, port = url.removeprefix("http://").split(":")
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            assert model.begun.wait(30)
            assert not model.ended.is_set()
        assert model.ended.wait(30)
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []


def test_answers_at_once_are_each_whole(rag, model, monkeypatch):
    monkeypatch.setattr(model, "enough", True)
    whole = [f"Every employee has thirty days of annual leave, sentence {n} [1]. " for n in range(5)]

    async def stream(messages: object, **_: object) -> AsyncIterator[str]:
        for piece in whole:
            await asyncio.sleep(0)
            yield piece

    monkeypatch.setattr(model, "stream", stream)

    async def one(client: httpx2.AsyncClient, url: str) -> str:
        reply = await client.post(
            f"{url}/v1/ask", json={"question": "How many days?"}, headers={"Accept": "text/event-stream"}
        )
        return reply.text

    async def all_of(url: str) -> list[str]:
        async with httpx2.AsyncClient(timeout=60) as client:
            return await asyncio.gather(*(one(client, url) for _ in range(20)))

    with serving(rag, monkeypatch) as url:
        replies = asyncio.run(all_of(url))
    for reply in replies:
        assert all(f"sentence {n} " in reply for n in range(5))
        assert reply.count("event: done") == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "knowledge.example"])
def test_nobody_is_served_unasked_where_others_reach_it(recollect, host):
    refused = recollect("serve", "--host", host, "--port", "0", status=2)
    assert f"On {host} everybody needs a credential" in refused.err
    assert "recollect keys create" in refused.err


def test_a_port_that_is_taken_is_named(recollect):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = recollect("serve", "--port", port, status=2)
    assert f"127.0.0.1:{port}" in refused.err
    assert "--port 0" in refused.err


def test_without_its_packages_it_says_what_to_install(recollect, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    assert "pip install '.[server]'" in recollect("serve", status=2).err
