"""Logs that only grow, listed page by page and kept in partitions by time: the audit, and requests to providers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, LiteralString, TypeVar

from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.model.audit import AuditBreak, AuditChain, AuditEntry, AuditRecord
from recollect.model.requests import LoggedRequest, RequestTotals
from recollect.store.database import Connection, Repository, records, rows
from recollect.store.sql import queries

T = TypeVar("T")


_SQL = queries("logs")


TimePartitions = Literal["hourly", "daily", "weekly", "monthly"]


# What the database calls them.
_UNITS: Mapping[TimePartitions, str] = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}


#: Partitions that are made ahead, so that a clean-up that comes late finds them still.
PARTITIONS_AHEAD = 3


class LogRepository(Repository, Generic[T]):
    """Reads a log and keeps its partitions. What differs between logs stands in their class attributes."""

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


# What was done to documents, by whom and when; never what they said.
#
# Each tenant's entries are a chain: every one holds the SHA-256 of the hash before it and of its own content. The
# role that the program works as may append and read, nothing else (`sql/routines/audit.sql`).


_AUDIT = queries("audit")


_PAGE_ROWS = 500


class AuditRepository(LogRepository[AuditRecord]):
    """Reads the audit and keeps its partitions; those who do something record it themselves (`record`).

    Filter of a page: ``action``, for instance ``erase``.
    """

    _table = "audit"
    _page = _AUDIT["page"]
    _filters: ClassVar[Mapping[str, object]] = {"action": None}
    _entry = AuditRecord
    _drop_old = _AUDIT["drop_old"]

    def lines(
        self,
        scope: Scope,
        *,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[str]:
        """The scope's tenant's records as JSON, oldest first, with the very text that was hashed; in bounded memory."""
        params = {"tenant_id": scope.tenant_id, "action": action, "since": since, "until": until}
        with self._database.transaction(scope) as connection, connection.cursor(name="audit") as cursor:
            cursor.itersize = _PAGE_ROWS
            cursor.execute(_AUDIT["entries"], params)
            for content, own, previous in cursor:
                hashed = {"content": content, "previous_hash": previous.hex(), "hash": own.hex()}
                yield json.dumps({**json.loads(content), **hashed}, ensure_ascii=False) + "\n"

    def append(self, scope: Scope, entries: Sequence[AuditEntry]) -> None:
        """Write entries in a transaction of their own; many at once cost little more than one."""
        with self._database.transaction(scope) as connection:
            record_all(connection, scope, entries)

    def verify(self, scope: Scope) -> AuditChain:
        """Follow the chain of the scope's tenant from end to end."""
        with self._database.transaction(scope) as connection:
            return follow(connection, scope.tenant_id)

    def verify_all(self, scope: Scope) -> list[AuditChain]:  # noqa: ARG002 - a store's chains are those of all tenants
        """Follow the chain of every tenant that has one, or had one, as the schema's owner."""
        with self._database.autocommit() as connection:
            tenants = [row[0] for row in rows(connection, _AUDIT["chains"])]
            return [follow(connection, tenant) for tenant in tenants]


def record(
    connection: Connection, scope: Scope, *, action: str, actor: str, details: Mapping[str, Any]
) -> tuple[int, datetime]:
    """Write a record in the transaction of what it tells, as its last statement; returns its id and time.

    Until the transaction ends, whoever else appends for the tenant waits: nothing that takes time may follow, and no
    lock be asked for.

    Args:
        connection: In that transaction.
        scope: Whose records.
        action: What was done, in one word.
        actor: Who asked for it.
        details: JSON values by name: ids, numbers and hashes, nothing of any content.
    """
    return record_all(connection, scope, [AuditEntry(action=action, actor=actor, details=details)])[0]


def record_all(connection: Connection, scope: Scope, entries: Sequence[AuditEntry]) -> list[tuple[int, datetime]]:
    """As `record`, for many at once; returns their ids and times in their order."""
    params = {
        "tenant_id": scope.tenant_id,
        "actions": [entry.action for entry in entries],
        "actors": [entry.actor for entry in entries],
        "details": [Jsonb(dict(entry.details)) for entry in entries],
    }
    return [(int(audit_id), at) for audit_id, at in rows(connection, _AUDIT["record"], params)]


def begin_anew(connection: Connection, scope: Scope) -> None:
    """Let the chain of a tenant whose entries the owner has removed go on behind them, in the same transaction."""
    connection.execute("SELECT set_config('recollect.tenant_id', %s, true)", [str(scope.tenant_id)])
    connection.execute(_AUDIT["go_on"], {"tenant_id": scope.tenant_id})


def follow(connection: Connection, tenant_id: int) -> AuditChain:
    """Follow the chain of a tenant from end to end."""
    (found,) = rows(connection, _AUDIT["verify"], {"tenant_id": tenant_id})
    dropped, number, head, *newest, broken_number, broken_id, broken_at, missing = found
    if broken_number is None:
        broken = _broken_end(dropped, number, head, newest)
    else:
        problem = "it is missing" if missing else "it is not what was written, or what is before it is not"
        broken = AuditBreak(number=broken_number, audit_id=broken_id, at=broken_at, problem=problem)
    return AuditChain(
        tenant_id=tenant_id, dropped=dropped, number=number, hash="" if head is None else head.hex(), broken=broken
    )


def _broken_end(dropped: int, number: int, head: bytes | None, newest: Sequence[Any]) -> AuditBreak | None:
    """What is wrong with the end of a chain whose entries follow from one another."""
    last, last_id, last_at, last_hash = newest
    at_end = dropped if last is None else last
    if at_end < number:
        return AuditBreak(number=at_end + 1, audit_id=None, at=None, problem="it is missing, with all behind it")
    if last is not None and (at_end > number or last_hash != head):
        problem = "the head of the chain, kept apart, is not of this entry"
        return AuditBreak(number=at_end, audit_id=last_id, at=last_at, problem=problem)
    return None


# The log of requests to providers of models.


_REQUESTS = queries("request_log")


_COLUMNS = (
    *("at", "kind", "provider", "model", "inputs", "input_tokens", "output_tokens", "tokens_estimated"),
    *("attempts", "milliseconds", "error", "status", "cost"),
)


class RequestLogRepository(LogRepository[LoggedRequest]):
    """Appends to the log, and reads it.

    Filters of a page: ``kind`` (``embed``, ``rerank`` or ``answer``), and ``failed``: requests without a usable answer.
    """

    _table = "request_log"
    _page = _REQUESTS["page"]
    _filters: ClassVar[Mapping[str, object]] = {"kind": None, "failed": False}
    _entry = LoggedRequest

    def append(self, scope: Scope, requests: Sequence[LoggedRequest]) -> None:
        """Store requests of the scope's tenant, in one statement."""
        columns = {name: [getattr(one, name) for one in requests] for name in _COLUMNS}
        self._database.run(scope, _REQUESTS["append"], {"tenant_id": scope.tenant_id, **columns})

    def totals(
        self, scope: Scope, *, since: datetime | None = None, until: datetime | None = None
    ) -> list[RequestTotals]:
        """The requests of the scope's tenant summed up, by kind and model."""
        params = {"tenant_id": scope.tenant_id, "since": since, "until": until}
        with self._database.transaction(scope) as connection:
            return records(connection, _REQUESTS["totals"], params, RequestTotals)
