"""Parts of another package, by name, on the command line and over HTTP."""

from __future__ import annotations

from importlib import metadata

import pytest
from fastapi.testclient import TestClient

from recollect import Document, RAGConfig, RAGPipeline, RetrievedContext
from recollect.embedding.hashing import HashingEmbedder
from recollect.model import Chunk
from recollect.server.app import create_app
from recollect.ui import install


class Halves:
    """Cuts a text in two; ``at`` is where, as a share."""

    def __init__(self, *, at: float = 0.5) -> None:
        self.at = at

    def chunk(self, document):
        text = document.content
        middle = int(len(text) * self.at)
        spans = [(start, end) for start, end in ((0, middle), (middle, len(text))) if text[start:end].strip()]
        return [
            Chunk(text=text[start:end], position=place, start_offset=start, end_offset=end)
            for place, (start, end) in enumerate(spans)
        ]


class Equal:
    def rerank(self, query, candidates):
        return [1.0 for _ in candidates]


class Oracle:
    def retrieve(self, query, options):
        if "raise" in query:
            raise RuntimeError("the oracle is out")
        return [
            RetrievedContext(
                rank=1,
                score=1.0,
                relevance=0.9,
                content=query,
                title="Oracle",
                source="oracle",
                chunk_id=1,
                document_id=1,
                section=None,
                page=None,
                start_offset=0,
                end_offset=len(query),
                metadata={},
            )
        ]


@pytest.fixture
def installed(monkeypatch):
    """Another package declares one part of each kind."""
    parts = {
        "recollect.chunkers": ("halves", Halves),
        "recollect.rerankers": ("equal", Equal),
        "recollect.retrievers": ("oracle", Oracle),
    }

    class Point:
        def __init__(self, name, part) -> None:
            self.name, self.value, self._part = name, f"company:{part.__name__}", part

        def load(self):
            return self._part

    own = metadata.entry_points
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda **at: [*own(**at), *([Point(*parts[at["group"]])] if at.get("group") in parts else [])],
    )


def test_commands_name_them(recollect, installed, tmp_path):
    (tmp_path / "a.txt").write_text("Annual leave is thirty days. " * 4)
    made = recollect("ingest", "a.txt", "--chunking", "halves", "--chunking-option", "at=0.25", "--json")
    assert made.json["chunks"] == 2
    listed = recollect("collections", "list", "--json").json["items"][0]
    assert listed["chunking"] == {"strategy": "halves", "algorithm": 1, "at": 0.25}
    found = recollect("query", "leave", "--rerank", "equal", "--explain", "--json").json
    assert found["explain"]["reranker"] == "equal" and found["reranked"]
    asked = recollect("query", "what now", "--mode", "oracle", "--json").json
    assert (asked["mode"], asked["results"][0]["source"]) == ("oracle", "oracle")
    failed = recollect("query", "raise", "--mode", "oracle", status=2)
    assert "The retriever 'oracle' failed: RuntimeError: the oracle is out." in failed.err
    (tmp_path / "recollect.toml").write_text('[rag.retrieval]\nmode = "oracle"\nrerank = "equal"\n')
    assert recollect("query", "and now", "--json").json["mode"] == "oracle"
    refused = recollect("query", "leave", "--rerank", "nope", status=2)
    assert "There is no reranker 'nope'; there are" in refused.err


@pytest.fixture
def rag(dsn, tmp_path, installed):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder(), rerankers={"given": Equal()}) as made:
        yield made


@pytest.fixture
def client(rag):
    app = create_app(rag)
    install(app)
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as made:
        yield made


def test_requests_name_them(rag, client):
    created = client.post("/v1/collections", json={"name": "cut", "chunking": {"strategy": "halves"}})
    assert created.status_code == 201, created.text
    assert created.json()["chunking"] == {"strategy": "halves", "algorithm": 1, "at": 0.5}
    document = Document(content="Annual leave is thirty days.", source="a.txt")
    assert rag.view(collections="cut").ingest(document).chunk_count == 2
    asked = {"query": "leave", "collection": "cut", "explain": True}
    for name in ("equal", "given"):
        found = client.post("/v1/search", json={**asked, "rerank": name}).json()
        assert found["explain"]["reranker"] == name and found["reranked"]
    oracle = client.post("/v1/search", json={"query": "what now", "mode": "oracle"})
    assert oracle.json()["results"][0]["content"] == "what now"
    refused = client.post("/v1/search", json={"query": "leave", "mode": "nope"})
    assert refused.status_code == 400 and "'nope'; there are dense, hybrid, lexical, oracle" in refused.json()["detail"]
    failed = client.post("/v1/search", json={"query": "raise", "mode": "oracle"})
    assert failed.status_code == 500 and failed.json()["type"] == "urn:recollect:problem:plugin-failed"
    assert failed.json()["detail"] == "The retriever 'oracle' failed: RuntimeError: the oracle is out."


def test_pages_offer_them(client):
    assert "halves" in client.get("/library/new").text
    assert "halves" in client.get("/library/preview").text
    bench = client.get("/bench").text
    assert all(f">{name}<" in bench for name in ("equal", "given", "oracle"))
