"""Token vectors of chunks, stored where a collection asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import Scope
from recollect.store.copying import copy_into
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = queries("token_vectors")


class TokenVectorRepository:
    """Reads packed token vectors, and says which collections have them.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_many(self, scope: Scope, chunk_ids: Sequence[int], *, model: str) -> dict[int, bytes]:
        """The packed vectors that an embedding model, by its name, made of those chunks that have some."""
        params = {"tenant_id": scope.tenant_id, "chunk_ids": list(chunk_ids), "model": model}
        with self._database.transaction(scope) as connection:
            return {chunk_id: bytes(packed) for chunk_id, packed in rows(connection, _SQL["get_many"], params)}


def copy_token_vectors(
    connection: Connection, scope: Scope, chunk_ids: Sequence[int], packed: Sequence[bytes], *, space_id: int
) -> None:
    """Store the packed vectors of new chunks, in the transaction that stores the chunks.

    Args:
        connection: In that transaction.
        scope: Whose chunks.
        chunk_ids: Of chunks that are stored already.
        packed: Parallel to ``chunk_ids``; from `recollect.retrieval.rerank.late_interaction.pack`.
        space_id: Whose model made them.
    """
    with copy_into(connection, _SQL["copy"]) as copy:
        copy.set_types(["int4", "int8", "int4", "bytea"])
        for chunk_id, own in zip(chunk_ids, packed, strict=True):
            copy.write_row((scope.tenant_id, chunk_id, space_id, own))
