"""Reranking by a model that reads question and passage together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from recollect.retrieval.rerank.base import Candidate


class PairScorer(Protocol):
    """Scores pairs of texts; `recollect.embedding.cross_encoder.CrossEncoder` is one."""

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """One number per passage, higher is better."""
        ...


class CrossEncoderReranker:
    """Scores passages by a cross-encoder: the most precise measure here, and by far the slowest.

    Args:
        scorer: The model, of this machine or a provider's.
        name: What searches and logs call it.
    """

    def __init__(self, scorer: PairScorer, *, name: str = "cross_encoder") -> None:
        self.name = name
        self._scorer = scorer

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Reranker`."""
        return self._scorer.scores(query, [candidate.text for candidate in candidates])
