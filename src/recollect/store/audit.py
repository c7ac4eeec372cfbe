"""What was done to documents, by whom and when; never what they said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from psycopg.types.json import Jsonb

from recollect.model import Scope
from recollect.model.history import AuditRecord
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = queries("audit")

TimePartitions = Literal["hourly", "daily", "weekly", "monthly"]
_UNITS: Mapping[TimePartitions, str] = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}

#: Partitions that are made ahead, so that a clean-up that comes late finds them still.
PARTITIONS_AHEAD = 3


class AuditRepository:
    """Reads the audit and keeps its partitions; those who do something record it themselves (`record`).

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, scope: Scope, *, action: str | None = None, before: int | None = None, limit: int = 100
    ) -> list[AuditRecord]:
        """Records of the scope's tenant, newest first.

        Args:
            scope: Whose records.
            action: Only of this kind, for instance ``erase``; None: all.
            before: Only records older than the one of this id: the next page.
            limit: Records at most.
        """
        params = {"tenant_id": scope.tenant_id, "action": action, "before": before, "limit": limit}
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["page"], params)
        return [AuditRecord(audit_id=row[0], at=row[1], action=row[2], actor=row[3], details=row[4]) for row in found]

    def complete(self, scope: Scope, audit_id: int, at: datetime, details: Mapping[str, Any]) -> None:
        """Add to a record what became known after it was written."""
        params = {"tenant_id": scope.tenant_id, "audit_id": audit_id, "at": at, "details": Jsonb(dict(details))}
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["complete"], params)

    def maintain(
        self,
        scope: Scope,  # noqa: ARG002 - partitions hold the records of all tenants
        *,
        partitions: TimePartitions,
        retention_days: int | None,
    ) -> tuple[str, ...]:
        """Drop the audit's partitions that are past their retention, and make those of the time to come.

        Args:
            scope: Of whoever asks; partitions hold the records of all tenants.
            partitions: How long a new one is.
            retention_days: Days after whose end a partition is dropped; None: none is.

        Returns:
            The names of the partitions dropped.
        """
        with self._database.autocommit() as connection, connection.transaction():
            dropped = [] if retention_days is None else rows(connection, _SQL["drop_old"], {"days": retention_days})
            connection.execute(_SQL["make_partitions"], {"unit": _UNITS[partitions], "ahead": PARTITIONS_AHEAD})
        return tuple(row[0] for row in dropped)


def record(
    connection: Connection, scope: Scope, *, action: str, actor: str, details: Mapping[str, Any]
) -> tuple[int, datetime]:
    """Write a record in the transaction of what it tells; returns its id and time.

    Args:
        connection: In that transaction.
        scope: Whose records.
        action: What was done, in one word.
        actor: Who asked for it.
        details: JSON values by name: ids, numbers and hashes, nothing of any content.
    """
    params = {"tenant_id": scope.tenant_id, "action": action, "actor": actor, "details": Jsonb(dict(details))}
    audit_id, at = rows(connection, _SQL["record"], params)[0]
    return int(audit_id), at
