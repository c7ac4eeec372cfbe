"""What a ranking must reach to be shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.model import RetrievalOptions

Scored = tuple[int, float]

#: Why everything is left out where nothing has to do with the question.
BELOW_FLOOR = "of no relevance, the best included"


class GivenThresholds(Protocol):
    """The configured thresholds; None: none."""

    @property
    def similarity_threshold(self) -> float | None:
        """The least cosine similarity."""
        ...

    @property
    def min_relevance(self) -> float | None:
        """The least relevance."""
        ...

    @property
    def min_score(self) -> float | None:
        """The least score."""
        ...


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The least that passages must have, None for any.

    Attributes:
        similarity: Cosine similarity.
        relevance: Relevance.
        floor: Whether the floor of the embedding model applies if no relevance is set: if the best passage does not
            reach it, nothing is found.
        score: What they are ordered by.
    """

    similarity: float | None
    relevance: float | None
    score: float | None
    floor: bool = False

    @classmethod
    def of(cls, options: RetrievalOptions, settings: GivenThresholds) -> Thresholds:
        """Those of the options, and the settings' where these say nothing."""

        def first(given: float | None, otherwise: float | None) -> float | None:
            return otherwise if given is None else given

        return cls(
            first(options.similarity_threshold, settings.similarity_threshold),
            first(options.min_relevance, settings.min_relevance),
            first(options.min_score, settings.min_score),
            options.relevance_floor,
        )

    def apply(
        self,
        ranked: Sequence[Scored],
        *,
        similarities: Mapping[int, float],
        relevance: Mapping[int, float],
        floor: float,
        dropped: MutableMapping[str, int],
    ) -> list[Scored]:
        """The chunks of a ranking that reach all of them.

        Args:
            ranked: (chunk_id, score), best first.
            similarities: As far as they are known.
            relevance: Likewise; a chunk of unknown relevance stays.
            floor: The floor of the embedding model.
            dropped: Counts what is left out, by reason.
        """
        kept = list(ranked)

        def keep(reason: str, held: list[Scored]) -> None:
            nonlocal kept
            dropped[reason] = len(kept) - len(held)
            kept = held

        if self.similarity is not None:
            least = self.similarity
            keep("below similarity_threshold", [one for one in kept if similarities.get(one[0], -1.0) >= least])
        if self.relevance is not None:
            needed = self.relevance
            keep("below min_relevance", [one for one in kept if relevance.get(one[0], 1.0) >= needed])
        elif self.floor and kept and all(relevance.get(chunk_id, 1.0) < floor for chunk_id, _ in kept):
            keep(BELOW_FLOOR, [])
        if self.score is not None:
            lowest = self.score
            keep("below min_score", [one for one in kept if one[1] >= lowest])
        return kept
