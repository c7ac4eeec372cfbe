"""Who does what is to be done every so many hours: of several processes, one."""

from __future__ import annotations

from recollect.model import Scope
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("upkeep")


class UpkeepRepository:
    """Keeps when periodic tasks were begun.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, scope: Scope, task: str, *, every_seconds: float) -> bool:
        """Whether a task of the tenant is due; then it counts as begun, and nobody else is told so.

        Args:
            scope: Whose task.
            task: Its name.
            every_seconds: Seconds from one beginning to the next.
        """
        params = {"tenant_id": scope.tenant_id, "task": task, "seconds": every_seconds}
        with self._database.transaction(scope) as connection:
            return bool(rows(connection, _SQL["claim"], params))


def every_tenant(database: Database) -> list[Scope]:
    """A scope of each tenant that is not suspended, for what is done for all of them."""
    with database.autocommit() as connection:
        return [Scope(tenant_id=row[0]) for row in rows(connection, _SQL["tenants"])]
