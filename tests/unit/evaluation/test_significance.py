from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.evaluation.compare import holm, paired_difference

figures = st.floats(0, 1, allow_nan=False).map(lambda value: round(value, 3))
pairs = st.lists(st.tuples(figures, figures), min_size=1, max_size=40)


def test_a_handful_of_queries_is_tried_in_every_combination():
    first, second = [0.0, 0.1, 0.4, 0.5], [0.3, 0.2, 0.9, 0.4]
    differences = np.subtract(second, first)
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in product((1, -1), repeat=4)]
    expected = np.mean([value >= abs(differences.sum()) - 1e-9 for value in sums])
    assert paired_difference(first, second).p_value == pytest.approx(expected)


def test_a_constant_small_gain_on_many_queries_is_real():
    random = np.random.default_rng(1)
    first = random.random(200)
    verdict = paired_difference(first, first + 0.02 + random.normal(0, 0.02, 200), seed=3)
    assert verdict.p_value < 0.001
    assert 0.01 < verdict.interval[0] < verdict.difference < verdict.interval[1] < 0.03
    assert verdict.better > 100 > verdict.worse


def test_a_single_lucky_query_is_not():
    verdict = paired_difference([0.5] * 50, [0.5] * 49 + [1.0])
    assert verdict.p_value == 1
    assert verdict.interval[0] == 0
    assert (verdict.better, verdict.worse) == (1, 0)


def test_the_level_holds_where_nothing_differs():
    """Under chance alone, about one test in twenty falls below 0.05, and one interval in twenty misses 0."""
    random = np.random.default_rng(7)
    below = missed = 0
    for seed in range(300):
        one, two = random.random(40), random.random(40)
        verdict = paired_difference(one, two, samples=400, seed=seed)
        below += verdict.p_value < 0.05
        missed += not verdict.interval[0] <= 0 <= verdict.interval[1]
    assert 4 <= below <= 30
    assert 4 <= missed <= 40


@given(pairs)
def test_swapping_the_systems_mirrors_the_verdict(both):
    first, second = zip(*both, strict=True)
    there = paired_difference(first, second, samples=200)
    back = paired_difference(second, first, samples=200)
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_value == pytest.approx(back.p_value)
    assert (there.interval[0], there.interval[1]) == pytest.approx((-back.interval[1], -back.interval[0]), abs=1e-12)
    assert 0 < there.p_value <= 1
    assert there.interval[0] <= there.interval[1]


@given(pairs, st.integers(0, 5))
def test_the_same_seed_gives_the_same_result(both, seed):
    first, second = zip(*both, strict=True)
    assert paired_difference(first, second, samples=200, seed=seed) == paired_difference(
        first, second, samples=200, seed=seed
    )


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_never_lowers(p_values):
    corrected = holm(p_values)
    assert all(after >= before for before, after in zip(p_values, corrected, strict=True))
    by_raw = [corrected[i] for i in sorted(range(len(p_values)), key=lambda i: p_values[i])]
    assert by_raw == sorted(by_raw)
    assert all(value <= 1 for value in corrected)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        ([], [], {}),
        ([1.0], [1.0, 2.0], {}),
        ([1.0], [float("nan")], {}),
        ([1.0], [1.0], {"samples": 10}),
        ([1.0], [1.0], {"confidence": 1}),
    ],
)
def test_what_cannot_be_compared_is_refused(first, second, options):
    with pytest.raises(UsageError):
        paired_difference(first, second, **options)
