"""The bounds of a search: the same at every door."""

from __future__ import annotations

#: Characters of a query or question at most.
MAX_QUERY_CHARACTERS = 20_000
#: Passages that a search returns at most.
MAX_TOP_K = 1_000
#: Candidates that each retriever contributes at most.
MAX_CANDIDATES = 10_000
#: Candidates that a reranker sees at most.
MAX_RERANK_CANDIDATES = 1_000
#: Chunks before and after each passage at most.
MAX_NEIGHBOURS = 10
#: The constant of reciprocal rank fusion at most.
MAX_RRF_K = 10_000
# Passages times neighbours: each neighbour is text that is read and returned.
_MAX_WIDENED = 1_000


def most_passages(neighbours: int) -> int:
    """Return how many passages a search returns at most that widens each by so many chunks on both sides."""
    return min(MAX_TOP_K, _MAX_WIDENED // max(neighbours, 1))
