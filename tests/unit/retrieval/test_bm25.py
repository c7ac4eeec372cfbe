from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.retrieval.lexical import (
    BESIDE,
    K1,
    MAX_WEIGHT,
    B,
    choose_terms,
    document_weights,
    idf,
    matches,
    query_weights,
    rescore,
    rescore_in_context,
    stored_scores,
    term_frequency,
    upper_bound,
    weights_held,
)

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


def laid_out(terms, rows):
    """(length, lexemes, weights) of each candidate, as `rescore` takes them all, searched for terms."""
    rows = list(rows)
    found = matches(
        terms,
        counts=np.array([len(lexemes) for _, lexemes, _ in rows], dtype=np.int32),
        lexemes=np.array([lexeme for _, lexemes, _ in rows for lexeme in lexemes], dtype=np.int32),
        stored=np.array([weight for _, _, weights in rows for weight in weights], dtype=np.float32),
    )
    return {"found": found, "lengths": np.array([length for length, _, _ in rows], dtype=np.int64)}


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
    rows = laid_out(weights, candidates(texts, reference))
    scores = rescore(weights, **rows, reference_length=reference, average_length=average)
    assert scores.tolist() == pytest.approx(plain_scores(texts, query, average), rel=1e-6, abs=1e-9)


@given(texts, st.lists(st.integers(1, 15), max_size=8), st.sets(st.integers(1, 20)), averages, averages)
def test_terms_that_are_looked_up_besides_change_no_score(texts, query, besides, reference, average):
    weights = query_weights(Counter(query), document_frequencies=frequencies(texts), chunks=len(texts))
    held = candidates(texts, reference)
    alone, together = (laid_out(terms, candidates(texts, reference)) for terms in (weights, {*weights, *besides}))
    asked = {"reference_length": reference, "average_length": average}
    assert rescore(weights, **together, **asked).tolist() == rescore(weights, **alone, **asked).tolist()
    for scores in (stored_scores, weights_held):
        assert scores(weights, together["found"]).tolist() == scores(weights, alone["found"]).tolist()
    holds = [math.fsum(weights.get(lexeme, 0) for lexeme in lexemes) for _, lexemes, _ in held]
    assert weights_held(weights, together["found"]).tolist() == pytest.approx(holds)


def test_rescore_without_query_or_candidates():
    lengths = {"reference_length": 3, "average_length": 3}
    assert rescore({}, **laid_out([], [(3, [1], [1.0])]), **lengths).tolist() == [0.0]
    assert rescore({1: 2.0}, **laid_out([1], []), **lengths).tolist() == []
    assert rescore({1: 2.0}, **laid_out([1], [(0, [], [])]), **lengths).tolist() == [0.0]


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
def test_in_its_context_a_chunk_scores_as_one_whose_neighbours_terms_count_less(documents, query):
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
    found = rescore_in_context(
        weights,
        laid_out(query, rows)["found"],
        laid_out(query, [rows[other] for _, other in pairs])["found"],
        places=np.array([place for place, _ in pairs], dtype=np.intp),
        lengths=np.array([length for length, *_ in rows]),
        beside_lengths=np.array([rows[other][0] for _, other in pairs]),
        reference_length=reference,
        average_length=average,
        usually_beside=usually,
    )
    expected = []
    for place, chunk in enumerate(chunks):
        beside = [chunks[other] for own, other in pairs if own == place]
        length = len(chunk) + BESIDE * sum(map(len, beside))
        score = 0.0
        for term in query:
            tf = chunk.count(term) + BESIDE * sum(other.count(term) for other in beside)
            saturation = K1 * (1 - B + B * length / (average * (1 + BESIDE * usually)))
            score += weights.get(term, 0.0) / max(query.count(term), 1) * tf * (K1 + 1) / (tf + saturation)
        expected.append(score)
    assert found.tolist() == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_a_chunk_and_those_beside_it_are_looked_through_for_the_same_words():
    rows = list(candidates([[1, 2]], 2.0))
    own, other = (laid_out(terms, rows)["found"] for terms in ([1], [2]))
    one = np.ones(1)
    with pytest.raises(UsageError, match="same terms"):
        rescore_in_context(
            {1: 1.0},
            own,
            other,
            places=np.zeros(1, dtype=np.intp),
            lengths=one,
            beside_lengths=one,
            reference_length=1.0,
            average_length=1.0,
        )
