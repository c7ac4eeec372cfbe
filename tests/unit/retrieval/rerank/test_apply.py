from __future__ import annotations

import logging
import threading
from contextvars import copy_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import ProviderError, UsageError
from recollect.interruption import Interrupted, Interruption, check, current
from recollect.retrieval.rerank.apply import MAX_CALLS, apply, standardised
from recollect.retrieval.rerank.base import Candidate

SCORES = st.floats(-1e6, 1e6, allow_nan=False)


class Fixed:
    name = "fixed"

    def __init__(self, scores):
        self.scores = scores

    def rerank(self, query, candidates):
        return self.scores


class Failing:
    name = "failing"

    def rerank(self, query, candidates):
        raise ProviderError("the service is down", provider="somewhere", status=503, retryable=True)


class Hanging:
    name = "hanging"

    def __init__(self):
        self.release = threading.Event()

    def rerank(self, query, candidates):
        self.release.wait(60)
        return [0.0] * len(candidates)


def candidates(*scores):
    return [Candidate(chunk_id=number, text=f"text {number}", score=score) for number, score in enumerate(scores, 1)]


def order(outcome):
    return [item.candidate.chunk_id for item in outcome.ranking]


@given(pairs=st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=30), weight=st.floats(0, 1))
def test_every_candidate_comes_back_once_best_first(pairs, weight):
    given_candidates = candidates(*(first for first, _ in pairs))
    outcome = apply(Fixed([second for _, second in pairs]), "q", given_candidates, weight=weight)
    assert sorted(order(outcome)) == [candidate.chunk_id for candidate in given_candidates]
    scores = [item.score for item in outcome.ranking]
    assert scores == sorted(scores, reverse=True)


@given(pairs=st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=20))
def test_scale_and_offset_of_a_reranker_change_nothing(pairs):
    given_candidates = candidates(*(float(first) for first, _ in pairs))
    plain = apply(Fixed([float(second) for _, second in pairs]), "q", given_candidates, weight=0.4)
    moved = apply(Fixed([second * 8.0 + 64 for _, second in pairs]), "q", given_candidates, weight=0.4)
    assert [item.score for item in plain.ranking] == pytest.approx([item.score for item in moved.ranking], abs=1e-9)


def test_the_weight_decides_between_the_stages():
    given_candidates, reranker = candidates(3.0, 2.0, 1.0), Fixed([1.0, 2.0, 3.0])
    assert order(apply(reranker, "q", given_candidates, weight=0.9)) == [3, 2, 1]
    assert order(apply(reranker, "q", given_candidates, weight=0.1)) == [1, 2, 3]
    outcome = apply(reranker, "q", given_candidates, weight=1)
    assert outcome.reranked
    assert [item.rerank_score for item in outcome.ranking] == [3.0, 2.0, 1.0]


def test_without_a_weight_it_is_not_asked():
    outcome = apply(Failing(), "q", candidates(1.0, 2.0), weight=0)
    assert (order(outcome), outcome.reranked) == ([2, 1], False)


def test_nothing_to_rerank():
    outcome = apply(Failing(), "q", [], weight=1)
    assert (outcome.ranking, outcome.reranked) == ((), False)


@pytest.mark.parametrize(
    ("reranker", "named"),
    [
        (Failing(), "the service is down"),
        (Fixed([1.0]), "1 scores for 3 candidates"),
        (Fixed([1.0, float("nan"), 2.0]), "no finite numbers"),
        (Fixed(["high", "low", "low"]), "ValueError"),
    ],
)
def test_a_failure_leaves_the_first_order_and_is_logged(reranker, named, caplog):
    with caplog.at_level(logging.WARNING, logger="recollect"):
        outcome = apply(reranker, "q", candidates(1.0, 3.0, 2.0), weight=0.5)
    assert order(outcome) == [2, 3, 1]
    assert not outcome.reranked
    assert named in outcome.reason
    assert reranker.name in caplog.text
    assert named in caplog.text


class Looping:
    """Works for ever, and looks now and then whether anybody waits."""

    name = "looping"

    def __init__(self) -> None:
        self.ended = threading.Event()

    def rerank(self, query, candidates):
        try:
            while True:
                check()
        finally:
            self.ended.set()


def test_a_reranker_that_nobody_waits_for_any_more_is_stopped():
    looping = Looping()
    assert not apply(looping, "q", candidates(1.0, 2.0), weight=1, timeout_seconds=0.01).reranked
    assert looping.ended.wait(30)

    looping, interruption, ends = Looping(), Interruption(), []
    context = copy_context()
    context.run(current.set, interruption)

    def search() -> None:
        try:
            apply(looping, "q", candidates(1.0, 2.0), weight=1, timeout_seconds=600)
        except Interrupted:
            ends.append("interrupted")

    thread = threading.Thread(target=context.run, args=(search,))
    thread.start()
    interruption.interrupt()
    thread.join(30)
    assert ends == ["interrupted"]
    assert looping.ended.wait(30)


def test_hanging_rerankers_neither_block_nor_pile_up():
    before = threading.active_count()
    hanging = Hanging()
    try:
        outcomes = [apply(hanging, "q", candidates(1.0, 2.0), weight=1, timeout_seconds=0.01) for _ in range(20)]
        assert not any(outcome.reranked for outcome in outcomes)
        assert [order(outcome) for outcome in outcomes] == [[2, 1]] * 20
        assert "longer than 0.01 seconds" in outcomes[0].reason
        assert "under way already" in outcomes[-1].reason
        assert threading.active_count() <= before + MAX_CALLS
    finally:
        hanging.release.set()
    for thread in threading.enumerate():
        if thread.name == "recollect-rerank-hanging":
            thread.join(30)
    # Once they have returned, there is room again.
    assert apply(Fixed([1.0, 0.0]), "q", candidates(1.0, 2.0), weight=1).reranked


@pytest.mark.parametrize("options", [{"weight": -0.1}, {"weight": 1.1}, {"weight": 1, "timeout_seconds": 0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError):
        apply(Fixed([]), "q", [], **options)


@given(values=st.lists(SCORES, max_size=30))
def test_standard_scores_have_no_mean_and_a_deviation_of_one_or_none(values):
    found = standardised(values)
    assert found.shape == (len(values),)
    if found.any():
        assert abs(found.mean()) < 1e-6
        assert found.std() == pytest.approx(1)
    np.testing.assert_array_equal(standardised([7.0] * len(values)), 0)
