"""The approximate index of a large collection's vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from psycopg import sql

from recollect.model import Scope
from recollect.store.database import Connection, Database
from recollect.store.indexes import NAME, drop_concurrently, drop_index, holds, one_at_a_time, settings_of
from recollect.store.tuning import Machine, index_build_settings, index_lists

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.space import Space
    from recollect.store.collections import CollectionRepository

#: Below this many chunks comparing every vector takes a few milliseconds, and an index would only cost.
INDEX_THRESHOLD_CHUNKS = 10_000

# Of one space, over its current rows: history and other collections cost its searches nothing, and spaces of different
# dimensions share the table.
_CURRENT = sql.SQL("WHERE tenant_id = {tenant_id} AND space_id = {space_id} AND known_to = 'infinity'")

_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY {name} ON chunk_vectors "
    "USING {method} ((embedding::halfvec({dimension})) halfvec_ip_ops) WITH ({options}) "
)

# With pgvector's default of 64 a graph takes an eighth longer to build and finds no more: at 175 candidates a search,
# 0.942 to 0.951 of the nearest of 100,000 made vectors with either, and 0.992 of 13,000 real sentences' (0.991 with
# 40). A lower m finds less. Binary codes take a third of the room, but three times a search's processor time for the
# same recall.
_GRAPH_OPTIONS = sql.SQL("m = 16, ef_construction = 48")

_MAX_INDEXED_DIMENSION = 4000


class DenseIndexer:
    """Builds the index of a collection's vectors once it has grown large enough, without blocking writers.

    That is a graph (HNSW), or lists (IVFFlat) where a graph would not fit the memory.

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
        self._build(scope, self._collections.get(scope, name))

    def build_space(self, scope: Scope, name: str, space: Space) -> None:
        """Build the index of a space that is not used yet, where the collection is large enough for one.

        It takes one core, because searches use another space meanwhile.

        Raises:
            NotFoundError: The collection does not exist.
        """
        collection = self._collections.get(scope, name)
        if collection.chunk_count >= self._threshold and space.dimension <= _MAX_INDEXED_DIMENSION:
            seen = replace(collection, space_id=space.space_id, embedding_dimension=space.dimension)
            self._build(scope, seen, workers=0)

    def _build(self, scope: Scope, collection: Collection, *, workers: int | None = None) -> None:
        with self._database.session() as connection, one_at_a_time(connection, collection.space_id):
            if _usable(connection, collection.space_id):
                return
            name, size = NAME % collection.space_id, (collection.chunk_count, collection.embedding_dimension)
            # What an interrupted build leaves behind is invalid and in the way.
            drop_concurrently(connection, name)
            with room_for_index(connection, name, size, self._machine, workers=workers) as create:
                connection.execute(create + _current(scope, collection))
            # Of an index on an expression, ANALYZE would sample whole vectors.
            connection.execute("SELECT forget_content_statistics()")
        if self._collections.find(scope, collection.name) is None:
            drop_index(self._database, collection.space_id)


@contextmanager
def room_for_index(
    connection: Connection, name: str, shape: tuple[int, int], machine: Machine | None, *, workers: int | None = None
) -> Iterator[sql.Composed]:
    """Give a session the memory to build an index of vectors, and take it back afterwards.

    Args:
        connection: The session that builds.
        name: The index's.
        shape: How many vectors there are, and their dimension.
        machine: The server's, where its memory is known. Lists are built where a graph would not fit it.
        workers: How many parallel workers help; None: as the server is set.

    Yields:
        The statement that builds it, without the condition (WHERE) that says which vectors it covers.
    """
    vectors, dimension = shape
    lists = index_lists(machine, vectors=vectors, dimension=dimension)
    settings = {} if machine is None else index_build_settings(machine, vectors=vectors, dimension=dimension)
    if workers is not None:
        settings["max_parallel_maintenance_workers"] = str(workers)
    with settings_of(connection, settings):
        yield _CREATE.format(
            name=sql.Identifier(name),
            method=sql.SQL("hnsw" if lists is None else "ivfflat"),
            dimension=sql.Literal(dimension),
            options=_GRAPH_OPTIONS if lists is None else sql.SQL("lists = {}").format(sql.Literal(lists)),
        )


def _current(scope: Scope, collection: Collection) -> sql.Composed:
    return _CURRENT.format(tenant_id=sql.Literal(scope.tenant_id), space_id=sql.Literal(collection.space_id))


def _usable(connection: Connection, space_id: int) -> bool:
    return holds(
        connection,
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('recollect.chunk_vectors_hnsw_' || %s::int)",
        space_id,
    )
