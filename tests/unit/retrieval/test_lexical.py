"""The lexical retriever's own arithmetic; its results are compared with brute force on a real store."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.retrieval.bm25 import matches, stored_scores
from recollect.retrieval.lexical import LexicalHits, _kth


def test_the_path_says_what_was_proven():
    assert LexicalHits([], {}, exact=True).path == "no terms"
    assert LexicalHits([], {1: 1.0}, exact=True).path == "exact"
    assert LexicalHits([], {1: 1.0}, exact=False).path == "approximate"


def test_the_kth_best_is_nothing_where_there_are_fewer():
    assert _kth({1: 3.0, 2: 1.0, 3: 2.0}, 2) == 2.0
    assert _kth({1: 3.0}, 2) == 0.0


def test_a_stored_score_is_the_inner_product():
    weights = {5: 0.5, 9: 0.25, 77: 9.0}
    found = matches(
        weights,
        counts=np.array([3, 0, 1], np.int32),
        lexemes=np.array([2, 5, 9, 9], np.int32),
        stored=np.array([1.0, 2.0, 4.0, 1.0], np.float32),
    )
    assert stored_scores(weights, found).tolist() == pytest.approx([2.0, 0.0, 0.25])
