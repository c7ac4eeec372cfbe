from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import StoreCorruptError, UsageError
from recollect.retrieval.rerank.late_interaction import MAX_BYTES, maxsim, pack, unpack


def vectors(count, dimension, seed=0):
    drawn = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


@given(count=st.integers(0, 400), dimension=st.integers(1, 1100), seed=st.integers(0, 9))
def test_any_text_fits_and_comes_back_as_its_signs(count, dimension, seed):
    given_vectors = vectors(count, dimension, seed)
    packed = pack(given_vectors)
    assert len(packed) <= MAX_BYTES
    found = unpack(packed)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-4)
    assert found.shape[1] == dimension
    assert len(found) <= count
    if len(found) == count:
        np.testing.assert_array_equal(found > 0, given_vectors > 0)


@given(counts=st.lists(st.integers(0, 60), min_size=1, max_size=8), tokens=st.integers(1, 12))
def test_maxsim_is_the_mean_of_the_best_cosines(counts, tokens):
    packed = [pack(vectors(count, 48, seed)) for seed, count in enumerate(counts)]
    query = vectors(tokens, 48, 99)
    expected = [
        float(np.mean([max(float(token @ other) for other in unpack(one)) for token in query])) if count else 0.0
        for one, count in zip(packed, counts, strict=True)
    ]
    assert maxsim(query, packed) == pytest.approx(expected, abs=1e-5)


def test_eighty_tokens_of_384_dimensions_stay_apart():
    assert len(unpack(pack(vectors(80, 384)))) == 80
    assert len(unpack(pack(vectors(500, 384)))) >= 80


def test_the_text_with_the_questions_own_tokens_wins():
    texts = [vectors(60, 384, seed) for seed in range(5)]
    scores = maxsim(texts[3][10:20], [pack(text) for text in texts])
    assert int(np.argmax(scores)) == 3


def test_nothing_scores_nothing():
    assert maxsim(vectors(3, 8), []) == []
    assert maxsim(vectors(0, 8), [pack(vectors(2, 8))]) == [0.0]
    assert maxsim(vectors(3, 8), [pack(vectors(0, 8))]) == [0.0]


@pytest.mark.parametrize("damage", [b"", b"\0" * 3, b"\2", pack(vectors(3, 64))[:-1], pack(vectors(3, 64)) + b"\0"])
def test_damaged_bytes_are_refused(damage):
    with pytest.raises(StoreCorruptError):
        unpack(damage)


def test_another_models_vectors_are_refused():
    with pytest.raises(StoreCorruptError, match="another model"):
        maxsim(vectors(3, 32), [pack(vectors(3, 64))])


@pytest.mark.parametrize("shape", [(3,), (2, 0), (1, 100_000)])
def test_shapes_that_are_no_token_vectors_are_refused(shape):
    with pytest.raises(UsageError):
        pack(np.zeros(shape, np.float32))
