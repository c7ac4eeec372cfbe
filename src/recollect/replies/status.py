"""What a store holds, and how its searches fare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.model.collection import Collection
from recollect.model.record import json_of
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.history import CleanupReport
    from recollect.model.search_health import HitCounts, SearchHealth
    from recollect.model.status import PipelineStatus


class HitCountsJson(Shape):
    """How often a cache could answer."""

    hits: int
    misses: int
    hit_rate: float | None
    """Share of hits; null where nothing was asked."""


class SearchHealthJson(Shape):
    """How searches fared: the caches, and what approximate searches found of the exact result."""

    probes: int
    """Searches that were repeated exactly."""
    recall_dense: float | None
    """Recall of the search by embeddings on average, 0 to 1; null without probes."""
    recall_dense_worst: float | None
    recall_lexical: float | None
    """Recall of the search by words on average, 0 to 1; null without probes."""
    recall_lexical_worst: float | None
    last_probe: Timestamp | None
    result_cache: HitCountsJson
    """Replies of equal searches."""
    query_embedding_cache: HitCountsJson
    """Embeddings of equal queries."""


class StoreSearchHealthJson(SearchHealthJson):
    """How the searches of all collections fared, and those of each."""

    days: int
    """That are added up, until now."""
    collections: dict[str, SearchHealthJson]
    """By name; those that were not searched are absent."""


class StatusJson(Shape):
    """What a store holds for one tenant, and how its searches fare."""

    total_documents: int
    total_chunks: int
    departments: dict[str, int]
    """Current chunks by department; documents of none count under the empty string."""
    collections: list[Collection]
    embedding_model: str
    embedding_dimension: int
    schema_version: int
    """Of the database."""
    database_bytes: int
    """Of the whole store; 0 for a principal, who is not told."""
    search: StoreSearchHealthJson


def status_json(status: PipelineStatus) -> StatusJson:
    """What a store holds, and how its searches fare."""
    return {
        "total_documents": status.total_documents,
        "total_chunks": status.total_chunks,
        "departments": dict(status.departments),
        "collections": [json_of(one) for one in status.collections],
        "embedding_model": status.embedding_model,
        "embedding_dimension": status.embedding_dimension,
        "schema_version": status.schema_version,
        "database_bytes": status.database_bytes,
        "search": {
            "days": status.search_days,
            **_health(status.search),
            "collections": {name: _health(health) for name, health in status.search_by_collection.items()},
        },
    }


def _health(health: SearchHealth) -> SearchHealthJson:
    return {
        "probes": health.probes,
        "recall_dense": health.dense.mean,
        "recall_dense_worst": health.dense.worst,
        "recall_lexical": health.lexical.mean,
        "recall_lexical_worst": health.lexical.worst,
        "last_probe": iso(health.last_probe),
        "result_cache": _hits(health.result_cache),
        "query_embedding_cache": _hits(health.query_embedding_cache),
    }


def _hits(counts: HitCounts) -> HitCountsJson:
    return {"hits": counts.hits, "misses": counts.misses, "hit_rate": counts.hit_rate}


class CleanupJson(Shape):
    """What a clean-up did."""

    expired: int
    """Documents that were closed because their time was over."""
    sessions_ended: int
    """Sessions with documents that were removed because their time was over."""
    partitions_dropped: list[str]
    """Of the audit, by name: what was past its retention."""


def cleanup_json(report: CleanupReport) -> CleanupJson:
    """What a clean-up did."""
    return {
        "expired": report.expired,
        "sessions_ended": report.sessions_ended,
        "partitions_dropped": list(report.partitions_dropped),
    }
