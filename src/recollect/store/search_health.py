"""How searches fare: hits of the caches and the measured recall, by collection and day."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.model.status import HitCounts, SearchHealth
from recollect.store.database import Database, records, rows
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
            return dict(records(connection, _SQL["recent"], params, _read))

    def passages(self, scope: Scope, collection: Collection, *, count: int) -> list[str]:
        """The texts of some current chunks, drawn at random, each of another document."""
        params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, "count": count}
        with self._database.single_reads(scope) as connection:
            return [row[0] for row in rows(connection, _SQL["passages"], params)]


def _read(collection_id: int, **columns: Any) -> tuple[int, SearchHealth]:  # noqa: ANN401 - columns
    replies = HitCounts(hits=columns.pop("result_hits"), misses=columns.pop("result_misses"))
    embeddings = HitCounts(hits=columns.pop("embedding_hits"), misses=columns.pop("embedding_misses"))
    return collection_id, SearchHealth(result_cache=replies, query_embedding_cache=embeddings, **columns)


def _columns(health: SearchHealth) -> dict[str, Any]:
    return {
        "result_hits": health.result_cache.hits,
        "result_misses": health.result_cache.misses,
        "embedding_hits": health.query_embedding_cache.hits,
        "embedding_misses": health.query_embedding_cache.misses,
        "probes": health.probes,
        "dense_probes": health.dense_probes,
        "dense_recall": (health.recall_dense or 0.0) * health.dense_probes,
        "dense_worst": health.recall_dense_worst,
        "lexical_probes": health.lexical_probes,
        "lexical_recall": (health.recall_lexical or 0.0) * health.lexical_probes,
        "lexical_worst": health.recall_lexical_worst,
    }
