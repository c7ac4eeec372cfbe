from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.lexical import (
    BESIDE,
    K1,
    MAX_WEIGHT,
    SAID,
    SAID_POWER,
    B,
    Counted,
    LexicalQuery,
    choose_terms,
    document_weights,
    idf,
    in_context,
    query_weights,
    term_frequency,
    upper_bound,
)
from recollect.store.search import LexicalRows

texts = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=40), min_size=1, max_size=12)
lengths = st.integers(1, 20_000)
averages = st.floats(1, 5_000)


def plain_scores(texts, query, average):
    """BM25 as the textbook has it."""
    scores = []
    for text in texts:
        counts, total = Counter(text), 0.0
        for term in query:
            df = sum(term in other for other in texts)
            if df:
                tf = counts[term]
                weight = tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(text) / average))
                total += math.log(1 + (len(texts) - df + 0.5) / (df + 0.5)) * weight
        scores.append(total)
    return scores


def frequencies(texts):
    return Counter(term for text in texts for term in set(text))


def candidates(texts, reference):
    for text in texts:
        weights = document_weights(Counter(text), length=len(text), average_length=reference)
        yield len(text), list(weights), np.array(list(weights.values()), dtype=np.float32)


def laid_out(rows, ids=None):
    """Candidates of (length, lexemes, weights) as the store gives them."""
    rows = list(rows)
    return LexicalRows(
        list(range(len(rows))) if ids is None else ids,
        np.array([length for length, _, _ in rows], dtype=np.float64),
        np.array([len(lexemes) for _, lexemes, _ in rows], dtype=np.int32),
        np.array([lexeme for _, lexemes, _ in rows for lexeme in lexemes], dtype=np.int32),
        np.array([weight for _, _, weights in rows for weight in weights], dtype=np.float32),
    )


def test_idf_by_hand():
    assert idf(1, 10) == pytest.approx(math.log(1 + 9.5 / 1.5))
    assert idf(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert idf(12, 10) == idf(10, 10)


def test_the_heaviest_terms_are_kept():
    weights = document_weights({1: 1, 2: 5, 3: 1, 4: 9, 5: 1}, length=17, average_length=17, limit=3)
    assert list(weights) == [1, 2, 4]


def test_document_weights_of_nothing():
    assert document_weights({}, length=0, average_length=0) == {}


@given(st.integers(1, 1_000), lengths, averages)
def test_term_frequencies_are_recovered_exactly(tf, length, average):
    length = max(length, tf)
    stored = document_weights({1: tf}, length=length, average_length=average)[1]
    assert 0 < stored <= MAX_WEIGHT
    assert stored == float(np.float32(stored))
    assert term_frequency(stored, length=length, average_length=average) == tf


@given(st.integers(1, 10_000), lengths, averages)
def test_recovered_frequencies_always_give_the_stored_weight(tf, length, average):
    length = max(length, tf)
    stored = document_weights({1: tf}, length=length, average_length=average)[1]
    recovered = term_frequency(stored, length=length, average_length=average)
    again = document_weights({1: recovered}, length=length, average_length=average)[1]
    assert again == pytest.approx(stored, rel=3e-7)


@given(texts, st.lists(st.integers(1, 15), max_size=8), averages, averages)
def test_rescored_candidates_have_the_textbook_score(texts, query, reference, average):
    weights = query_weights(Counter(query), document_frequencies=frequencies(texts), chunks=len(texts))
    asked = LexicalQuery(weights, reference_length=reference, average_length=average)
    scores = Counted.of(asked, laid_out(candidates(texts, reference))).scores(asked)
    assert scores.tolist() == pytest.approx(plain_scores(texts, query, average), rel=1e-6, abs=1e-9)


@given(texts, st.lists(st.integers(1, 15), max_size=8), st.sets(st.integers(1, 20), min_size=1), averages, averages)
def test_words_that_a_chunk_is_covered_by_change_no_score(texts, query, besides, reference, average):
    weights = query_weights(Counter(query), document_frequencies=frequencies(texts), chunks=len(texts))
    alone = LexicalQuery(weights, reference_length=reference, average_length=average)
    rarity = {lexeme: 1.0 + lexeme for lexeme in besides}
    together = replace(alone, rarity=rarity, analyses=(frozenset(besides),))
    rows = laid_out(candidates(texts, reference))
    counted = Counted.of(together, rows)
    assert counted.scores(together) == pytest.approx(Counted.of(alone, rows).scores(alone))
    holds = [math.fsum(rarity.get(lexeme, 0) for lexeme in set(text)) / sum(rarity.values()) for text in texts]
    assert counted.coverage(together).tolist() == pytest.approx(holds)


def test_scores_without_query_or_candidates():
    nothing, one = LexicalQuery({}), LexicalQuery({1: 2.0}, reference_length=3, average_length=3)
    assert Counted.of(nothing, laid_out([(3, [1], [1.0])])).scores(nothing).tolist() == [0.0]
    assert Counted.of(nothing, laid_out([(3, [1], [1.0])])).coverage(nothing).tolist() == []
    assert Counted.of(one, laid_out([])).scores(one).tolist() == []
    assert Counted.of(one, laid_out([(0, [], [])])).scores(one).tolist() == [0.0]


@given(st.dictionaries(st.integers(1, 50), st.integers(0, 500)), st.integers(0, 1_000))
def test_chosen_terms_are_the_rarest_within_the_budget(dfs, budget):
    choice = choose_terms(dfs, budget=budget)
    present = {lexeme for lexeme, df in dfs.items() if df}
    assert {*choice.chosen, *choice.remaining} == present
    assert len(choice.chosen) + len(choice.remaining) == len(present)
    if present:
        assert choice.chosen
    spent = [dfs[lexeme] for lexeme in choice.chosen]
    assert len(spent) <= 1 or sum(spent) <= budget
    if choice.remaining:
        assert max(spent) <= dfs[choice.remaining[0]]
        assert sum(spent) + dfs[choice.remaining[0]] > budget


@given(texts, st.sets(st.integers(1, 15), max_size=8), st.integers(0, 20), averages, averages, st.booleans())
def test_no_chunk_without_a_chosen_term_scores_above_the_bound(texts, query, budget, reference, average, with_maxima):
    dfs = frequencies(texts)
    weights = query_weights(dict.fromkeys(query, 1), document_frequencies=dfs, chunks=len(texts))
    choice = choose_terms({lexeme: dfs[lexeme] for lexeme in query}, budget=budget)
    stored = [document_weights(Counter(text), length=len(text), average_length=reference) for text in texts]
    maxima = [max(row.get(lexeme, 0.0) for row in stored) for lexeme in choice.remaining]
    bound = upper_bound(
        [weights[lexeme] for lexeme in choice.remaining],
        maxima if with_maxima else None,
        reference_length=reference,
        average_length=average,
    )
    for text, score in zip(texts, plain_scores(texts, query, average), strict=True):
        if not set(text) & set(choice.chosen):
            assert score <= bound + 1e-9


@given(documents=st.lists(texts, min_size=1, max_size=3), query=st.lists(st.integers(1, 12), min_size=1, max_size=5))
def test_in_its_context_a_chunk_scores_as_one_whose_neighbours_terms_count_less_and_its_own_once_more(documents, query):
    chunks = [chunk for document in documents for chunk in document]
    average, reference = np.mean([len(chunk) for chunk in chunks]), 7.0
    pairs = [
        (place, other)
        for document, start in zip(documents, np.cumsum([0, *map(len, documents)]), strict=False)
        for place in range(start, start + len(document))
        for other in (place - 1, place + 1)
        if start <= other < start + len(document)
    ]
    usually = len(pairs) / len(chunks)
    weights = query_weights(Counter(query), document_frequencies=frequencies(chunks), chunks=len(chunks))
    rows = list(candidates(chunks, reference))
    asked = LexicalQuery(weights, reference_length=reference, average_length=average, usually_beside=usually)
    others = laid_out([rows[other] for _, other in pairs], [place for place, _ in pairs])
    found = in_context(asked, laid_out(rows), others)
    expected = []
    for place, chunk in enumerate(chunks):
        beside = [chunks[other] for own, other in pairs if own == place]
        length = len(chunk) + BESIDE * sum(map(len, beside))
        score = 0.0
        for term in query:
            tf = chunk.count(term) + BESIDE * sum(other.count(term) for other in beside)
            saturation = K1 * (1 - B + B * length / (average * (1 + BESIDE * usually)))
            score += weights.get(term, 0.0) / max(query.count(term), 1) * tf * (K1 + 1) / (tf + saturation)
        score += sum(SAID * weights.get(term, 0.0) ** SAID_POWER for term in set(query) & set(chunk))
        expected.append(score)
    assert list(found.values()) == pytest.approx(expected, rel=1e-3, abs=1e-6)
