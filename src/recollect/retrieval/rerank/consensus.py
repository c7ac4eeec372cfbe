"""Reranking by agreement: a passage that resembles other well-scored passages is more likely to be relevant itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.interruption import check
from recollect.retrieval.rerank.base import Candidate
from recollect.retrieval.rerank.packing import inner_products

#: How many of the most similar candidates have a say about one.
NEIGHBOURS = 10

# Similarities that are computed at a time: a few hundred candidates at once, many in blocks of a few megabytes.
_BLOCK = 1 << 18

Floats = npt.NDArray[np.float64]


class ConsensusReranker:
    """Scores a candidate by the first-stage scores of the candidates most like it.

    This is one step of score regularisation (Diaz 2005, "Regularizing Ad Hoc Retrieval Scores"), which rests on the
    cluster hypothesis: texts that are close to each other tend to answer the same questions. Of each candidate, the
    ``neighbours`` most similar other candidates by their stored vectors are taken, and their scores are averaged,
    weighted by the similarity. No model runs and no text is read: a hundred candidates take well under a
    millisecond.

    Args:
        neighbours: How many candidates have a say about one; 5 to 20 measured alike.

    Raises:
        UsageError: ``neighbours`` is less than 1.
    """

    name = "consensus"

    def __init__(self, *, neighbours: int = NEIGHBOURS) -> None:
        if neighbours < 1:
            raise UsageError(f"neighbours must be at least 1, not {neighbours!r}")
        self._neighbours = neighbours

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:  # noqa: ARG002
        """See `Reranker`. A candidate without an embedding keeps its own score, and has no say about others.

        Of several embedding models, those of one have a say about one another.
        """
        scores = np.array([candidate.score for candidate in candidates], dtype=np.float64)
        of_model: dict[str, list[int]] = {}
        for index, candidate in enumerate(candidates):
            if candidate.embedding is not None:
                of_model.setdefault(candidate.model, []).append(index)
        for known in of_model.values():
            if len(known) > 1:
                vectors = np.array([candidates[index].embedding for index in known], dtype=np.float32)
                scores[known] = self._averaged(vectors, scores[known])
        return [float(score) for score in scores]

    def _averaged(self, vectors: npt.NDArray[np.float32], scores: Floats) -> Floats:
        averaged: Floats = np.empty_like(scores)
        step = max(1, _BLOCK // len(scores))
        for start in range(0, len(scores), step):
            check()
            part = slice(start, start + step)
            similarities = np.clip(inner_products(vectors[part], vectors), 0.0, None).astype(np.float64)
            np.fill_diagonal(similarities[:, start:], 0.0)
            if len(scores) > self._neighbours:
                least = np.partition(similarities, -self._neighbours, axis=1)[:, -self._neighbours]
                similarities[similarities < least[:, None]] = 0.0
            totals = similarities.sum(axis=1)
            lonely = totals <= np.finfo(np.float32).eps
            averaged[part] = (similarities @ scores) / np.where(lonely, 1.0, totals)
            averaged[part][lonely] = scores[part][lonely]
        return averaged
