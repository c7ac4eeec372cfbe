from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.lexical import MAX_CONDITIONS, narrowing_terms, necessary_terms


@given(
    bounds=st.dictionaries(st.integers(1, 50), st.floats(0.01, 10), max_size=8),
    threshold=st.floats(0, 40),
    data=st.data(),
)
def test_what_exceeds_the_threshold_meets_every_condition(bounds, threshold, data):
    terms = list(bounds)
    held = data.draw(st.sets(st.sampled_from(terms)) if terms else st.just(set()))
    conditions = necessary_terms(terms, bounds, threshold)
    if math.fsum(bounds[term] for term in held) > threshold:
        assert conditions
        assert all(held & set(condition) for condition in conditions)


@given(bounds=st.dictionaries(st.integers(1, 50), st.floats(0.01, 10), max_size=12), threshold=st.floats(0, 40))
def test_there_are_no_conditions_exactly_where_nothing_can_exceed_the_threshold(bounds, threshold):
    conditions = necessary_terms(list(bounds), bounds, threshold)
    assert bool(conditions) == (math.fsum(bounds.values()) > threshold)
    assert len(conditions) == len(set(conditions)) <= MAX_CONDITIONS


def test_the_first_condition_takes_the_rarest_terms_and_no_more_than_it_must():
    bounds = {1: 6.0, 2: 5.0, 3: 4.0, 4: 1.0}
    assert necessary_terms([1, 2, 3, 4], bounds, 5.0, limit=1) == [(1, 2)]
    assert necessary_terms([1, 2, 3, 4], bounds, 10.0, limit=1) == [(1,)]


def test_chunks_that_need_three_of_four_terms_need_one_of_any_two():
    conditions = necessary_terms([1, 2, 3, 4], dict.fromkeys([1, 2, 3, 4], 1.0), 2.0)
    pairs = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    assert sorted(tuple(sorted(condition)) for condition in conditions) == pairs


@given(
    frequencies=st.dictionaries(st.integers(1, 50), st.integers(1, 10_000), max_size=12),
    budget=st.integers(1, 10_000),
)
def test_narrowing_takes_every_term_once_at_most_and_the_rarest_always(frequencies, budget):
    conditions = narrowing_terms(frequencies, chunks=10_000, budget=budget)
    rarest = sorted(frequencies, key=lambda term: (frequencies[term], term))
    assert [term for condition in conditions for term in condition] == rarest[: sum(map(len, conditions))]
    assert all(conditions)
    assert bool(conditions) == (bool(frequencies) and frequencies[rarest[0]] > budget)
    if conditions:
        assert conditions[0] == (rarest[0],)


@given(
    frequencies=st.dictionaries(st.integers(1, 50), st.integers(1, 10_000), min_size=2, max_size=12),
    budget=st.integers(1, 10_000),
)
def test_narrowing_ends_within_the_budget_or_with_the_last_term(frequencies, budget):
    conditions = narrowing_terms(frequencies, chunks=10_000, budget=budget)
    expected = 10_000.0
    for condition in conditions:
        expected *= 1 - math.prod(1 - frequencies[term] / 10_000 for term in condition)
    taken = sum(map(len, conditions))
    assert not conditions or expected <= budget * (1 + 1e-9) or taken == len(frequencies)
