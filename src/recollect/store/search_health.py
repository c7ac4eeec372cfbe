"""How searches fare: hits of the caches and the measured recall, by collection and day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.model.search_health import HitCounts, RetrieverRecall, SearchHealth
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("search_health")

#: Days that are kept, and that `SearchHealthRepository.recent` adds up.
HEALTH_DAYS = 30


class SearchHealthRepository:
    """Adds up and reads how searches fare.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, scope: Scope, health: Mapping[int, SearchHealth]) -> None:
        """Add what happened to the counts of today, by the id of the collection; days that are too long ago go.

        Nothing happens where a collection was deleted meanwhile. A crash of the server may lose what was added a moment
        before.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["unhurried"])
            # In one order, so that no two wait for each other.
            for collection_id in sorted(health):
                key = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "days": HEALTH_DAYS}
                connection.execute(_SQL["add"], {**key, **_columns(health[collection_id])})
                connection.execute(_SQL["forget"], key)

    def recent(self, scope: Scope) -> dict[int, SearchHealth]:
        """The last `HEALTH_DAYS` days, by the id of the collection; collections that were not searched are absent."""
        params = {"tenant_id": scope.tenant_id, "days": HEALTH_DAYS}
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["recent"], params)
        return {
            row[0]: SearchHealth(
                result_cache=HitCounts(hits=row[1], misses=row[2]),
                query_embedding_cache=HitCounts(hits=row[3], misses=row[4]),
                probes=row[5],
                dense=RetrieverRecall(probes=row[6], total=row[7], worst=row[8]),
                lexical=RetrieverRecall(probes=row[9], total=row[10], worst=row[11]),
                last_probe=row[12],
            )
            for row in found
        }

    def passages(self, scope: Scope, collection: Collection, *, count: int) -> list[str]:
        """The texts of some current chunks, drawn at random, each of another document."""
        params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, "count": count}
        with self._database.single_reads(scope) as connection:
            return [row[0] for row in rows(connection, _SQL["passages"], params)]


def _columns(health: SearchHealth) -> dict[str, Any]:
    return {
        "result_hits": health.result_cache.hits,
        "result_misses": health.result_cache.misses,
        "embedding_hits": health.query_embedding_cache.hits,
        "embedding_misses": health.query_embedding_cache.misses,
        "probes": health.probes,
        "dense_probes": health.dense.probes,
        "dense_recall": health.dense.total,
        "dense_worst": health.dense.worst,
        "lexical_probes": health.lexical.probes,
        "lexical_recall": health.lexical.total,
        "lexical_worst": health.lexical.worst,
    }
