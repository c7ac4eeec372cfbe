"""Indexes of single collections: their names, who may build them when, and how they are removed."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg import sql
from psycopg.pq import TransactionStatus

from recollect.model import Scope
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries
from recollect.store.tuning import Machine, index_build_settings

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.space import Space
    from recollect.store.collections import CollectionRepository


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


# The approximate index of a large collection's vectors.


#: Below this many chunks comparing every vector takes a few milliseconds, and an index would only cost.
INDEX_THRESHOLD_CHUNKS = 10_000


# Of one space, over its current rows: history and other collections cost its searches nothing, and spaces of different
# dimensions share the table.
_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON chunk_vectors "
    "USING hnsw ((embedding::halfvec({dimension})) halfvec_ip_ops) "
    "WITH (m = 16, ef_construction = {ef_construction}) "
    "WHERE tenant_id = {tenant_id} AND space_id = {space_id} AND known_to = 'infinity'"
)


# Twice pgvector's default: twice the time to build, and of 52,000 real passages' neighbours 0.988 are found instead of
# 0.969. A greater m does no better, and every search would read more.
EF_CONSTRUCTION = 128


_MAX_INDEXED_DIMENSION = 4000


class DenseIndexer:
    """Builds a collection's HNSW index once it has grown large enough, without blocking writers.

    Args:
        database: The store's connections.
        collections: Finds collections.
        threshold: Chunks from which on a collection gets one.
        machine: The server's, where its memory is known; None: its own setting of maintenance_work_mem must do.
    """

    def __init__(
        self,
        database: Database,
        collections: CollectionRepository,
        *,
        threshold: int = INDEX_THRESHOLD_CHUNKS,
        machine: Machine | None = None,
    ) -> None:
        self._database = database
        self._collections = collections
        self._threshold = threshold
        self._machine = machine

    def over(self, database: Database, collections: CollectionRepository) -> DenseIndexer:
        """The same over other connections."""
        return DenseIndexer(database, collections, threshold=self._threshold, machine=self._machine)

    def due(self, scope: Scope, name: str) -> bool:
        """Whether the collection is large enough for an index that it does not have."""
        collection = self._collections.find(scope, name)
        return (
            collection is not None
            and not collection.indexed
            and collection.chunk_count >= self._threshold
            and collection.embedding_dimension <= _MAX_INDEXED_DIMENSION
        )

    def build(self, scope: Scope, name: str) -> None:
        """Build the index now; returns when it is usable, at once where it is so already.

        Raises:
            NotFoundError: The collection does not exist.
        """
        self._build(scope, self._collections.get(scope, name), {})

    def build_space(self, scope: Scope, name: str, space: Space) -> None:
        """Build the index of a space that is not used yet, where the collection is large enough for one.

        It takes one core, because searches use another space meanwhile.

        Raises:
            NotFoundError: The collection does not exist.
        """
        collection = self._collections.get(scope, name)
        if collection.chunk_count >= self._threshold and space.dimension <= _MAX_INDEXED_DIMENSION:
            seen = replace(collection, space_id=space.space_id, embedding_dimension=space.dimension)
            self._build(scope, seen, {"max_parallel_maintenance_workers": "0"})

    def _build(self, scope: Scope, collection: Collection, settings: dict[str, str]) -> None:
        with self._database.session() as connection, one_at_a_time(connection, collection.space_id):
            if _usable(connection, collection.space_id):
                return
            # What an interrupted build leaves behind is invalid and in the way.
            drop_concurrently(connection, NAME % collection.space_id)
            with settings_of(connection, self._room(collection) | settings):
                connection.execute(_create(scope, collection))
            # Of an index on an expression, ANALYZE would sample whole vectors.
            connection.execute("SELECT forget_content_statistics()")
        if self._collections.find(scope, collection.name) is None:
            drop_index(self._database, collection.space_id)

    def _room(self, collection: Collection) -> dict[str, str]:
        if self._machine is None:
            return {}
        return index_build_settings(
            self._machine, vectors=collection.chunk_count, dimension=collection.embedding_dimension
        )


def _create(scope: Scope, collection: Collection) -> sql.Composed:
    return _CREATE.format(
        name=sql.Identifier(NAME % collection.space_id),
        dimension=sql.Literal(collection.embedding_dimension),
        ef_construction=sql.Literal(EF_CONSTRUCTION),
        tenant_id=sql.Literal(scope.tenant_id),
        space_id=sql.Literal(collection.space_id),
    )


def _usable(connection: Connection, space_id: int) -> bool:
    return holds(
        connection,
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('recollect.chunk_vectors_hnsw_' || %s::int)",
        space_id,
    )
