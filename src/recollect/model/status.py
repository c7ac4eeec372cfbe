"""The state of a store and of its searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from recollect.model.collection import Collection
from recollect.model.record import Public, Record, public


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus(Record):
    """What the store holds for one tenant, and what it is searched with.

    Attributes:
        database_bytes: Of the whole store; 0 for a principal, who is not told.
        departments: Current chunks by department; documents of none count under the empty string.
        collections: By name.
        schema_version: Of the database.
        search: How the searches of the last days fared, in all and by collection.
        resident: What this process holds of these collections in memory, by name; a collection of which it holds
            nothing is absent.
    """

    total_documents: Public[int]
    total_chunks: Public[int]
    departments: Public[Mapping[str, int]]
    collections: Public[tuple[Collection, ...]]
    embedding_model: Public[str]
    embedding_dimension: Public[int]
    schema_version: Public[int]
    database_bytes: Public[int]
    search: Public[StoreSearchHealth]
    resident: Public[Mapping[str, ResidentCopy]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidentCopy(Record):
    """A collection in the memory of a process, which searches are answered from.

    Attributes:
        chunks: That it holds.
        bytes: That it takes.
        revision: Of the collection, that it has come to.
    """

    chunks: Public[int]
    bytes: Public[int]
    revision: Public[int]


# How searches fare: hits of the caches and the measured recall.


T = TypeVar("T", float, datetime)


@dataclass(frozen=True, slots=True, kw_only=True)
class HitCounts(Record):
    """How often a cache could answer.

    Attributes:
        hits: It could.
        misses: It could not.
    """

    hits: Public[int] = 0
    misses: Public[int] = 0

    @property
    @public
    def hit_rate(self) -> float | None:
        """Share of hits; None: nothing was asked."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    def __add__(self, other: HitCounts) -> HitCounts:
        return HitCounts(hits=self.hits + other.hits, misses=self.misses + other.misses)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHealth(Record):
    """How searches fared: the caches, and what approximate searches found of the exact result. Two of them add up.

    Attributes:
        result_cache: Replies of equal searches.
        query_embedding_cache: Embeddings of equal queries.
        probes: Searches that were repeated exactly.
        recall_dense: Recall of the search by embeddings on average, where it went by its index, 0 to 1; None: without
            probes.
        recall_dense_worst: The least of them.
        recall_lexical: Recall of the search by words on average, where it did not prove its result, 0 to 1; None:
            without probes.
        recall_lexical_worst: The least of them.
        last_probe: When the last probe was recorded.
        dense_probes: Searches whose recall by embeddings was measured.
        lexical_probes: Searches whose recall by words was measured.
    """

    result_cache: Public[HitCounts] = HitCounts()
    query_embedding_cache: Public[HitCounts] = HitCounts()
    probes: Public[int] = 0
    recall_dense: Public[float | None] = None
    recall_dense_worst: Public[float | None] = None
    recall_lexical: Public[float | None] = None
    recall_lexical_worst: Public[float | None] = None
    last_probe: Public[datetime | None] = None
    dense_probes: int = 0
    lexical_probes: int = 0

    def __add__(self, other: SearchHealth) -> SearchHealth:
        return SearchHealth(
            result_cache=self.result_cache + other.result_cache,
            query_embedding_cache=self.query_embedding_cache + other.query_embedding_cache,
            probes=self.probes + other.probes,
            recall_dense=_mean((self.recall_dense, self.dense_probes), (other.recall_dense, other.dense_probes)),
            recall_dense_worst=min(_known(self.recall_dense_worst, other.recall_dense_worst), default=None),
            recall_lexical=_mean(
                (self.recall_lexical, self.lexical_probes), (other.recall_lexical, other.lexical_probes)
            ),
            recall_lexical_worst=min(_known(self.recall_lexical_worst, other.recall_lexical_worst), default=None),
            last_probe=max(_known(self.last_probe, other.last_probe), default=None),
            dense_probes=self.dense_probes + other.dense_probes,
            lexical_probes=self.lexical_probes + other.lexical_probes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSearchHealth(SearchHealth):
    """How the searches of all collections fared, by every process, and those of each.

    Attributes:
        days: That are added up, until now.
        collections: By name; those that were not searched are absent.
    """

    days: Public[int]
    collections: Public[Mapping[str, SearchHealth]]


def _known(*values: T | None) -> list[T]:
    return [value for value in values if value is not None]


def _mean(*parts: tuple[float | None, int]) -> float | None:
    count = sum(probes for _, probes in parts)
    return sum((mean or 0.0) * probes for mean, probes in parts) / count if count else None
