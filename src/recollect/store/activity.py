"""What a tenant's searches, answers, requests and jobs came to, over time, and how searches fare."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, LiteralString

from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.model.activity import ActivityRow, Tally
from recollect.model.collection import Collection
from recollect.model.status import HitCounts, SearchHealth
from recollect.store.database import Repository, records
from recollect.store.rights import access_params, may_read
from recollect.store.sql import queries

_SQL = queries("activity")


#: Days that counts are kept, by the hour.
KEPT_DAYS = 31


class ActivityRepository(Repository):
    """Adds up what happens, and reads it by time."""

    def add(self, scope: Scope, tallies: Mapping[tuple[datetime, str, str], Tally]) -> None:
        """Add counts, by the minute, what, and of which kind. A crash of the server may lose the last ones."""
        entries = [
            {
                "at": at.isoformat(),
                "name": name,
                "label": label,
                "count": tally.count,
                "total": tally.total,
                "histogram": _as_list(tally.histogram),
            }
            for (at, name, label), tally in tallies.items()
        ]
        with self._database.transaction(scope) as connection:
            connection.execute("SET LOCAL synchronous_commit = off")
            connection.execute(_SQL["add"], {"tenant_id": scope.tenant_id, "entries": Jsonb(entries)})

    def series(self, scope: Scope, *, since: datetime, until: datetime, seconds: int) -> list[ActivityRow]:
        """What was counted, by whiles of so many seconds from a moment on."""
        found = self._found(scope, _SQL["series"], since=since, until=until, seconds=seconds)
        return [
            ActivityRow(
                at=at,
                name=name,
                label=label,
                tally=Tally(count, total, {int(step): many for step, many in (histogram or {}).items()}),
            )
            for at, name, label, count, total, histogram in found
        ]

    def maintain(self, scope: Scope) -> None:
        """Make hours of the minutes of more than a day ago, and forget what is past its time."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["fold"], {"tenant_id": scope.tenant_id})
            connection.execute(_SQL["forget"], {"tenant_id": scope.tenant_id, "days": KEPT_DAYS})

    def database_bytes(self, scope: Scope) -> int:
        """How large the whole store is."""
        return int(self._found(scope, _SQL["database_bytes"])[0][0])

    def requests(
        self, scope: Scope, *, since: datetime, until: datetime, seconds: int, kind: str | None
    ) -> list[tuple[Any, ...]]:
        """Requests to providers: when, how many, failures, percentiles of milliseconds (50, 95, 99), tokens, cost."""
        return self._found(scope, _SQL["requests"], since=since, until=until, seconds=seconds, kind=kind)

    def jobs(self, scope: Scope, *, since: datetime, until: datetime, seconds: int) -> list[tuple[Any, ...]]:
        """Jobs that ended: when, as what, how many; a principal's own."""
        user = None if scope.principal is None else scope.principal.user_id
        own = {"everybodys": scope.principal is None, "user": user}
        return self._found(scope, _SQL["jobs"], since=since, until=until, seconds=seconds, **own)

    def recall(self, scope: Scope) -> list[tuple[Any, ...]]:
        """By day, how many searches were repeated exactly and the sum of their recalls, of both retrievers."""
        return self._found(scope, _SQL["recall"])

    def feedback(self, scope: Scope) -> tuple[int, int]:
        """How many passages helped, and how many did not."""
        helpful, not_helpful = self._found(scope, _SQL["feedback"])[0]
        return helpful, not_helpful

    def sizes(self, scope: Scope) -> list[tuple[str, int, int]]:
        """The largest tables of the store, with their bytes and those of their indexes."""
        return [(row[0], row[1], row[2]) for row in self._found(scope, _SQL["sizes"])]

    def expiring(self, scope: Scope, *, days: int, limit: int) -> list[tuple[Any, ...]]:
        """Documents that the scope's principal may read and that expire soon: id, title, URI, when."""
        statement: LiteralString = f"{_SQL['expiring']} AND {may_read(scope)} {_SQL['expiring_end']}"
        return self._found(scope, statement, days=days, limit=limit, **access_params(scope))

    def unanswered(self, scope: Scope, *, since: datetime, until: datetime, limit: int) -> list[tuple[Any, ...]]:
        """Questions that nothing answers: words, hash (as far as kept), what became of them, why, how often, when."""
        return self._found(scope, _SQL["unanswered"], since=since, until=until, limit=limit)

    def _found(self, scope: Scope, statement: LiteralString, **params: object) -> list[tuple[Any, ...]]:
        return self._database.read(scope, statement, {**params, "tenant_id": scope.tenant_id})


def _as_list(histogram: Mapping[int, int]) -> list[int]:
    return [histogram.get(step, 0) for step in range(max(histogram) + 1)] if histogram else []


# How searches fare: hits of the caches and the measured recall, by collection and day.


_HEALTH = queries("search_health")


#: Days that are kept, and that `SearchHealthRepository.recent` adds up.
HEALTH_DAYS = 30


class SearchHealthRepository(Repository):
    """Adds up and reads how searches fare."""

    def add(self, scope: Scope, health: Mapping[int, SearchHealth]) -> None:
        """Add what happened to the counts of today, by the id of the collection; days that are too long ago go.

        Nothing happens where a collection was deleted meanwhile. A crash of the server may lose what was added a moment
        before.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_HEALTH["unhurried"])
            # In one order, so that no two wait for each other.
            for collection_id in sorted(health):
                key = {"tenant_id": scope.tenant_id, "collection_id": collection_id, "days": HEALTH_DAYS}
                connection.execute(_HEALTH["add"], {**key, **_columns(health[collection_id])})
                connection.execute(_HEALTH["forget"], key)

    def recent(self, scope: Scope) -> dict[int, SearchHealth]:
        """The last `HEALTH_DAYS` days, by the id of the collection; collections that were not searched are absent."""
        params = {"tenant_id": scope.tenant_id, "days": HEALTH_DAYS}
        with self._database.single_reads(scope) as connection:
            return dict(records(connection, _HEALTH["recent"], params, _read))

    def passages(self, scope: Scope, collection: Collection, *, count: int) -> list[str]:
        """The texts of some current chunks, drawn at random, each of another document."""
        params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, "count": count}
        return [row[0] for row in self._database.read(scope, _HEALTH["passages"], params)]


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
