"""Searching through the pipeline: modes, filters, limits, explanations, and odd questions."""

from __future__ import annotations

import pytest

from recollect import Document, RAGPipeline, RetrievalOptions
from recollect.errors import UsageError


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    for department in ("hr", "it"):
        pipeline.ingest(
            Document(
                content=f"{department} rule {n}: topic{n} error ERR-{4000 + n} applies",
                source=f"{department}/{n}.md",
                department=department,
                tags=("even",) if n % 2 == 0 else (),
                metadata={"n": n, "draft": n == 3},
            )
            for n in range(10)
        )
    return pipeline


def sources(rag: RAGPipeline, query: str, **options) -> list[str]:
    return [result.source for result in rag.retrieve(query, RetrievalOptions(**options))]


def test_a_passage_is_labelled_by_the_heading_that_answers(pipeline: RAGPipeline):
    text = (
        "# Rules\n\n## Benefits\n\n### Annual leave\n\nThirty days.\n\n### Health insurance\n\nThe company pays half.\n"
    )
    pipeline.ingest(Document(content=text, source="rules.md", mime_type="text/markdown"))
    for query, title in (
        ("how long is annual leave", "Annual leave"),
        ("who pays health insurance", "Health insurance"),
    ):
        (found,) = pipeline.retrieve(query)
        assert found.content == text.strip()
        assert found.section == f"Rules > Benefits > {title}"
        assert "sections" not in found.metadata
        assert f"Section: Rules > Benefits > {title}" in pipeline.context(query).text


def test_filters_hold_in_every_mode(filled: RAGPipeline):
    for mode in ["hybrid", "dense", "lexical"]:
        assert set(sources(filled, "rule applies", mode=mode, top_k=50, department=("hr",))) == {
            f"hr/{n}.md" for n in range(10)
        }
        assert set(sources(filled, "rule", mode=mode, metadata_filters={"draft": True})) == {"hr/3.md", "it/3.md"}
        assert sources(filled, "rule", mode=mode, source=("it/7.md",), department=("it",)) == ["it/7.md"]
        assert len(sources(filled, "rule", mode=mode, top_k=50, tags=("even",))) == 10
        assert sources(filled, "rule", mode=mode, department=("none",)) == []


def test_identifiers_are_found(filled: RAGPipeline):
    assert set(sources(filled, "what is ERR-4007?", mode="lexical", top_k=2)) == {"hr/7.md", "it/7.md"}


def test_explanations_name_the_arms(filled: RAGPipeline):
    reply = filled.search("ERR-4007", RetrievalOptions(explain=True, top_k=5))
    assert set(reply.paths) == {"dense", "lexical"}
    first = reply.results[0]
    assert first.explain is not None and first.explain.lexical is not None
    assert first.explain.rerank_score is not None and reply.reranked
    plain = filled.search("ERR-4007", RetrievalOptions(explain=True, top_k=5, rerank="none"))
    assert plain.reranked is None
    assert all(result.explain and result.explain.fused_score == result.score for result in plain.results)
    assert [result.rank for result in reply.results] == [1, 2, 3, 4, 5]
    assert [result.score for result in reply.results] == sorted((r.score for r in reply.results), reverse=True)


def test_a_minimum_similarity_drops_the_rest(filled: RAGPipeline):
    everything = filled.retrieve("hr rule topic3", RetrievalOptions(top_k=20))
    similarities = sorted(result.similarity for result in everything)
    middle = similarities[len(similarities) // 2]
    kept = filled.retrieve("hr rule topic3", RetrievalOptions(top_k=20, similarity_threshold=middle))
    assert 0 < len(kept) < len(everything)
    assert all(result.similarity >= middle for result in kept)
    assert filled.retrieve("hr rule", RetrievalOptions(similarity_threshold=1.0)) == []


ODD = [
    "the of and", "?!", "\u05e9\u05dc\u05d5\u05dd", "\u4f60\u597d", "\U0001f680", "word " * 2000, "x" * 10_000,
    "lone \udcff", "' OR 1=1 --", "%s %(x)s {}",
]  # fmt: skip


def test_odd_questions_have_answers(filled: RAGPipeline):
    for query in ODD:
        for mode in ("hybrid", "dense", "lexical"):
            assert len(sources(filled, query, mode=mode)) <= 10, (query[:20], mode)


BAD = [
    ("", {}, "empty"), (" \n", {}, "empty"), ("x" * 20_001, {}, "20,001"), ("a\0b", {}, "NUL"),
    ("q", {"top_k": 0}, "top_k"), ("q", {"top_k": 1001}, "top_k"),
    ("q", {"mode": "fuzzy"}, "no retriever 'fuzzy'; there are dense, hybrid, lexical"), ("q", {"mode": 3}, "mode"),
    ("q", {"fusion": "sum"}, "fusion"), ("q", {"dense_weight": 1.5}, "dense_weight"),
    ("q", {"similarity_threshold": 2}, "similarity_threshold"), ("q", {"department": "hr"}, "department"),
    ("q", {"tags": (1,)}, "tags"), ("q", {"source": ("a\0",)}, "source"),
    ("q", {"metadata_filters": {"a": object()}}, "metadata_filters"),
    ("q", {"metadata_filters": {"a": float("nan")}}, "metadata_filters"),
    ("q", {"metadata_filters": {"a": "\0"}}, "metadata_filters"), ("q", {"metadata_filters": [1]}, "metadata_filters"),
]  # fmt: skip


def test_bad_questions_and_options_are_refused_with_a_reason(pipeline: RAGPipeline):
    for query, options, words in BAD:
        with pytest.raises(UsageError, match=words):
            pipeline.search(query, RetrievalOptions(**options))


def test_an_empty_store_and_an_empty_collection_find_nothing(pipeline: RAGPipeline):
    assert pipeline.retrieve("anything") == []
    pipeline.collections.ensure("empty")
    for mode in ("hybrid", "dense", "lexical"):
        assert pipeline.view(collections="empty").search("anything", RetrievalOptions(mode=mode)).results == ()


def test_words_count_that_stand_in_the_chunk_beside(pipeline: RAGPipeline):
    filler = "Nothing of interest is written here, only what fills the line up. " * 6
    beside = f"The turbine was inspected. {filler}\n\nThe invoice was paid. {filler}"
    apart = f"The turbine was inspected. {filler}\n\n{filler}\n\nThe invoice was paid. {filler}"
    pipeline.ingest([Document(content=apart, source="apart.md"), Document(content=beside, source="beside.md")])
    words = RetrievalOptions(dense_weight=0.0, rerank="none", top_k=4, collapse_duplicates=False)
    found = pipeline.search("turbine invoice", words).results
    assert [one.source for one in found] == ["beside.md", "beside.md", "apart.md", "apart.md"]
    assert found[1].score > found[2].score

    # By words alone, BM25 is what it says: both halves of both documents score as they stand.
    alone = pipeline.search("turbine invoice", RetrievalOptions(mode="lexical", top_k=4, collapse_duplicates=False))
    assert {round(one.score, 4) for one in alone.results if "turbine" in one.content} == {
        round(alone.results[0].score, 4)
    }


def test_nothing_of_another_version_is_beside(pipeline: RAGPipeline):
    filler = "Nothing of interest is written here, only what fills the line up. " * 6
    for source, paid in (("report x.md", "invoice"), ("report x.md", "budget"), ("report y.md", "travel")):
        text = f"The turbine was inspected. {filler}\n\nThe {paid} was paid. {filler}"
        pipeline.ingest([Document(content=text, source=source)])
    options = RetrievalOptions(dense_weight=0.0, rerank="none", top_k=2, collapse_duplicates=False)
    scores = [one.score for one in pipeline.search("turbine invoice", options).results]
    assert scores[0] == pytest.approx(scores[1])
