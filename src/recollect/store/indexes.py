"""Indexes of single collections: their names, who may build them when, and how they are removed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, LiteralString

from psycopg import sql
from psycopg.pq import TransactionStatus

from recollect.model import Scope
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

logger = logging.getLogger(__name__)

_SQL = queries("past")
_SPACES = queries("spaces")

#: Of a space's vectors as they are at present.
NAME = "chunk_vectors_hnsw_%d"

#: Locked beside the number of a space, by which `db verify` knows what is being built: two statements that build or
#: drop indexes of one table wait for its lock and for each other's sessions, until PostgreSQL calls it a deadlock.
_ALL = 0

_POLL_SECONDS = 0.2


def drop_indexes(database: Database, scope: Scope, collection_id: int) -> int:
    """Remove every index of a collection that was deleted, and of other spaces that are gone; returns how many."""
    params = {"tenant_id": scope.tenant_id, "collection_id": collection_id}
    with database.autocommit() as connection:
        found = len(rows(connection, _SQL["leftovers"], params))
        if found:
            with one_at_a_time(connection, collection_id):
                drop_leftovers(connection, params)
        ownerless = [row[0] for row in rows(connection, _SQL["ownerless"])]
    return found + sum(drop_index(database, space_id) for space_id in ownerless)


def drop_index(database: Database, space_id: int) -> bool:
    """Remove the index of a space that is gone, whole or half-built; returns whether there was one."""
    with database.autocommit() as connection:
        exists = "SELECT to_regclass('recollect.chunk_vectors_hnsw_' || %s::int) IS NOT NULL"
        if not holds(connection, exists, space_id):
            return False
        with one_at_a_time(connection, space_id):
            drop_concurrently(connection, NAME % space_id)
    return True


def drop_space_indexes(database: Database, space_id: int) -> None:
    """Remove every index of a space that is being dropped."""
    with database.autocommit() as connection:
        found = rows(connection, _SPACES["indexes"], {"space_id": space_id})
        if found:
            with one_at_a_time(connection, space_id):
                for name, _ in found:
                    drop_concurrently(connection, name)


def drop_leftovers(connection: Connection, params: dict[str, Any]) -> None:
    """Remove what belongs to no segment of a collection, or to no collection any more."""
    for (name,) in rows(connection, _SQL["leftovers"], params):
        drop_concurrently(connection, name)


@contextmanager
def settings_of(connection: Connection, settings: Mapping[str, str]) -> Iterator[None]:
    """Change settings of a session while an index is built."""
    for name, value in settings.items():
        connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
    try:
        yield
    finally:
        if not connection.closed:
            for name in settings:
                connection.execute(sql.SQL("RESET {}").format(sql.Identifier(name)))


@contextmanager
def one_at_a_time(connection: Connection, number: int) -> Iterator[None]:
    """Build or drop indexes of a space, or a collection's of the past, while nobody else builds or drops any."""
    held: LiteralString = "pg_try_advisory_lock" if _outside(connection) else "pg_try_advisory_xact_lock"
    waiting = False
    for one in (number, _ALL):
        # Asked for again and again: a session that waited inside a statement would hold a snapshot, and the build,
        # which waits for every older snapshot to go, would wait for the one that waits for it.
        while not holds(connection, f"SELECT {held}(hashtext('recollect.dense_index'), %s)", one):
            if not waiting:
                logger.warning("Waiting for another process, which is building or removing a vector index.")
            waiting = True
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        if not connection.closed and _outside(connection):
            for one in (_ALL, number):
                connection.execute("SELECT pg_advisory_unlock(hashtext('recollect.dense_index'), %s)", (one,))


def drop_concurrently(connection: Connection, name: str) -> None:
    """Drop an index, without keeping anybody waiting where the connection is outside a transaction."""
    drop = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}" if _outside(connection) else "DROP INDEX IF EXISTS {}")
    connection.execute(drop.format(sql.Identifier(name)))


def holds(connection: Connection, query: LiteralString, number: int) -> bool:
    """Whether a query about a space or a collection, which gives one boolean, says yes."""
    row = connection.execute(query, (number,)).fetchone()
    return bool(row and row[0])


def _outside(connection: Connection) -> bool:
    """Whether the connection is outside a transaction, as it always is but behind a pooler."""
    return connection.info.transaction_status == TransactionStatus.IDLE
