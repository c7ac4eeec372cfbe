"""The relevance of what a search finds: one value for a passage, whatever is searched beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions, SearchReply, View
from recollect.embedding.hashing import HashingEmbedder
from recollect.integrations.langchain import RecollectRetriever
from recollect.retrieval.relevance import load_model
from recollect.server.app import create_app
from recollect.tools import Toolbox

TEXTS = {
    "leave.md": "Every employee has thirty days of annual leave.",
    "desk.md": "The service desk resets passwords until six.",
    "press.md": "Change the oil of the press in March.",
}
QUESTION = "How many days of annual leave?"


@pytest.fixture
def office(pipeline):
    for name, text in TEXTS.items():
        pipeline.ingest(Document(content=text, source=name))
        pipeline.view(collections="other").ingest(
            Document(content=f"{text} It was said in the other room.", source=name)
        )
    return pipeline


def by_source(results, collection=None):
    return {one.source: one.relevance for one in results if collection in {None, one.collection}}


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize("rerank", ["none", "bm25"])
def test_every_passage_has_one_and_the_answer_has_the_most(office, mode, rerank):
    found = by_source(office.retrieve(QUESTION, RetrievalOptions(mode=mode, rerank=rerank)))
    assert all(0 < one < 1 for one in found.values())
    assert max(found, key=found.__getitem__) == "leave.md"


def test_rerankers_and_the_number_wanted_do_not_change_it(office):
    plain = by_source(office.retrieve(QUESTION, RetrievalOptions(rerank="none")))
    assert by_source(office.retrieve(QUESTION, RetrievalOptions(rerank="consensus"))) == plain
    (best,) = office.retrieve(QUESTION, RetrievalOptions(top_k=1))
    assert best.relevance == plain["leave.md"]


def test_it_is_the_same_whichever_other_collections_are_searched(office):
    options = RetrievalOptions(collapse_duplicates=False)
    together = office.view(collections="*").search(QUESTION, options).results
    for name in ("default", "other"):
        alone = by_source(office.view(collections=name).retrieve(QUESTION, options))
        assert by_source(together, name) == pytest.approx(alone)


def test_the_past_has_its_own(office):
    then = datetime.now(UTC)
    office.ingest(Document(content="Nothing of that kind is kept here any more.", source="leave.md"))
    assert (
        by_source(office.view(as_of=then).retrieve(QUESTION))["leave.md"]
        > by_source(office.retrieve(QUESTION))["leave.md"]
    )


def test_words_that_nothing_holds_count_against_every_passage(office):
    plain = by_source(office.retrieve("annual leave", RetrievalOptions(mode="lexical")))
    strange = by_source(office.retrieve("annual leave xqzv blorp", RetrievalOptions(mode="lexical")))
    assert strange["leave.md"] < plain["leave.md"]


def test_a_threshold_leaves_out_what_is_less_relevant(office, tmp_path, dsn, monkeypatch):
    found = office.retrieve(QUESTION, RetrievalOptions(explain=True))
    limit = max(one.relevance for one in found)
    kept = office.search(QUESTION, RetrievalOptions(min_relevance=limit, explain=True))
    assert [one.source for one in kept.results] == ["leave.md"]
    assert kept.explain.dropped["below min_relevance"] == len(found) - 1
    assert found[0].explain.coverage > 0.5
    assert office.ask(QUESTION, RetrievalOptions(min_relevance=1.0)).refused

    monkeypatch.setenv("RAG_MIN_RELEVANCE", str(limit))
    config = RAGConfig.load(storage={"data_dir": tmp_path / "unused", "dsn": dsn}, embedding={"provider": "hashing"})
    assert config.retrieval.min_relevance == limit
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        assert [one.source for one in rag.retrieve(QUESTION)] == ["leave.md"]
        assert len(rag.retrieve(QUESTION, RetrievalOptions(min_relevance=0.0))) == len(found)


class Known(HashingEmbedder):
    """Passes for the model that the relevance was fitted with."""

    model_name = next(iter(load_model().scales))


NONSENSE = "xqzv blorp fnarg"


@pytest.fixture
def known(office) -> Iterator[View]:
    """A view of a collection whose embedding model has a relevance floor."""
    with RAGPipeline(office.config, embedder=Known()) as rag:
        view = rag.view(collections="known")
        view.ingest([Document(content=text, source=name, department="hr") for name, text in TEXTS.items()])
        yield view


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_a_search_returns_what_there_is_and_an_answer_starts_from_the_floor(known, mode):
    options = RetrievalOptions(mode=mode, explain=True, department=("hr",))
    reply = known.search(NONSENSE, options)
    assert len(reply.results) == 3 and sum(reply.explain.dropped.values()) == 0
    assert all(0 < one.relevance < load_model().floors["similarity"] for one in reply.results)
    assert not known.retrieve(NONSENSE, replace(options, min_relevance=0.5))
    floored = known.search(NONSENSE, replace(options, relevance_floor=True))
    assert (floored.results, sum(floored.explain.dropped.values())) == ((), 3)
    assert known.retrieve(QUESTION, replace(options, relevance_floor=True))

    assert not known.context(NONSENSE, options).blocks
    assert known.context(NONSENSE, replace(options, min_relevance=0.0)).blocks
    assert not known.memory.assembler().assemble(NONSENSE, "documents").passages
    refused = [one for one in known.ask_events(f"{NONSENSE}?", options) if isinstance(one, SearchReply)]
    assert not refused[0].results and known.ask(f"{NONSENSE}?", options).refused


def test_why_not_names_the_floor_where_a_search_applies_it(known):
    assert known.why_not(NONSENSE, "leave.md").found
    assert "min_relevance" in known.why_not(NONSENSE, "leave.md", RetrievalOptions(relevance_floor=True)).verdict


def test_every_door_returns_what_a_search_finds(known):
    with TestClient(create_app(known), base_url="http://127.0.0.1:8321") as client:
        place = {"collection": "known"}
        found = client.post("/v1/search", json={"query": NONSENSE, **place}).json()["results"]
        assert len(found) == 3 and all(one["relevance"] is not None for one in found)
        (store,) = [one for one in client.get("/v1/vector_stores").json()["data"] if one["name"] == "known"]
        listed = client.post(f"/v1/vector_stores/{store['id']}/search", json={"query": NONSENSE}).json()["data"]
        assert len(listed) == 3
        assert client.post("/v1/context", json={"query": NONSENSE, **place}).json()["passages"] == []
        assert client.post("/v1/ask", json={"question": NONSENSE, **place}).json()["refused"]
    told = json.loads(Toolbox(known).execute("search", {"query": NONSENSE}).text)
    assert len(told["results"]) == 3
    assert len(RecollectRetriever(view=known).invoke(NONSENSE)) == 3
