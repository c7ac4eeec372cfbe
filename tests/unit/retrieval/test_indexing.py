"""Terms counted and weighed many texts at a time: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.model.terms import TermCounts
from recollect.retrieval import lexical
from recollect.retrieval.analysis import Analyzer, term_frequencies
from recollect.retrieval.indexing import TermIndexer

WORDS = st.sampled_from(
    ["leave", "Leave,", "ERR-4012", "v0.8.0", "年次休暇", "e-mail", "the", "naïve", "C++", "1,000", "ไทย"]
)
TEXTS = st.lists(st.lists(WORDS | st.text(max_size=12), max_size=20).map(" ".join), max_size=12)


@given(TEXTS, st.sampled_from(["en", "de", "tr", "ja"]), st.integers(1, 5))
def test_counts_are_those_of_the_analysis(texts: list[str], language: str, salt: int):
    indexer, analyzer = TermIndexer(language, salt=salt), Analyzer(language)
    for text, counted in zip(texts, indexer.count(texts), strict=True):
        expected = term_frequencies(analyzer.terms(text), salt=salt)
        assert dict(zip(counted.lexemes.tolist(), counted.counts.tolist(), strict=True)) == expected
        assert counted.length == sum(expected.values())
        assert counted.lexemes.tolist() == sorted(expected)


@given(TEXTS, st.floats(0.5, 500))
def test_weights_are_those_of_each_chunk_alone(texts: list[str], reference_length: float):
    indexer = TermIndexer("en", salt=1)
    counts = indexer.count(texts)
    for terms, row in zip(counts, indexer.weigh(counts, reference_length=reference_length), strict=True):
        alone = lexical.document_weights(
            dict(zip(terms.lexemes.tolist(), terms.counts.tolist(), strict=True)),
            length=terms.length,
            average_length=reference_length,
        )
        assert dict(zip(row.lexemes.tolist(), row.weights.tolist(), strict=True)) == alone
        assert row.length == terms.length


def test_a_chunk_of_more_terms_than_can_be_stored_keeps_the_heaviest():
    count = lexical.MAX_ELEMENTS + 5
    counts = np.ones(count, np.int32)
    counts[-3:] = 7
    [row] = TermIndexer("en", salt=1).weigh(
        [TermCounts(int(counts.sum()), np.arange(1, count + 1, dtype=np.int32), counts)], reference_length=10.0
    )
    assert len(row.lexemes) == lexical.MAX_ELEMENTS
    assert (np.diff(row.lexemes) > 0).all()
    assert set(range(count - 2, count + 1)) <= set(row.lexemes.tolist())


def test_other_salts_are_other_lexemes_and_nothing_has_none():
    [one], [other] = (TermIndexer("en", salt=salt).count(["apple banana apple"]) for salt in (1, 2))
    assert sorted(one.counts.tolist()) == [1, 2]
    assert not set(one.lexemes.tolist()) & set(other.lexemes.tolist())
    indexer = TermIndexer("en", salt=1)
    assert indexer.count([]) == []
    assert indexer.weigh([], reference_length=1.0) == []
    [empty] = indexer.weigh(indexer.count([""]), reference_length=3.0)
    assert (empty.length, len(empty.lexemes)) == (0, 0)


@pytest.mark.parametrize("texts", [300, 1])
def test_more_texts_than_are_counted_at_once(texts: int):
    counted = TermIndexer("en", salt=1).count([f"number {i} apple" for i in range(texts)])
    assert [one.length for one in counted] == [3] * texts
