from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.retrieval.enhance.feedback import FeedbackSettings, PseudoRelevanceFeedback, moved_query, smoothed


def units(count, dimension=8, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@st.composite
def rankings(draw):
    count = draw(st.integers(0, 30))
    vectors = units(count, seed=draw(st.integers(0, 1000)))
    scores = sorted(draw(st.lists(st.floats(-5, 5), min_size=count, max_size=count)), reverse=True)
    return [(10 + i, score) for i, score in enumerate(scores)], {10 + i: vector for i, vector in enumerate(vectors)}


def by_similarity(similarities):
    return sorted(similarities.items(), key=lambda item: (-item[1], item[0]))


@given(rankings(), st.integers(0, 12), st.integers(0, 12), st.integers(1, 40), st.floats(0, 0.9))
def test_the_same_candidates_come_back_in_an_order_that_their_scores_agree_with(made, passages, near, depth, smoothing):
    ranking, vectors = made
    settings = FeedbackSettings(passages=passages, neighbours=near, depth=depth, smoothing=smoothing)
    missing = {key: value for key, value in vectors.items() if key % 5}
    for known in (vectors, missing, {}):
        result = PseudoRelevanceFeedback(settings).rerank(
            units(1, seed=1)[0], ranking, vectors=known, fuse=by_similarity
        )
        assert sorted(key for key, _ in result) == sorted(key for key, _ in ranking)
        scores = [score for _, score in result]
        assert scores == sorted(scores, reverse=True)


@given(rankings(), st.integers(1, 12), st.floats(0.01, 0.9))
def test_smoothed_scores_stay_between_the_lowest_and_the_highest(made, neighbours, weight):
    ranking, vectors = made
    result = smoothed(ranking, vectors, neighbours=neighbours, weight=weight)
    if ranking:
        scores = [score for _, score in ranking]
        assert all(min(scores) - 1e-9 <= score <= max(scores) + 1e-9 for _, score in result)


@given(rankings(), st.randoms())
def test_smoothing_does_not_depend_on_the_order_that_candidates_come_in(made, random):
    ranking, vectors = made
    shuffled = random.sample(ranking, len(ranking))
    first = smoothed(ranking, vectors, neighbours=3, weight=0.4)
    again = smoothed(shuffled, vectors, neighbours=3, weight=0.4)
    assert dict(first) == pytest.approx(dict(again), abs=1e-5)


def test_what_resembles_good_candidates_rises_and_a_loner_keeps_its_place_in_scores():
    axes = np.eye(4, dtype=np.float32)
    vectors = {1: axes[0], 2: axes[0], 3: axes[1], 4: axes[0]}
    ranking = [(1, 1.0), (2, 0.9), (3, 0.5), (4, 0.4)]
    result = smoothed(ranking, vectors, neighbours=2, weight=0.5)
    assert dict(result)[3] == 0.5
    assert [chunk_id for chunk_id, _ in result] == [1, 2, 4, 3]
    assert dict(result)[4] == pytest.approx(0.5 * 0.4 + 0.5 * 0.95)


def test_nothing_to_smooth_leaves_the_ranking():
    ranking = [(1, 2.0), (2, 1.0)]
    vectors = dict(zip((1, 2), units(2), strict=True))
    assert smoothed(ranking, vectors, neighbours=0, weight=0.4) == ranking
    assert smoothed(ranking, vectors, neighbours=3, weight=0) == ranking
    assert smoothed(ranking[:1], vectors, neighbours=3, weight=0.4) == ranking[:1]
    assert smoothed([], {}, neighbours=3, weight=0.4) == []


def test_feedback_sees_the_moved_similarities_of_the_first_candidates_only():
    seen = []
    vectors = dict(enumerate(units(6)))
    ranking = [(i, 6.0 - i) for i in range(6)]
    query = units(1, seed=9)[0]

    def fuse(similarities):
        seen.append(similarities)
        return by_similarity(similarities)

    settings = FeedbackSettings(passages=2, weight=0.5, depth=4, neighbours=0)
    result = PseudoRelevanceFeedback(settings).rerank(query, ranking, vectors=vectors, fuse=fuse)
    moved = moved_query(query, np.stack([vectors[0], vectors[1]]), weight=0.5)
    assert seen == [pytest.approx({i: float(vectors[i] @ moved) for i in range(4)}, abs=1e-5)]
    assert [key for key, _ in result[4:]] == [4, 5]


def test_without_a_query_vector_only_smoothing_happens():
    vectors = dict(enumerate(units(5)))
    ranking = [(i, 5.0 - i) for i in range(5)]
    result = PseudoRelevanceFeedback().rerank(None, ranking, vectors=vectors, fuse=pytest.fail)
    assert result == smoothed(ranking, vectors, neighbours=8, weight=0.4)


def test_the_query_moves_to_the_results_and_stays_of_unit_length():
    query, results = units(1)[0], units(3, seed=4)
    moved = moved_query(query, results, weight=0.5)
    assert np.linalg.norm(moved) == pytest.approx(1, abs=1e-5)
    expected = query + 0.5 * results.mean(axis=0)
    np.testing.assert_allclose(moved, expected / np.linalg.norm(expected), atol=1e-6)
    np.testing.assert_array_equal(moved_query(query, results[:0], weight=0.5), query)
    np.testing.assert_array_equal(moved_query(query, -query[None, :], weight=1), query)


@pytest.mark.parametrize(
    "wrong", [{"passages": -1}, {"weight": -0.1}, {"neighbours": 101}, {"smoothing": 1}, {"depth": 0}]
)
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        FeedbackSettings(**wrong)
