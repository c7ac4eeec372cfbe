"""How searches fare: hits of the caches and the measured recall."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HitCounts:
    """How often a cache could answer.

    Attributes:
        hits: It could.
        misses: It could not.
    """

    hits: int = 0
    misses: int = 0

    @property
    def hit_rate(self) -> float | None:
        """Share of hits, None where nothing was asked."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    def __add__(self, other: HitCounts) -> HitCounts:
        return HitCounts(hits=self.hits + other.hits, misses=self.misses + other.misses)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverRecall:
    """What one retriever found of the exact result, over all probes of it.

    Attributes:
        probes: Approximate searches that were repeated exactly.
        total: The sum of their recalls, each 0 to 1.
        worst: The least of them, None without any.
    """

    probes: int = 0
    total: float = 0.0
    worst: float | None = None

    @property
    def mean(self) -> float | None:
        """The recall on average, None without probes."""
        return self.total / self.probes if self.probes else None

    def __add__(self, other: RetrieverRecall) -> RetrieverRecall:
        known = [worst for worst in (self.worst, other.worst) if worst is not None]
        return RetrieverRecall(
            probes=self.probes + other.probes, total=self.total + other.total, worst=min(known, default=None)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHealth:
    """How the searches of a collection fared. Two of them add up.

    Attributes:
        result_cache: Replies of equal searches.
        query_embedding_cache: Embeddings of equal queries.
        probes: Searches that were repeated exactly.
        dense: What the dense retriever found where it went by its index.
        lexical: What the lexical retriever found where it did not prove its result.
        last_probe: When the last probe was recorded.
    """

    result_cache: HitCounts = HitCounts()
    query_embedding_cache: HitCounts = HitCounts()
    probes: int = 0
    dense: RetrieverRecall = RetrieverRecall()
    lexical: RetrieverRecall = RetrieverRecall()
    last_probe: datetime | None = None

    def __add__(self, other: SearchHealth) -> SearchHealth:
        probed = [moment for moment in (self.last_probe, other.last_probe) if moment is not None]
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name != "last_probe"
        }
        return SearchHealth(**sums, last_probe=max(probed, default=None))
