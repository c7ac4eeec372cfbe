"""Indexes of a collection's closed rows, made in closed-row segments once enough has been closed.

A segment covers the rows that were closed in a stretch of time. It is made when that time is over, so that no writer
has to keep it up; what is closed later waits for the next one and is compared one by one until then. Small segments are
replaced by one that covers their time too.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg import sql

from recollect.model import Scope
from recollect.store.database import Connection, Database, rows
from recollect.store.dense_index import EF_CONSTRUCTION, INDEX_THRESHOLD_CHUNKS
from recollect.store.indexes import drop_concurrently, drop_leftovers, one_at_a_time, settings_of
from recollect.store.sql import queries
from recollect.store.tuning import Machine, index_build_settings

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.space import Space
    from recollect.store.collections import CollectionRepository

_SQL = queries("past")
_SPACES = queries("spaces")

_WHERE = sql.SQL(
    "WHERE tenant_id = {tenant_id} AND {column} = {number} "
    "AND known_to >= {first}::timestamptz AND known_to < {past}::timestamptz"
)
_VECTORS = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON chunk_vectors USING hnsw ((embedding::halfvec({dimension})) halfvec_ip_ops) "
    "WITH (m = 16, ef_construction = {ef_construction}) "
)
_LEXICAL = sql.SQL("CREATE INDEX CONCURRENTLY {name} ON chunk_lexical USING gin (lexemes) ")

# The estimate of how many rows were known at a moment is good to one in so many.
_SHARES = [number / 64 for number in range(65)]


class HistoryIndexer:
    """Makes the closed-row segments of a collection.

    Args:
        database: The store's connections.
        collections: Finds collections.
        threshold: Chunks from which on a collection's vectors have an approximate index; smaller ones need no segments.
        machine: The server's, where its memory is known.
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

    def due(self, scope: Scope, name: str) -> bool:
        """Whether enough of an indexed collection has been closed since its last segment was made.

        That is twice what gets an index, and half of what is current.
        """
        collection = self._collections.find(scope, name)
        if collection is None or not collection.indexed:
            return False
        with self._database.single_reads(scope) as connection:
            waiting = rows(connection, _SQL["uncovered"], _params(scope, collection), prepare=False)[0][0]
        return bool(waiting >= max(2 * self._threshold, collection.chunk_count // 2))

    def build(self, scope: Scope, name: str, *, until: datetime | None = None) -> None:
        """Make a segment of what has been closed since the last one, which it replaces if that one is small.

        Readers and writers go on meanwhile. An interrupted build leaves indexes behind that the next one removes.

        Args:
            scope: Whose collection.
            name: The collection's.
            until: Only of what was closed before this moment; None: of all.

        Raises:
            NotFoundError: The collection does not exist.
        """
        collection = self._collections.get(scope, name)
        params = _params(scope, collection)
        with self._database.session() as connection, one_at_a_time(connection, collection.collection_id):
            drop_leftovers(connection, params)
            last = rows(connection, _SQL["last_segment"], params)
            swallowed = [row for row in last if row[2] < collection.chunk_count]
            first = _first(connection, params, swallowed)
            segment_id, past, sound = rows(connection, _SQL["number"], {"first": first, "until": until})[0]
            if not sound:
                return
            self._make(connection, scope, collection, segment_id, first, past)
            with self._database.transaction(scope) as writing:
                if rows(writing, _SQL["hold"], params):
                    # Statements of their own, after the lock: their snapshots hold what it waited for.
                    writing.execute(_SQL["lock_state"], params)
                    writing.execute(_SQL["replace"], {**params, "segment_ids": [row[0] for row in swallowed]})
                    made = {"segment_id": segment_id, "first": first, "past": past, "shares": _SHARES}
                    writing.execute(_SQL["add"], {**params, **made})
            # Afterwards: searches that were planned before may still use them, and find their rows without them too.
            drop_leftovers(connection, params)

    def build_space(self, scope: Scope, name: str, space: Space) -> None:
        """Make the indexes of a space that is not used yet, of every segment that there is; those that are there stay.

        Raises:
            NotFoundError: The collection does not exist.
        """
        collection = self._collections.get(scope, name)
        params = _params(scope, collection) | {"space_id": space.space_id}
        with self._database.session() as connection, one_at_a_time(connection, collection.collection_id):
            usable = {row[0] for row in rows(connection, _SPACES["indexes"], params) if row[1]}
            for segment_id, first, past in rows(connection, _SPACES["segments"], params):
                index = f"chunk_vectors_past_{space.space_id}_{segment_id}"
                if index not in usable:
                    drop_concurrently(connection, index)
                    settings = self._room(collection) | {"max_parallel_maintenance_workers": "0"}
                    with settings_of(connection, settings):
                        where = _where(scope, "space_id", space.space_id, first, past)
                        connection.execute(_vectors(index, space.dimension) + where)
            connection.execute("SELECT forget_content_statistics()")

    def _make(
        self, connection: Connection, scope: Scope, collection: Collection, segment_id: int, first: str, past: str
    ) -> None:
        space_id, collection_id = collection.space_id, collection.collection_id
        vectors = _vectors(f"chunk_vectors_past_{space_id}_{segment_id}", collection.embedding_dimension)
        lexical = _LEXICAL.format(name=sql.Identifier(f"chunk_lexical_past_{collection_id}_{segment_id}"))
        with settings_of(connection, self._room(collection)):
            connection.execute(vectors + _where(scope, "space_id", space_id, first, past))
            connection.execute(lexical + _where(scope, "collection_id", collection_id, first, past))
            connection.execute("SELECT forget_content_statistics()")

    def _room(self, collection: Collection) -> dict[str, str]:
        if self._machine is None:
            return {}
        # A segment and the small one that it replaces.
        vectors = 2 * max(collection.chunk_count, self._threshold)
        return index_build_settings(self._machine, vectors=vectors, dimension=collection.embedding_dimension)


def _vectors(index: str, dimension: int) -> sql.Composed:
    return _VECTORS.format(
        name=sql.Identifier(index),
        dimension=sql.Literal(dimension),
        ef_construction=sql.Literal(EF_CONSTRUCTION),
    )


def _where(scope: Scope, column: str, number: int, first: str, past: str) -> sql.Composed:
    return _WHERE.format(
        tenant_id=sql.Literal(scope.tenant_id),
        column=sql.Identifier(column),
        number=sql.Literal(number),
        first=sql.Literal(first),
        past=sql.Literal(past),
    )


def _params(scope: Scope, collection: Collection) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}


def _first(connection: Connection, params: dict[str, Any], swallowed: list[Any]) -> str:
    if swallowed:
        return str(swallowed[0][1])
    return str(rows(connection, _SQL["covered_until"], params)[0][0])
