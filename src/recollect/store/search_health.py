"""How searches fare: hits of the caches and the measured recall, by collection and day."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import psycopg

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.model.search_health import HitCounts, RetrieverRecall, SearchHealth
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = queries("search_health")

#: Days that are kept, and that `SearchHealthRepository.recent` adds up.
HEALTH_DAYS = 30

#: Statements over a connection aside are given up after this.
ASIDE_SECONDS = 15


class SearchHealthRepository:
    """Adds up and reads how searches fare.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, scope: Scope, collection_id: int, health: SearchHealth) -> None:
        """Add what happened to the counts of today; days that are too long ago go.

        Nothing happens where the collection was deleted meanwhile. A crash of the server may lose what was added a
        moment before.
        """
        key = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "days": HEALTH_DAYS}
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["unhurried"])
            connection.execute(_SQL["add"], {**key, **_columns(health)})
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


class Aside:
    """The same store over one connection of its own, for work that must not take one from the searches.

    A context manager. Statements are given up after `ASIDE_SECONDS`.

    Args:
        database: The store's connections; none of them is used.
    """

    def __init__(self, database: Database) -> None:
        self.database = database.separate(
            max_connections=1,
            settings={"statement_timeout": f"{ASIDE_SECONDS}s", "application_name": "recollect probe"},
        )
        self._connection: Connection | None = None

    def __enter__(self) -> Aside:
        try:
            with self.database.untenanted() as connection:
                self._connection = connection
        except BaseException:
            self.database.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._connection = None
        self.database.close()

    def cancel(self) -> None:
        """Have the statement under way fail, from any thread; does nothing where there is none."""
        connection = self._connection
        if connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=1.0)


def total_health(parts: Iterable[SearchHealth]) -> SearchHealth:
    """All of them added up."""
    return sum(parts, start=SearchHealth())


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
