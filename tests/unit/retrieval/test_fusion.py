from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.retrieval.fusion import rrf, weighted

rankings = st.dictionaries(
    st.integers(1, 40), st.floats(0, 30, allow_nan=False).map(lambda x: round(x, 3)), max_size=20
).map(lambda scores: sorted(scores.items(), key=lambda item: -item[1]))


def ids(fused):
    return [chunk_id for chunk_id, _ in fused]


def test_rrf_by_hand():
    fused = rrf([[(7, 0.9), (8, 0.8)], [(8, 12.0), (9, 3.0)]], k=60)
    assert ids(fused) == [8, 7, 9]
    assert dict(fused) == pytest.approx({8: 1 / 62 + 1 / 61, 7: 1 / 61, 9: 1 / 62})


def test_rrf_weights_and_k():
    fused = rrf([[(1, 1.0)], [(2, 1.0)]], k=0, weights=[0.25, 0.75])
    assert fused == [(2, 0.75), (1, 0.25)]


def test_rrf_counts_the_first_place_of_a_repeated_chunk_and_closes_the_gap():
    assert rrf([[(1, 3.0), (1, 2.0), (2, 1.0)]], k=1) == [(1, 1 / 2), (2, 1 / 3)]


@pytest.mark.parametrize(("k", "weights"), [(-1, None), (60, [1.0]), (60, [1.0, -0.1]), (60, [1.0, math.nan])])
def test_rrf_refuses_what_makes_no_sense(k, weights):
    with pytest.raises(UsageError):
        rrf([[(1, 1.0)], [(2, 1.0)]], k=k, weights=weights)


def test_weighted_by_hand():
    # Both retrievers standardise to +1 and -1.
    fused = weighted([(1, 0.8), (2, 0.6)], [(2, 9.0), (1, 5.0)], dense_weight=0.75)
    assert dict(fused) == pytest.approx({1: 0.5, 2: -0.5})


def test_weighted_missing_scores():
    # Chunk 3 has no similarity: it counts as 0.2. Chunks 1 and 2 share no word with the query: 0.
    dense = weighted([(1, 0.8), (2, 0.2)], [(3, 5.0)], dense_weight=1)
    assert dict(dense)[3] == dict(dense)[2]
    lexical = weighted([(1, 0.8), (2, 0.2)], [(3, 5.0)], dense_weight=0)
    assert ids(lexical) == [3, 1, 2]
    assert dict(lexical)[1] == dict(lexical)[2]


def test_weighted_uses_known_scores_of_the_other_retriever():
    lists = ([(1, 0.5), (2, 0.4)], [(3, 6.0), (2, 5.0)])
    assert ids(weighted(*lists, dense_weight=0.9)) == [1, 3, 2]
    assert ids(weighted(*lists, dense_weight=0.9, known_dense={3: 0.9}))[0] == 3
    assert ids(weighted(*lists, dense_weight=0.1)) == [3, 2, 1]
    assert ids(weighted(*lists, dense_weight=0.1, known_lexical={1: 50.0, 77: 99.0})) == [1, 3, 2]


def test_one_single_lexical_hit_is_heard():
    dense = [(i, 0.5 - i / 1000) for i in range(1, 51)]
    assert ids(weighted(dense, [(50, 3.0)]))[0] == 50


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_weighted_refuses_a_share_outside_its_range(weight):
    with pytest.raises(UsageError, match="dense_weight"):
        weighted([(1, 1.0)], [], dense_weight=weight)


def test_empty_arms():
    assert rrf([]) == rrf([[], []]) == weighted([], []) == []
    assert ids(weighted([(5, 0.3), (4, 0.7)], [])) == [4, 5]
    assert ids(weighted([], [(5, 3.0), (4, 7.0)])) == [4, 5]


def test_scores_that_are_not_finite_count_as_missing():
    fused = weighted([(1, math.nan), (2, 0.5), (3, 0.1)], [(1, math.inf), (2, 1.0)])
    assert ids(fused) == [2, 1, 3]
    assert all(math.isfinite(score) for _, score in fused)


def test_equal_scores_are_ordered_by_chunk_id():
    assert ids(weighted([(9, 0.5), (3, 0.5), (6, 0.5)], [])) == [3, 6, 9]
    assert ids(rrf([[(9, 1.0)], [(3, 1.0)]])) == [3, 9]


@given(rankings, rankings, st.floats(0, 1))
def test_every_candidate_comes_out_once_in_order(dense, lexical, share):
    for fused in (weighted(dense, lexical, dense_weight=share), rrf([dense, lexical])):
        assert sorted(ids(fused)) == sorted({*ids(dense), *ids(lexical)})
        assert fused == sorted(fused, key=lambda item: (-item[1], item[0]))


@given(rankings, rankings, st.randoms())
def test_weighted_does_not_depend_on_the_order_of_its_input(dense, lexical, random):
    shuffled = (random.sample(dense, len(dense)), random.sample(lexical, len(lexical)))
    assert weighted(*shuffled) == weighted(dense, lexical)


@given(rankings, rankings, st.sampled_from([0.25, 2.0, 8.0]), st.sampled_from([-4.0, 0.5, 16.0]))
def test_weighted_does_not_depend_on_the_scale_of_the_similarities(dense, lexical, scale, offset):
    rescaled = [(chunk_id, score * scale + offset) for chunk_id, score in dense]
    assert dict(weighted(rescaled, lexical)) == pytest.approx(dict(weighted(dense, lexical)), abs=1e-5)


@given(rankings, rankings)
def test_dominance(dense, lexical):
    # What is better in one retriever and no worse in the other never comes later.
    places = {chunk_id: place for place, chunk_id in enumerate(ids(weighted(dense, lexical)))}
    known_dense, known_lexical = dict(dense), dict(lexical)
    common = known_dense.keys() & known_lexical.keys()
    for a in common:
        for b in common:
            if known_dense[a] > known_dense[b] + 0.01 and known_lexical[a] >= known_lexical[b]:
                assert places[a] < places[b]
