"""Only so many searches are computed at once; the others wait in the order they came in, and other requests do not."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.server.app import create_app
from recollect.server.service import search_threads

HOST = "http://127.0.0.1:8321"
QUESTIONS = [f"question {number} about leave" for number in range(6)]


class HeldEmbedder(HashingEmbedder):
    """Embeds a question when it is told to, and writes down which it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[str] = []
        self.arrived = threading.Semaphore(0)
        self.let_on = threading.Semaphore(0)

    def embed_query(self, text):
        if text not in QUESTIONS:  # what relevance is measured with
            return super().embed_query(text)
        self.begun.append(text)
        self.arrived.release()
        assert self.let_on.acquire(timeout=30)
        return super().embed_query(text)


@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
def test_searches_beyond_the_limit_wait_in_their_order_while_others_are_answered(dsn, tmp_path, path):
    embedder = HeldEmbedder()
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        server={"concurrent_searches": 2},
    )

    async def ask(app) -> list[int]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, timeout=30) as client:
            searches = []
            for question in QUESTIONS:
                searches.append(asyncio.create_task(client.post(path, json={"query": question})))
                await asyncio.sleep(0)
            for _ in range(2):
                assert await asyncio.to_thread(embedder.arrived.acquire, timeout=30)
            assert (await client.get("/v1/collections")).status_code == 200
            assert sorted(embedder.begun) == QUESTIONS[:2]
            for _ in QUESTIONS:
                embedder.let_on.release()
            return [(await one).status_code for one in searches]

    with RAGPipeline(config, embedder=embedder) as rag:
        rag.ingest([Document(content="Thirty days of annual leave.", source="leave.md", title="Leave")])
        assert asyncio.run(ask(create_app(rag))) == [200] * len(QUESTIONS)
    assert sorted(embedder.begun) == QUESTIONS


@pytest.mark.parametrize(
    ("settings", "waits"),
    [
        ({}, False),
        ({"embedding": {"provider": "hashing"}}, False),
        ({"reranking": {"provider": "local"}}, False),
        ({"embedding": {"provider": "openai", "model": "text-embedding-3-small"}}, True),
        ({"reranking": {"provider": "cohere"}}, True),
        ({"retrieval": {"enhance": {"hyde": True}}}, True),
        ({"retrieval": {"enhance": {"multi_query": 2}}}, True),
    ],
)
def test_what_only_waits_for_a_provider_may_be_many(monkeypatch, settings, waits):
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert search_threads(RAGConfig.load(**settings))._most == (40 if waits else 6)


def test_what_the_operator_says_holds():
    settings = {"embedding": {"provider": "openai"}, "server": {"concurrent_searches": 9}}
    assert search_threads(RAGConfig.load(**settings))._most == 9
