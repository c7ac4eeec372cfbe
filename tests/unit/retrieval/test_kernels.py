"""The loops of searches in memory: compiled and in NumPy they find the same, and neither reads beyond its arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.resident import kernels

needs_compiler = pytest.mark.skipif(kernels.compiled is None, reason="The extension is not built here.")
SEEDS = st.integers(0, 2**32 - 1)


def both(call: Callable[[], Any]) -> tuple[Any, Any]:
    made = kernels.compiled
    try:
        compiled = call()
        kernels.compiled = None
        return compiled, call()
    finally:
        kernels.compiled = made


def mask_of(random: np.random.Generator, rows: int) -> np.ndarray | None:
    return None if random.random() < 0.3 else (random.random(rows) < random.random()).astype(np.uint8)


def postings_of(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    parts = [np.flatnonzero(random.random(rows) < share) for share in (0.0, 0.1, 0.9, 1.0)]
    ends = np.cumsum([len(part) for part in parts])
    ranges = np.stack([ends - [len(part) for part in parts], ends], axis=1).astype(np.int64)
    holders = np.concatenate(parts).astype(np.int32)
    return holders, random.integers(1, 9, len(holders)).astype(np.uint16), ranges


@needs_compiler
@given(seed=SEEDS, rows=st.integers(0, 300), words=st.integers(1, 12), limit=st.integers(1, 60))
def test_codes_are_compared_alike(seed: int, rows: int, words: int, limit: int):
    random = np.random.default_rng(seed)
    # Few different bits, so that many are equally near.
    codes = random.integers(0, 4, (words, rows), dtype=np.uint64)
    query, mask = random.integers(0, 4, words, dtype=np.uint64), mask_of(random, rows)
    compiled, plain = both(lambda: kernels.nearest_codes(codes, query, mask=mask, limit=limit))
    assert compiled.tolist() == plain.tolist()
    eligible = rows if mask is None else int(mask.sum())
    assert min(eligible, limit) <= len(compiled) <= min(eligible, 2 * limit)


@needs_compiler
@given(seed=SEEDS, rows=st.integers(1, 100), dimension=st.integers(1, 100))
def test_vectors_are_compared_alike(seed: int, rows: int, dimension: int):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((rows, dimension)).astype(np.float16)
    vectors[0, 0] = 6e-8  # less than what is normal in half precision
    query = random.standard_normal(dimension).astype(np.float32)
    chosen = random.integers(0, rows, random.integers(0, 50)).astype(np.int32)
    compiled, plain = both(lambda: kernels.products(vectors, query, chosen))
    assert compiled == pytest.approx(plain, abs=1e-4)


@needs_compiler
@given(seed=SEEDS, rows=st.integers(1, 300), limit=st.integers(1, 60))
def test_words_are_scored_alike(seed: int, rows: int, limit: int):
    random = np.random.default_rng(seed)
    holders, counts, ranges = postings_of(random, rows)
    weights, saturation = random.random(4).astype(np.float32) + 0.5, random.random(rows).astype(np.float32) + 0.1
    mask = mask_of(random, rows)

    def found() -> tuple[list[float], list[int]]:
        scores = np.full(rows, np.nan, dtype=np.float32)
        kernels.add_words(holders, counts, ranges, weights, saturation, scores)
        return scores.tolist(), kernels.best(scores, mask=mask, limit=limit).tolist()

    compiled, plain = both(found)
    assert compiled[0] == pytest.approx(plain[0], rel=1e-5)
    assert compiled[1] == plain[1]
    wanted = np.sort(random.choice(rows, rows // 2, replace=False)).astype(np.int32)
    compiled, plain = both(lambda: kernels.held(holders, counts, ranges, wanted))
    assert compiled.tolist() == plain.tolist()


@needs_compiler
@given(seed=SEEDS, sizes=st.lists(st.integers(0, 40), min_size=6, max_size=6))
def test_arrays_that_do_not_fit_together_are_refused_or_read_within(seed: int, sizes: list[int]):
    """Whatever a damaged copy holds: an error, or an answer, and never what lies beside."""
    random = np.random.default_rng(seed)
    made = kernels.compiled
    assert made is not None

    def anything(size: int, kind: type) -> np.ndarray:
        return random.integers(-50, 50, size).astype(kind)

    first, second, third, fourth, fifth, sixth = sizes
    calls = [
        lambda: made.nearest_codes(
            anything(first, np.int64), anything(second, np.int64), None, third, np.zeros(fourth, np.int32)
        ),
        lambda: made.products(
            anything(first, np.int16), anything(second, np.float32), anything(third, np.int32), np.zeros(fourth, "f4")
        ),
        lambda: made.add_words(
            anything(first, np.int32),
            anything(second, np.uint16),
            anything(third, np.int64),
            anything(fourth, np.float32),
            anything(fifth, np.float32),
            np.zeros(sixth, np.float32),
        ),
        lambda: made.best(anything(first, np.float32), anything(second, np.uint8), third, np.zeros(fourth, np.int32)),
        lambda: made.held(
            anything(first, np.int32),
            anything(second, np.uint16),
            anything(third, np.int64),
            anything(fourth, np.int32),
            np.zeros(fifth, np.uint16),
        ),
        lambda: made.products(None, None, None, None),
        lambda: made.best(np.zeros((4, 4), np.float32)[:, ::2], None, 1, np.zeros(2, np.int32)),
    ]
    for call in calls:
        try:
            call()
        except (ValueError, BufferError, TypeError):
            continue
