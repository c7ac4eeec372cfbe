"""Pseudo-relevance feedback: what the first results say about the others. Pure: no I/O, no clock, no randomness.

Two steps, both over the vectors of the candidates at hand, so that no second search is needed: the query's vector
moves towards the first results (Rocchio 1971), and then each candidate's score is smoothed with those of its nearest
neighbours among the candidates (Diaz, "Regularizing Ad Hoc Retrieval Scores", 2005): texts that say the same are
relevant together. ``docs/how-to/query-enhancement.md`` has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import UsageError
from recollect.retrieval.fusion import Scored

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackSettings:
    """How much the first results have to say.

    Attributes:
        passages: How many of the first results the query moves towards; 0 leaves it where it is.
        weight: Of their mean vector, beside 1 for the query's.
        neighbours: How many of its nearest candidates smooth a candidate's score; 0 smooths nothing.
        smoothing: Their share of its score, 0 to below 1.
        depth: How many of the best candidates take part; the others follow in their order.
    """

    passages: int = 3
    weight: float = 0.3
    neighbours: int = 8
    smoothing: float = 0.4
    depth: int = 100

    def __post_init__(self) -> None:
        """Refuse what makes no sense.

        Raises:
            UsageError: A value is out of range.
        """
        for name, value in (("passages", self.passages), ("neighbours", self.neighbours)):
            if not 0 <= value <= 100:
                raise UsageError(f"feedback {name} must lie between 0 and 100, not {value!r}")
        if not 0 <= self.weight <= 10:
            raise UsageError(f"feedback weight must lie between 0 and 10, not {self.weight!r}")
        if not 0 <= self.smoothing < 1:
            raise UsageError(f"feedback smoothing must be 0 or more and below 1, not {self.smoothing!r}")
        if not 1 <= self.depth <= 1_000:
            raise UsageError(f"feedback depth must lie between 1 and 1,000, not {self.depth!r}")


class PseudoRelevanceFeedback:
    """The second round of a search.

    Args:
        settings: How much the first results have to say; None: the defaults.
    """

    def __init__(self, settings: FeedbackSettings | None = None) -> None:
        self.settings = settings or FeedbackSettings()

    def rerank(
        self,
        query: Vectors | None,
        ranking: Sequence[Scored],
        *,
        vectors: Mapping[int, Vectors],
        fuse: Callable[[Mapping[int, float]], Sequence[Scored]],
    ) -> list[Scored]:
        """Rank again, by what the first results say.

        Args:
            query: The query's unit vector; None (no dense retriever) leaves the first step out.
            ranking: The first round's, best first.
            vectors: Unit vectors by chunk id, of the first ``settings.depth`` of ``ranking`` (more are ignored). A
                candidate without one follows those that have one.
            fuse: Ranks exactly the candidates that it is given new similarities of.

        Returns:
            The same candidates, best first; scores never rise along the list.
        """
        settings = self.settings
        head = [item for item in ranking[: settings.depth] if item[0] in vectors]
        if len(head) < 2:
            return list(ranking)
        tail = [item for place, item in enumerate(ranking) if place >= settings.depth or item[0] not in vectors]
        if query is not None and settings.passages and settings.weight:
            matrix = _matrix(head, vectors)
            moved = moved_query(query, matrix[: settings.passages], weight=settings.weight)
            similarities = (matrix @ moved).tolist()
            head = list(fuse({chunk_id: value for (chunk_id, _), value in zip(head, similarities, strict=True)}))
        head = smoothed(head, vectors, neighbours=settings.neighbours, weight=settings.smoothing)
        lowest = head[-1][1]
        return head + [(chunk_id, min(score, lowest)) for chunk_id, score in tail]


def moved_query(query: Vectors, results: Vectors, *, weight: float) -> Vectors:
    """The query plus ``weight`` times the mean of the results' vectors, at unit length.

    Args:
        query: Shape (dimension,).
        results: Shape (results, dimension); none leaves the query where it is.
        weight: 0 or more.
    """
    if not len(results):
        return query
    moved = query.astype(np.float32) + weight * results.astype(np.float32).mean(axis=0)
    length = float(np.linalg.norm(moved))
    if length < 1e-6:
        return query
    vector: Vectors = (moved / length).astype(np.float32)
    return vector


def smoothed(
    ranking: Sequence[Scored], vectors: Mapping[int, Vectors], *, neighbours: int, weight: float
) -> list[Scored]:
    """Give each candidate a share of its nearest neighbours' scores.

    The new score is ``(1 - weight) · own + weight · mean of the neighbours'``, the mean weighed by cosine similarity.

    Args:
        ranking: In any order.
        vectors: Unit vectors of all of them, by chunk id.
        neighbours: How many count for each candidate.
        weight: Their share, 0 to below 1.

    Returns:
        Best first; of equal ones, the smaller id.
    """
    count = min(neighbours, len(ranking) - 1)
    if count < 1 or not weight:
        return sorted(ranking, key=_order)
    scores = np.array([score for _, score in ranking], dtype=np.float64)
    matrix = _matrix(ranking, vectors)
    similarities = matrix @ matrix.T
    np.fill_diagonal(similarities, -np.inf)
    last = len(ranking) - count
    thresholds = np.partition(similarities, last, axis=1)[:, last, None]
    shares = np.where(similarities >= thresholds, np.maximum(similarities, 0.0), 0.0).astype(np.float64)
    totals = shares.sum(axis=1)
    # A candidate that resembles no other has nobody to ask: it keeps its score.
    means = np.where(totals > 1e-9, (shares @ scores) / np.maximum(totals, 1e-9), scores)
    blended = ((1 - weight) * scores + weight * means).tolist()
    return sorted(((chunk_id, score) for (chunk_id, _), score in zip(ranking, blended, strict=True)), key=_order)


def _order(item: Scored) -> tuple[float, int]:
    return -item[1], item[0]


def _matrix(ranking: Sequence[Scored], vectors: Mapping[int, Vectors]) -> Vectors:
    return np.stack([vectors[chunk_id] for chunk_id, _ in ranking]).astype(np.float32)
