"""Embeddings kept across ingests, keyed by model and by the hash of what was embedded.

The chunks of a text own its embedding. It is kept in the transaction that stores the first of them, so that what is
refused leaves none, and goes with the last of them, whether that is erased or its collection is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pgvector import HalfVector

from recollect.model import Scope
from recollect.store.database import Connection, Database
from recollect.store.sql import queries
from recollect.store.wire import halfvecs

if TYPE_CHECKING:
    from recollect.store.search import Floats

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
        found = self._database.run(self._scope, _SQL["get_many"], params)
        return dict(zip([row[0] for row in found], halfvecs([row[1] for row in found]), strict=True))

    def put_many(self, model: str, items: Mapping[bytes, Floats]) -> None:
        """Keep embeddings by key, in a transaction of their own; a clean-up removes those that no chunk has."""
        if items:
            with self._database.transaction(self._scope) as connection:
                keep_embeddings(connection, self._scope, model, items)

    def drop_unowned(self) -> None:
        """Remove the embeddings whose text no chunk has any more."""
        with self._database.transaction(self._scope) as connection:
            drop_unowned(connection, self._scope)


def keep_embeddings(connection: Connection, scope: Scope, model: str, items: Mapping[bytes, Floats]) -> None:
    """Keep embeddings by key, in the transaction that stores the chunks that own them; what is there stays.

    In the order of their keys, and after every other row: two who keep the same wait for one another, and for nobody
    who waits for them.
    """
    if not items:
        return
    params = {
        "tenant_id": scope.tenant_id,
        "model": model,
        "content_hashes": list(items),
        "embeddings": [HalfVector(vector) for vector in items.values()],
    }
    connection.execute(_SQL["put_many"], params)


def drop_unowned(connection: Connection, scope: Scope) -> None:
    """Remove the embeddings whose text no chunk of the tenant has."""
    connection.execute(_SQL["drop_unowned"], {"tenant_id": scope.tenant_id})
