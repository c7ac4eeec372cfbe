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
    # Stretches of the rows, in any order, some of them empty.
    ends = np.sort(random.integers(0, rows + 1, 6)).reshape(-1, 2)
    ranges = np.array([[0, rows]]) if random.random() < 0.3 else random.permutation(ends)
    compiled, plain = both(lambda: kernels.nearest_codes(codes, query, ranges, mask=mask, limit=limit))
    assert compiled.tolist() == plain.tolist()
    looked_at = np.concatenate([np.arange(*one) for one in ranges])
    eligible = len(looked_at) if mask is None else int(mask[looked_at].sum())
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
@given(seed=SEEDS, rows=st.integers(1, 300), limit=st.integers(1, 60), equal=st.booleans())
def test_words_are_scored_alike(seed: int, rows: int, limit: int, equal: bool):
    random = np.random.default_rng(seed)
    holders, counts, ranges = postings_of(random, rows)
    lengths, mask = random.integers(1, 90, rows).astype(np.int32), mask_of(random, rows)
    if equal:
        counts[:], lengths[:] = 1, 7  # so that many are equally good
    own = np.sort(random.random(4).astype(np.float32) ** 3 + 0.01)[::-1]
    weights = np.stack([own, own[::-1].cumsum()[::-1] * np.float32(1.00001)])
    random.shuffle(ranges)

    def found() -> list[int]:
        scores = np.zeros(rows, dtype=np.float32)
        given = holders, counts, ranges, weights, lengths, (0.3, 0.05)
        rows_found = kernels.best_by_words(*given, scores=scores, mask=mask, limit=limit)
        assert not scores.any()
        return rows_found.tolist()

    compiled, plain = both(found)
    assert compiled == plain
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
            anything(first, np.int64),
            anything(second, np.int64),
            anything(fifth, np.int64),
            None,
            third,
            np.zeros(fourth, np.int32),
        ),
        lambda: made.products(
            anything(first, np.int16), anything(second, np.float32), anything(third, np.int32), np.zeros(fourth, "f4")
        ),
        lambda: made.best_by_words(
            anything(first, np.int32),
            anything(second, np.uint16),
            anything(third, np.int64),
            anything(third, np.float32),
            anything(fifth, np.int32),
            0.3,
            0.1,
            None,
            np.zeros(fifth, np.float32),
            fourth,
            np.zeros(sixth, np.int32),
        ),
        lambda: made.held(
            anything(first, np.int32),
            anything(second, np.uint16),
            anything(third, np.int64),
            anything(fourth, np.int32),
            np.zeros(fifth, np.uint16),
        ),
        lambda: made.products(None, None, None, None),
        lambda: made.products(np.zeros((4, 4), np.float16)[:, ::2], *[np.zeros(2, np.float32)] * 3),
    ]
    for call in calls:
        try:
            call()
        except (ValueError, BufferError, TypeError):
            continue
