"""Embeddings kept across ingests, keyed by model and by the hash of what was embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgvector import HalfVector

from recollect.model import Scope
from recollect.store.database import Database, rows
from recollect.store.search import Floats
from recollect.store.sql import queries
from recollect.store.wire import halfvecs

_SQL = queries("embedding_cache")


class EmbeddingCacheRepository:
    """The persistent side of `recollect.embedding.cached.CachedEmbedder`, for one tenant.

    Vectors are kept at half precision, the precision that they are searched at.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope

    def get_many(self, model: str, keys: Sequence[bytes]) -> dict[bytes, Floats]:
        """The cached embeddings of those keys that have one, as float32 arrays of shape (dimension,)."""
        params = {"tenant_id": self._scope.tenant_id, "model": model, "content_hashes": list(keys)}
        with self._database.transaction(self._scope) as connection:
            found = rows(connection, _SQL["get_many"], params)
        return dict(zip([row[0] for row in found], halfvecs([row[1] for row in found]), strict=True))

    def put_many(self, model: str, items: Mapping[bytes, Floats]) -> None:
        """Keep embeddings by key."""
        if not items:
            return
        params = {
            "tenant_id": self._scope.tenant_id,
            "model": model,
            "content_hashes": list(items),
            "embeddings": [HalfVector(vector) for vector in items.values()],
        }
        with self._database.transaction(self._scope) as connection:
            connection.execute(_SQL["put_many"], params)
