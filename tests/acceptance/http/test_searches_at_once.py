"""Only so many searches are computed at once; the others wait in the order they came in, and other requests do not."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from starlette.requests import ClientDisconnect

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.fair_share import FairShare
from recollect.interruption import Interruption
from recollect.server.app import create_app
from recollect.server.searches import concurrent_searches
from recollect.store.search import SearchRepository

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


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1/search", lambda question: {"query": question}),
        ("/v1/context", lambda question: {"query": question}),
        ("/v1/embeddings", lambda question: {"input": question, "model": "default", "input_type": "query"}),
    ],
)
def test_searches_beyond_the_limit_wait_in_their_order_while_others_are_answered(dsn, tmp_path, path, asked):
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
                searches.append(asyncio.create_task(client.post(path, json=asked(question))))
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


@pytest.mark.parametrize("path", ["/v1/collections/default/export", "/v1/documents/{id}/diff"])
def test_what_takes_long_beside_searches_waits_with_them(serve, embedder, path):
    """And takes none of the threads that everybody's requests need."""
    rag = serve(concurrent_searches=1)
    rag.ingest([Document(content="Thirty-one days of annual leave.", source="leave.md", title="Leave")])
    path = path.format(id=rag.documents.get("leave.md").document_id)

    async def ask(app) -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, timeout=30) as client:
            search = asyncio.create_task(client.post("/v1/search", json={"query": QUESTIONS[0]}))
            assert await asyncio.to_thread(embedder.arrived.acquire, timeout=30)
            long = asyncio.create_task(client.get(path))
            for _ in range(30):
                assert (await client.get("/v1/collections")).status_code == 200
            assert not long.done()
            embedder.let_on.release()
            assert [(await one).status_code for one in (search, long)] == [200, 200]

    asyncio.run(ask(create_app(rag)))


def reads(question: str) -> dict[str, object]:
    return {
        "/v1/search": {"query": question},
        "/v1/context": {"query": question},
        "/v1/context/assembly": {"query": question, "strategy": "documents"},
        "/v1/diff": {"question": question, "from": "7d"},
        "/v1/why-not": {"query": question, "document": "leave.md"},
        "/v1/vector_stores/default/search": {"query": question},
    }


@pytest.fixture
def embedder() -> Iterator[HeldEmbedder]:
    made = HeldEmbedder()
    yield made
    for _ in range(100):
        made.let_on.release()


@pytest.fixture
def serve(dsn, tmp_path, embedder) -> Iterator[Callable[..., RAGPipeline]]:
    with ExitStack() as held:

        def make(**server: object) -> RAGPipeline:
            config = RAGConfig.load(
                storage={"data_dir": tmp_path / "unused", "dsn": dsn},
                embedding={"provider": "hashing"},
                retrieval={"cache_entries": 0, "query_cache_entries": 0},
                server=server,
            )
            rag = held.enter_context(RAGPipeline(config, embedder=embedder))
            rag.ingest([Document(content="Thirty days of annual leave.", source="leave.md", title="Leave")])
            return rag

        yield make


async def sent(app, path: str, body: object, *, leave: asyncio.Event) -> None:
    """A request whose client closes its connection once `leave` is set."""
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> dict[str, object]:
        if messages:
            return messages.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(_: object) -> None:
        return

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8321"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8321),
        "scheme": "http",
    }
    with suppress(ClientDisconnect):
        await app(scope, receive, send)


def test_a_search_whose_client_has_gone_is_stopped(serve, embedder):
    app = create_app(serve(concurrent_searches=1))
    ran_to_its_end: list[str] = []

    async def go() -> None:
        for number, path in enumerate(reads("")):
            question = QUESTIONS[number]
            leave = asyncio.Event()
            one = asyncio.create_task(sent(app, path, reads(question)[path], leave=leave))
            assert await asyncio.to_thread(embedder.arrived.acquire, timeout=30), path
            leave.set()
            assert await asyncio.to_thread(interrupted.acquire, timeout=30), path
            # The model computes on; what follows it is not begun.
            embedder.let_on.release()
            await asyncio.wait_for(one, 30)

    interrupted, interrupt = threading.Semaphore(0), Interruption.interrupt

    def interrupting(one: Interruption) -> None:
        interrupt(one)
        interrupted.release()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Interruption, "interrupt", interrupting)
        for method in ("both", "dense_ahead"):
            patch.setattr(SearchRepository, method, lambda *_, **__: ran_to_its_end.append("searched"))
        asyncio.run(go())
    assert embedder.begun == QUESTIONS
    assert ran_to_its_end == []


def test_a_search_ends_when_its_time_is_over(serve, embedder):
    app = create_app(serve(search_seconds=1))

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, timeout=60) as client:
            one = asyncio.create_task(client.post("/v1/search", json={"query": QUESTIONS[0]}))
            # It is asked to end by then, and ends at its next step.
            await asyncio.sleep(1.5)
            embedder.let_on.release()
            return await one

    reply = asyncio.run(go())
    assert reply.status_code == 503, reply.text
    assert reply.json()["detail"].startswith("The search was stopped after 1 seconds.")


def test_one_credential_cannot_have_all_searches(serve, embedder):
    rag = serve(concurrent_searches=2, authentication="required")
    rag.tenants.create("other")
    first = rag.keys.create("first").secret
    second = rag.view(tenant="other").keys.create("second").secret
    app = create_app(rag)

    async def go() -> list[int]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=HOST, timeout=60) as client:

            def ask(question: str, key: str) -> asyncio.Task[httpx.Response]:
                headers = {"Authorization": f"Bearer {key}"}
                return asyncio.create_task(client.post("/v1/search", json={"query": question}, headers=headers))

            many = [ask(question, first) for question in QUESTIONS[:5]]
            for _ in range(2):
                assert await asyncio.to_thread(embedder.arrived.acquire, timeout=30)
            other = ask("something that is not held", second)
            found = await asyncio.wait_for(other, 30)
            assert len(embedder.begun) == 2
            for _ in many:
                embedder.let_on.release()
            return [found.status_code, *[(await one).status_code for one in many]]

    assert asyncio.run(go()) == [200] * 6


def test_heavy_searches_wait_for_one_another_and_light_ones_do_not(serve, embedder):
    rag = serve()
    rag.standpoint.store.database.heavy_searches = FairShare(1)
    heavy = [RetrievalOptions(candidates=2_000), RetrievalOptions(top_k=200, neighbours=5)]
    threads = [
        threading.Thread(target=rag.search, args=(question, options))
        for question, options in zip(QUESTIONS, heavy, strict=False)
    ]
    for one in threads:
        one.start()
    assert embedder.arrived.acquire(timeout=30)
    assert rag.search("something that is not held", RetrievalOptions(candidates=1_000)).results
    assert len(embedder.begun) == 1
    embedder.let_on.release(2)
    for one in threads:
        one.join(30)
    assert sorted(embedder.begun) == QUESTIONS[:2]


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
    assert concurrent_searches(RAGConfig.load(**settings)) == (40 if waits else 6)


def test_what_the_operator_says_holds():
    settings = {"embedding": {"provider": "openai"}, "server": {"concurrent_searches": 9}}
    assert concurrent_searches(RAGConfig.load(**settings)) == 9
