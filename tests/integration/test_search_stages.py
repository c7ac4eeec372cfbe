"""What happens to candidates after the retrievers: reranking, thresholds, shaping, and the cache around it all."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.store.wire import halfvecs, sparsevecs

LEAVE = "Annual leave is thirty days. It is requested two weeks ahead."
PARAGRAPHS = [
    f"Paragraph {number} says something about turbine number {number} and its blades." for number in range(12)
]


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.collections.create("default", chunking={"strategy": "paragraph", "min_size": 10, "max_size": 100})
    pipeline.ingest(
        [
            Document(content="\n\n".join(PARAGRAPHS), source="turbines.txt"),
            Document(content=LEAVE, source="hr/leave.txt", department="hr"),
            Document(content=LEAVE, source="archive/leave.txt", department="archive"),
        ]
    )
    return pipeline


def test_copies_of_other_documents_are_collapsed_and_named(filled: RAGPipeline):
    both = filled.retrieve("annual leave days", RetrievalOptions(top_k=2, collapse_duplicates=False))
    assert {result.source for result in both} == {"hr/leave.txt", "archive/leave.txt"}
    reply = filled.search("annual leave days", RetrievalOptions(top_k=2, explain=True))
    first, second = reply.results
    assert second.source == "turbines.txt"
    assert {first.chunk_id, *first.duplicates} == {result.chunk_id for result in both}
    assert reply.explain is not None and reply.explain.dropped["duplicate"] == 1


def test_neighbours_and_merged_passages_have_exact_offsets(filled: RAGPipeline):
    content = filled.documents.get("turbines.txt").content
    for options in (
        RetrievalOptions(top_k=3, neighbours=1),
        RetrievalOptions(top_k=6, merge_adjacent=True),
        RetrievalOptions(top_k=4, neighbours=2, merge_adjacent=True, source=("turbines.txt",)),
    ):
        results = filled.retrieve("turbine blades paragraph", options)
        assert [result.rank for result in results] == list(range(1, len(results) + 1))
        for result in results:
            if result.source == "turbines.txt":
                assert content[result.start_offset : result.end_offset] == result.content
    single = filled.retrieve("turbine number 5", RetrievalOptions(top_k=1, source=("turbines.txt",), mode="lexical"))[0]
    wide = filled.retrieve(
        "turbine number 5", RetrievalOptions(top_k=1, source=("turbines.txt",), mode="lexical", neighbours=1)
    )[0]
    assert single.content in wide.content and wide.content.count("Paragraph") == 3


def test_merging_joins_what_touches(filled: RAGPipeline):
    options = RetrievalOptions(top_k=12, merge_adjacent=True, source=("turbines.txt",), mode="lexical")
    merged = filled.retrieve("paragraph turbine blades", options)
    assert len(merged) == 1
    assert merged[0].content == "\n\n".join(PARAGRAPHS)
    assert len(merged[0].chunk_ids) == 12


def test_variety_keeps_to_the_candidates(filled: RAGPipeline):
    plain = filled.retrieve("turbine leave", RetrievalOptions(top_k=4))
    varied = filled.retrieve("turbine leave", RetrievalOptions(top_k=4, mmr_lambda=0.3))
    assert len({result.chunk_id for result in varied}) == len(varied) == 4
    assert varied[0].chunk_id == plain[0].chunk_id


def test_thresholds_leave_nothing_rather_than_fail(filled: RAGPipeline):
    assert filled.retrieve("turbine", RetrievalOptions(min_score=2.0)) == []
    assert filled.retrieve("turbine", RetrievalOptions(similarity_threshold=1.0)) == []
    reply = filled.search("turbine", RetrievalOptions(min_score=0.5, explain=True))
    assert all(result.score >= 0.5 for result in reply.results)
    assert reply.explain is not None and reply.explain.dropped["below min_score"] > 0


def test_rerankers_have_a_say_in_every_mode(filled: RAGPipeline):
    for name in ["consensus", "bm25", "best_sentence"]:
        for mode in ("hybrid", "dense", "lexical"):
            reply = filled.search("turbine number 7", RetrievalOptions(mode=mode, rerank=name, explain=True, top_k=3))
            assert reply.reranked is True
            assert reply.results and all(r.explain and r.explain.rerank_score is not None for r in reply.results)
            scores = [result.score for result in reply.results]
            assert scores == sorted(scores, reverse=True)


def test_a_reranker_that_fails_leaves_the_order_and_says_so(filled: RAGPipeline, caplog):
    class Broken:
        def rerank(self, query, candidates):
            raise RuntimeError("out of order")

    plain = filled.search("turbine", RetrievalOptions(rerank="none"))
    with RAGPipeline(filled.config, embedder=filled.embedder, rerankers={"broken": Broken()}) as rag:
        reply = rag.search("turbine", RetrievalOptions(rerank="broken", explain=True))
        assert reply.reranked is False
        assert [r.chunk_id for r in reply.results] == [r.chunk_id for r in plain.results]
        assert reply.explain is not None and "out of order" in reply.explain.rerank_reason
        assert "broken" in caplog.text
        # It is not kept: the next search tries again.
        assert not rag.search("turbine", RetrievalOptions(rerank="broken", explain=True)).cached


def test_feedback_ranks_the_same_candidates(filled: RAGPipeline):
    with_it = filled.search("turbine blades", RetrievalOptions(pseudo_relevance=True, rerank="none", top_k=5))
    assert len(with_it.results) == 5
    assert "feedback" in with_it.timings_ms


def test_an_equal_search_is_answered_from_the_cache_until_something_changes(filled: RAGPipeline):
    options = RetrievalOptions(top_k=3)
    first = filled.search("annual leave", options)
    again = filled.search("annual leave", options)
    assert not first.cached and again.cached
    assert again.results == first.results
    assert not filled.search("annual leave", RetrievalOptions(top_k=3, use_cache=False)).cached
    filled.ingest(Document(content="Annual leave of trainees is twenty-five days.", source="trainees.txt"))
    fresh = filled.search("annual leave", options)
    assert not fresh.cached and "trainees.txt" in {result.source for result in fresh.results}
    filled.documents.delete(["trainees.txt"])
    assert "trainees.txt" not in {result.source for result in filled.search("annual leave", options).results}


def test_synonyms_of_a_collection_find_other_words(dsn: str, tmp_path):
    rules = tmp_path / "synonyms.txt"
    rules.write_text("incapacitated => dies\n", encoding="utf-8")
    config = RAGConfig.model_validate(
        {"storage": {"dsn": dsn}, "retrieval": {"enhance": {"synonyms": {"default": str(rules)}}}}
    )
    with RAGPipeline(config, embedder=HashingEmbedder(64)) as rag:
        rag.ingest(Document(content="If the owner dies, the deputy signs.", source="a.txt"))
        rag.ingest(Document(content="The owner signs on Mondays.", source="b.txt"))
        options = RetrievalOptions(mode="lexical", explain=True)
        reply = rag.search("incapacitated", options)
        assert [result.source for result in reply.results] == ["a.txt"]
        assert reply.explain is not None and "synonyms: applied" in reply.explain.enhancements[0]
        assert rag.search("incapacitated", RetrievalOptions(mode="lexical", enhance=False)).results == ()


def test_explanations_name_the_terms_and_what_filters_removed(filled: RAGPipeline):
    reply = filled.search("the annual zebra leave", RetrievalOptions(explain=True, department=("hr",)))
    assert reply.explain is not None
    weights = dict(reply.explain.terms)
    assert weights["zebra"] == 0 < weights["annual"] == weights["leav"]
    assert (reply.explain.filter_kept, reply.explain.filter_removed) == (1, 2)
    assert reply.exact


@given(st.lists(st.lists(st.floats(-8, 8, width=16), min_size=3, max_size=3), max_size=5))
def test_half_vectors_as_postgresql_sends_them(vectors):
    sent = [struct.pack(">HH3e", 3, 0, *vector) for vector in vectors]
    assert halfvecs(sent).tolist() == vectors


@given(st.lists(st.dictionaries(st.integers(0, 10**9 - 1), st.floats(0.5, 3, width=32), max_size=6), max_size=5))
def test_sparse_vectors_as_postgresql_sends_them(vectors):
    sent = [
        struct.pack(f">iii{len(vector)}i{len(vector)}f", 10**9, len(vector), 0, *vector.keys(), *vector.values())
        for vector in vectors
    ]
    read = sparsevecs(sent)
    assert [dict(zip(indices.tolist(), values.tolist(), strict=True)) for indices, values in read] == vectors
    assert all(indices.dtype == np.int32 for indices, _ in read)
