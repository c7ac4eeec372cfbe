"""Vectors in lists: each is in one, those alike lie together, and few lists hold what is nearest to a query."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.retrieval.resident import lists
from recollect.retrieval.resident.lists import Lists

ROWS, DIMENSION = 6_000, 32


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lists, "FLAT", 1_000)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """Around 40 subjects, of any length, some of them nothing."""
    random = np.random.default_rng(3)
    subjects = random.standard_normal((40, DIMENSION))
    made = subjects[random.integers(0, 40, ROWS)] + 0.5 * random.standard_normal((ROWS, DIMENSION))
    made[::50] = 0
    return made.astype(np.float16)


def rows_of(found: Lists, ranges: np.ndarray) -> np.ndarray:
    return found.rows_at(np.concatenate([np.arange(*one, dtype=np.int32) for one in ranges]))


def test_few_vectors_are_one_list_in_their_order(vectors: np.ndarray):
    few = Lists.of(vectors[:900], np.ones(900, dtype=np.uint8))
    assert rows_of(few, few.probed(vectors[1].astype(np.float32), 1.0)).tolist() == list(range(900))
    assert few.in_order(np.arange(900)).tolist() == list(range(900))


@pytest.mark.parametrize("share", [1.0, 0.1, 0.001])
def test_the_lists_looked_into_hold_the_nearest(vectors: np.ndarray, share: float):
    found = Lists.of(vectors, (vectors != 0).any(axis=1).astype(np.uint8))
    assert sorted(found.in_order(np.arange(ROWS)).tolist()) == list(range(ROWS))
    looked_into, recalls = 0, []
    allowed = np.random.default_rng(5).random(ROWS) < share if share < 1 else np.ones(ROWS, dtype=bool)
    for query in vectors[1:200].astype(np.float32):
        if not query.any():
            continue
        rows = rows_of(found, found.probed(query, share))
        assert len(np.unique(rows)) == len(rows)
        looked_into += len(rows)
        near = np.where(allowed, vectors.astype(np.float32) @ query, -np.inf)
        best = np.argsort(-near)[: min(10, int(allowed.sum()))]
        recalls.append(float(np.isin(best, rows).mean()))
    assert np.mean(recalls) > 0.97
    if share == 1.0:
        assert looked_into < 0.6 * ROWS * len(recalls)
    if share == 0.001:
        assert min(recalls) == 1.0  # so few are allowed that everything is looked into


def test_more_vectors_go_into_known_lists_until_there_are_many_more(vectors: np.ndarray):
    there = np.ones(ROWS, dtype=np.uint8)
    first = Lists.of(vectors[:3_000], there[:3_000])
    assert Lists.of(vectors, there, first).centres is first.centres
    more = np.concatenate([vectors] * 4)
    assert len(Lists.of(more, np.ones(len(more), dtype=np.uint8), first).centres) > 2 * len(first.centres)
