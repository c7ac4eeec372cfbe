"""Logs that only ever grow: listed page by page, newest first, and kept in partitions by time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, LiteralString, TypeVar

from recollect.model import Scope
from recollect.store.database import Database, records, rows
from recollect.store.sql import queries

T = TypeVar("T")

_SQL = queries("logs")

TimePartitions = Literal["hourly", "daily", "weekly", "monthly"]
# What the database calls them.
_UNITS: Mapping[TimePartitions, str] = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}

#: Partitions that are made ahead, so that a clean-up that comes late finds them still.
PARTITIONS_AHEAD = 3


class LogRepository(Generic[T]):
    """Reads a log and keeps its partitions. What differs between logs stands in their class attributes.

    Args:
        database: The store's connections.
    """

    #: The log's table.
    _table: ClassVar[LiteralString]
    #: A page of it: of a tenant, between ``since`` and ``until``, with ids below ``before``, ``limit`` rows at most.
    _page: ClassVar[LiteralString]
    #: Further parameters of that statement, with the values that let every row through.
    _filters: ClassVar[Mapping[str, object]]
    #: Makes an entry of the columns of a row, which it is given by their names.
    _entry: ClassVar[Callable[..., Any]]
    #: Drops what is past its retention, and returns the partitions dropped.
    _drop_old: ClassVar[LiteralString] = _SQL["drop_old"]

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self,
        scope: Scope,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
        **filters: object,
    ) -> list[T]:
        """Entries of the scope's tenant, newest first.

        Args:
            scope: Whose.
            since: Only of this time or later.
            until: Only before this time.
            before: Only entries older than the one of this id: the next page.
            limit: Entries at most.
            filters: Of this log; None: all.

        Raises:
            TypeError: The log has no such filter.
        """
        unknown = filters.keys() - self._filters.keys()
        if unknown:
            raise TypeError(f"{self._table} has no filter {', '.join(sorted(unknown))}")
        page = {"tenant_id": scope.tenant_id, "since": since, "until": until, "before": before, "limit": limit}
        with self._database.transaction(scope) as connection:
            return records(connection, self._page, {**page, **self._filters, **filters}, type(self)._entry)

    def maintain(
        self,
        scope: Scope,  # noqa: ARG002 - partitions hold the entries of all tenants
        *,
        partitions: TimePartitions,
        retention_days: int | None,
    ) -> tuple[str, ...]:
        """Drop the partitions that are past their retention, and make those of the time to come.

        Args:
            scope: Of whoever asks; partitions hold the entries of all tenants.
            partitions: How long a new one is.
            retention_days: Days after whose end a partition is dropped; None: none is.

        Returns:
            The names of the partitions dropped.
        """
        table = {"table": self._table}
        with self._database.autocommit() as connection, connection.transaction():
            old = [] if retention_days is None else rows(connection, self._drop_old, {**table, "days": retention_days})
            made = {**table, "unit": _UNITS[partitions], "ahead": PARTITIONS_AHEAD}
            connection.execute(_SQL["make_partitions"], made)
        return tuple(row[0] for row in old)
