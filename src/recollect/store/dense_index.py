"""The approximate index of a large collection's vectors."""

from __future__ import annotations

from psycopg import sql

from recollect.errors import NotFoundError
from recollect.model import Scope
from recollect.store.collections import Collection, CollectionRepository
from recollect.store.database import Database

#: Below this many chunks comparing every vector takes a few milliseconds, and an index would only cost.
INDEX_THRESHOLD_CHUNKS = 10_000

# Of one collection, over its current rows: history and other collections cost its searches nothing, and
# collections of different dimensions share the table.
_CREATE = sql.SQL(
    "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON chunk_vectors "
    "USING hnsw ((embedding::halfvec({dimension})) halfvec_ip_ops) "
    "WHERE tenant_id = {tenant_id} AND collection_id = {collection_id} AND known_to = 'infinity'"
)
_MAX_INDEXED_DIMENSION = 4000


class DenseIndexer:
    """Builds a collection's HNSW index once it has grown large enough, without blocking writers."""

    def __init__(
        self, database: Database, collections: CollectionRepository, *, threshold: int = INDEX_THRESHOLD_CHUNKS
    ) -> None:
        self._database = database
        self._collections = collections
        self._threshold = threshold

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
        index = sql.Identifier(index_name(collection))
        with self._database.autocommit() as connection:
            # One builder at a time; the loser finds the index made.
            key = (collection.collection_id,)
            connection.execute("SELECT pg_advisory_lock(hashtext('recollect.dense_index'), %s)", key)
            try:
                if self._indexed(scope, name):
                    return
                # What an interrupted build leaves behind is invalid and in the way.
                connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
                connection.execute(
                    _CREATE.format(
                        name=index,
                        dimension=sql.Literal(collection.embedding_dimension),
                        tenant_id=sql.Literal(scope.tenant_id),
                        collection_id=sql.Literal(collection.collection_id),
                    )
                )
            finally:
                connection.execute("SELECT pg_advisory_unlock(hashtext('recollect.dense_index'), %s)", key)

    def _indexed(self, scope: Scope, name: str) -> bool:
        try:
            return self._collections.get(scope, name).indexed
        except NotFoundError:
            return True


def index_name(collection: Collection) -> str:
    """The name that says which collection an index is of."""
    return f"chunk_vectors_hnsw_{collection.collection_id}"
