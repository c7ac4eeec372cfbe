"""The protocol of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A passage that the first stage found.

    Attributes:
        chunk_id: Identifies it; a search's candidates have different ones.
        text: What a reranker reads: the passage, with its title and headings before it where there are any.
        score: What the first stage ordered it by; comparable within one search only.
        similarity: Cosine similarity to the query; None where it was not computed.
        bm25: BM25 score for the query; None where it was not computed.
        embedding: Its stored vector, of unit length; only `consensus` reads it.
        model: The model of that vector, where a search's candidates are of several.
    """

    chunk_id: int
    text: str
    score: float
    similarity: float | None = None
    bm25: float | None = None
    embedding: npt.NDArray[np.floating[Any]] | None = field(default=None, compare=False, repr=False)
    model: str = ""


class Reranker(Protocol):
    """Scores passages against a question, one by one. Safe to share between threads.

    Implementations neither order nor drop candidates, and do not mix in the first stage's score: that is what
    `recollect.retrieval.rerank.apply.apply` does, the same way for all of them.
    """

    @property
    def name(self) -> str:
        """Names it in settings, in explanations and in the log, for instance ``"late_interaction"``."""
        ...

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates.

        Args:
            query: The question, as asked.
            candidates: Any number, none included; their texts of any length, the empty string included.

        Returns:
            One finite score per candidate, in their order; higher is better. Scores are comparable within one call.

        Raises:
            ProviderError: A model or a service failed; ``retryable`` where the same call may succeed later.
            StoreError: What is stored for the candidates cannot be read.
        """
        ...


# Reranking by a model that reads question and passage together.


class PairScorer(Protocol):
    """Scores pairs of texts; `recollect.embedding.local.CrossEncoder` is one."""

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
