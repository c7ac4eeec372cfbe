"""The relevance of what a search finds: one value for a passage, whatever is searched beside it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.retrieval.relevance import load_model

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


def test_gibberish_finds_nothing_and_its_refusal_says_so(office, dsn, tmp_path):
    with RAGPipeline(office.config, embedder=Known()) as rag:
        rag.view(collections="known").ingest([Document(content=text, source=name) for name, text in TEXTS.items()])
        for mode in ("hybrid", "dense"):
            options = RetrievalOptions(mode=mode, explain=True)
            reply = rag.view(collections="known").search("xqzv blorp fnarg", options)
            assert (reply.results, sum(reply.explain.dropped.values())) == ((), 3)
            assert len(rag.view(collections="known").retrieve("xqzv blorp", replace(options, min_relevance=0.0))) == 3
            assert rag.view(collections="known").retrieve(QUESTION, options)
        assert rag.view(collections="known").ask("xqzv blorp fnarg?").refused
        told = rag.view(collections="known").why_not("xqzv blorp fnarg", "leave.md")
        assert "min_relevance" in told.verdict
