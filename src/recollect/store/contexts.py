"""Which chunks still need a sentence that situates them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.store.database import Database, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection

_SQL = queries("contexts")
_PAGE = 500


class ContextRepository:
    """Knows what is contextualised; `recollect.store.verification.mending.Mender` stores it.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def pending(self, scope: Scope, collection: Collection, made_by: str, *, after: int = 0) -> list[int]:
        """Current versions with a chunk that this model and prompt were not asked about, by id; one page of them."""
        found = self._rows(scope, collection, "pending", made_by=made_by, after=after, limit=_PAGE)
        return [row[0] for row in found]

    def size(
        self, scope: Scope, collection: Collection, made_by: str, *, beginning: int, around: int
    ) -> tuple[int, int, int]:
        """How many documents and chunks are pending, and how many bytes a model would be given for them."""
        params = {"made_by": made_by, "beginning": beginning, "around": around}
        documents, chunks, size = self._rows(scope, collection, "size", **params)[0]
        return int(documents), int(chunks), int(size)

    def _rows(self, scope: Scope, collection: Collection, name: str, **params: Any) -> list[Any]:  # noqa: ANN401
        given = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, **params}
        with self._database.single_reads(scope) as connection:
            return rows(connection, _SQL[name], given)
