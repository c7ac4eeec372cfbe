"""What a request to a reranker is billed as."""

from __future__ import annotations

import pytest

from recollect.providers.embedder import estimated_searches


@pytest.mark.parametrize(
    ("passages", "searches"),
    [
        (["short"] * 100, 1),
        (["short"] * 101, 2),
        (["a" * 4 * 600] * 50, 1),  # two pieces each
        (["a" * 4 * 600] * 51, 2),
        (["a" * 4 * 5_000], 1),
    ],
)
def test_a_search_is_a_question_with_a_hundred_pieces(passages, searches):
    assert estimated_searches("How many days?", passages) == searches
