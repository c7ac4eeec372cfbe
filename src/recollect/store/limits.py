"""What each credential may still ask for, and a tenant still upload: counted for all processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.model import Scope
from recollect.store.database import Database, rows
from recollect.store.sql import queries

_SQL = queries("limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """So many requests in a time, refilled as it passes.

    Attributes:
        name: Of what is counted.
        size: How many there are at most, and at first.
        seconds: After how many of them one more comes.
    """

    name: str
    size: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came of asking for tokens.

    Attributes:
        granted: From each of the buckets; 0: one of them is empty.
        remaining: What each has left.
        waits: Seconds until an empty one has one again, until any other is full.
    """

    granted: int
    remaining: tuple[int, ...]
    waits: tuple[float, ...]


class LimitRepository:
    """Counts what tenants and their credentials ask for.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, scope: Scope, buckets: Sequence[Bucket], *, wanted: int) -> Taken:
        """Take tokens from all of several buckets, or from none.

        Args:
            scope: Whose.
            buckets: In the order in which everybody names them.
            wanted: How many; fewer are granted where there are no more.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "buckets": [bucket.name for bucket in buckets],
            "seconds": [bucket.seconds for bucket in buckets],
            "sizes": [bucket.size for bucket in buckets],
            "wanted": wanted,
        }
        # One statement, which is a transaction of its own: BEGIN and COMMIT would take longer than it does.
        with self._database.single_reads(scope) as connection:
            granted, remaining, waits = rows(connection, _SQL["take"], params)[0]
        return Taken(granted=granted, remaining=tuple(remaining), waits=tuple(waits))

    def upload(self, scope: Scope, byte_count: int, *, limit: int) -> int | None:
        """Count bytes as uploaded today (UTC); returns how many there are now, None where they would be too many."""
        params = {"tenant_id": scope.tenant_id, "bytes": byte_count, "limit": limit}
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["upload"], params)
        return int(found[0][0]) if found else None

    def uploaded(self, scope: Scope) -> int:
        """How many bytes were uploaded today."""
        with self._database.single_reads(scope) as connection:
            return int(rows(connection, _SQL["uploaded"], {"tenant_id": scope.tenant_id})[0][0])

    def give_back(self, scope: Scope, byte_count: int) -> None:
        """Count bytes as not uploaded after all."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["give_back"], {"tenant_id": scope.tenant_id, "bytes": byte_count})

    def forget(self, scope: Scope) -> None:
        """Remove what says nothing any more: buckets that are full again, and days that are over."""
        with self._database.transaction(scope) as connection:
            for statement in ("forget", "forget_uploads"):
                connection.execute(_SQL[statement], {"tenant_id": scope.tenant_id})
