"""The log of requests to providers of models, by tenant and partitioned by time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.model.requests import LoggedRequest, RequestTotals
from recollect.store.audit import PARTITION_UNITS, PARTITIONS_AHEAD
from recollect.store.database import Database, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.store.audit import TimePartitions

_SQL = queries("request_log")
_COLUMNS = (
    *("at", "kind", "provider", "model", "inputs", "input_tokens", "output_tokens", "tokens_estimated"),
    *("attempts", "milliseconds", "error", "status", "cost"),
)


class RequestLogRepository:
    """Appends to the log, and reads it.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, scope: Scope, requests: Sequence[LoggedRequest]) -> None:
        """Store requests of the scope's tenant, in one statement."""
        columns = {name: [getattr(one, name) for one in requests] for name in _COLUMNS}
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["append"], {"tenant_id": scope.tenant_id, **columns})

    def page(
        self,
        scope: Scope,
        *,
        kind: str | None = None,
        failed: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[LoggedRequest]:
        """Requests of the scope's tenant, newest first.

        Args:
            scope: Whose.
            kind: ``embed``, ``rerank`` or ``answer``; None: all.
            failed: Whether only those without a usable answer.
            since: Only of this time or later.
            until: Only before this time.
            before: Only requests older than the one of this id: the next page.
            limit: Requests at most.
        """
        params = {"tenant_id": scope.tenant_id, "since": since, "until": until}
        more = {"kind": kind, "failed": failed, "before": before, "limit": limit}
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["page"], {**params, **more})
        return [
            LoggedRequest(
                request_id=row[0],
                **dict(zip(_COLUMNS, row[1:], strict=True)),
                success=row[_COLUMNS.index("error") + 1] is None,
            )
            for row in found
        ]

    def totals(
        self, scope: Scope, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[RequestTotals]:
        """The requests of the scope's tenant summed up, by kind and model."""
        params = {"tenant_id": scope.tenant_id, "since": since, "until": until}
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["totals"], params)
        return [
            RequestTotals(
                kind=row[0],
                provider=row[1],
                model=row[2],
                requests=row[3],
                failures=row[4],
                attempts=row[5],
                inputs=int(row[6]),
                input_tokens=int(row[7]),
                output_tokens=int(row[8]),
                mean_milliseconds=row[9],
                p95_milliseconds=row[10],
                cost=row[11],
            )
            for row in found
        ]

    def maintain(
        self,
        scope: Scope,  # noqa: ARG002 - partitions hold the requests of all tenants
        *,
        partitions: TimePartitions,
        retention_days: int | None,
    ) -> tuple[str, ...]:
        """Drop the partitions that are past their retention, and make those of the time to come.

        Args:
            scope: Of whoever asks.
            partitions: How long a new one is.
            retention_days: Days after whose end a partition is dropped; None: none is.

        Returns:
            The names of the partitions dropped.
        """
        with self._database.autocommit() as connection, connection.transaction():
            dropped = [] if retention_days is None else rows(connection, _SQL["drop_old"], {"days": retention_days})
            unit = PARTITION_UNITS[partitions]
            connection.execute(_SQL["make_partitions"], {"unit": unit, "ahead": PARTITIONS_AHEAD})
        return tuple(row[0] for row in dropped)
