"""The approximate index of a large collection's vectors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, LiteralString

from psycopg import sql
from psycopg.pq import TransactionStatus

from recollect.model import Scope
from recollect.store.database import Connection, Database
from recollect.store.tuning import Machine, index_build_settings

if TYPE_CHECKING:
    from recollect.store.collections import Collection, CollectionRepository

#: Below this many chunks comparing every vector takes a few milliseconds, and an index would only cost.
INDEX_THRESHOLD_CHUNKS = 10_000

# Of one collection, over its current rows: history and other collections cost its searches nothing, and
# collections of different dimensions share the table.
_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON chunk_vectors "
    "USING hnsw ((embedding::halfvec({dimension})) halfvec_ip_ops) "
    "WITH (m = 16, ef_construction = {ef_construction}) "
    "WHERE tenant_id = {tenant_id} AND collection_id = {collection_id} AND known_to = 'infinity'"
)

# Twice pgvector's default: twice the time to build, and of 52,000 real passages' neighbours 0.988 are found instead of
# 0.969. A greater m does no better, and every search would read more.
EF_CONSTRUCTION = 128

_NAME = "chunk_vectors_hnsw_%d"
_MAX_INDEXED_DIMENSION = 4000

_POLL_SECONDS = 0.2


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
        collection = self._collections.get(scope, name)
        with self._database.session() as connection, one_at_a_time(connection, collection.collection_id):
            if _usable(connection, collection.collection_id):
                return
            # What an interrupted build leaves behind is invalid and in the way.
            _drop(connection, collection.collection_id)
            with self._room(connection, collection):
                connection.execute(_create(scope, collection))
            # Of an index on an expression, ANALYZE would sample whole vectors.
            connection.execute("SELECT forget_content_statistics()")
        if self._collections.find(scope, name) is None:
            drop_index(self._database, collection.collection_id)

    @contextmanager
    def _room(self, connection: Connection, collection: Collection) -> Iterator[None]:
        settings = (
            index_build_settings(
                self._machine, vectors=collection.chunk_count, dimension=collection.embedding_dimension
            )
            if self._machine
            else {}
        )
        for name, value in settings.items():
            connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
        try:
            yield
        finally:
            if not connection.closed:
                for name in settings:
                    connection.execute(sql.SQL("RESET {}").format(sql.Identifier(name)))


def _create(scope: Scope, collection: Collection) -> sql.Composed:
    return _CREATE.format(
        name=sql.Identifier(_NAME % collection.collection_id),
        dimension=sql.Literal(collection.embedding_dimension),
        ef_construction=sql.Literal(EF_CONSTRUCTION),
        tenant_id=sql.Literal(scope.tenant_id),
        collection_id=sql.Literal(collection.collection_id),
    )


def drop_index(database: Database, collection_id: int) -> bool:
    """Remove the index of a collection that was deleted, whole or half-built; returns whether there was one."""
    with database.autocommit() as connection:
        exists = "SELECT to_regclass('recollect.chunk_vectors_hnsw_' || %s::int) IS NOT NULL"
        if not _value(connection, exists, collection_id):
            return False
        with one_at_a_time(connection, collection_id):
            _drop(connection, collection_id)
    return True


@contextmanager
def one_at_a_time(connection: Connection, collection_id: int) -> Iterator[None]:
    """Whoever builds or drops indexes of a collection does so alone."""
    # Asked for again and again: a session that waited inside a statement would hold a snapshot, and the build, which
    # waits for every older snapshot to go, would wait for the one that waits for it.
    held: LiteralString = "pg_try_advisory_lock" if _outside(connection) else "pg_try_advisory_xact_lock"
    while not _value(connection, f"SELECT {held}(hashtext('recollect.dense_index'), %s)", collection_id):
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        if not connection.closed and _outside(connection):
            connection.execute("SELECT pg_advisory_unlock(hashtext('recollect.dense_index'), %s)", (collection_id,))


def _value(connection: Connection, query: LiteralString, collection_id: int) -> bool:
    row = connection.execute(query, (collection_id,)).fetchone()
    return bool(row and row[0])


def _usable(connection: Connection, collection_id: int) -> bool:
    return _value(
        connection,
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('recollect.chunk_vectors_hnsw_' || %s::int)",
        collection_id,
    )


def _drop(connection: Connection, collection_id: int) -> None:
    drop_concurrently(connection, _NAME % collection_id)


def _outside(connection: Connection) -> bool:
    """Whether the connection is outside a transaction, as it always is but behind a pooler."""
    return connection.info.transaction_status == TransactionStatus.IDLE


def drop_concurrently(connection: Connection, name: str) -> None:
    """Drop an index, without keeping anybody waiting where the connection is outside a transaction."""
    drop = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}" if _outside(connection) else "DROP INDEX IF EXISTS {}")
    connection.execute(drop.format(sql.Identifier(name)))
