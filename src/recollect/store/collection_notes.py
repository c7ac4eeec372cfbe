"""What is noted of collections: words of programs, and when they were last used, where they expire without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from psycopg.types.json import Jsonb

from recollect.model.collection_notes import CollectionNotes
from recollect.store.database import Database, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.model import Scope

_SQL = queries("collection_notes")
_BATCH = 500


class CollectionNoteRepository:
    """Reads and writes what is noted of collections.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, scope: Scope) -> Mapping[int, CollectionNotes]:
        """What is noted of the tenant's collections, by their numbers; most have nothing."""
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["all"], {"tenant_id": scope.tenant_id})
        names = CollectionNotes.__dataclass_fields__
        return {row[0]: CollectionNotes(**dict(zip(names, row[1:], strict=True))) for row in found}

    def note(
        self, scope: Scope, collection_id: int, *, metadata: Mapping[str, str] | None, idle_days: int | None
    ) -> None:
        """Write something on a collection; see `Collections.note`."""
        params = {
            **_of(scope, collection_id),
            "metadata": None if metadata is None else Jsonb(dict(metadata)),
            "idle_days": idle_days,
        }
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["note"], params)

    def use(self, scope: Scope, collection_id: int) -> None:
        """Count that a collection is used, where that matters."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["use"], _of(scope, collection_id))

    def expire(self, scope: Scope, close: Callable[[Scope, Sequence[int]], object]) -> int:
        """Close the documents of collections that nobody has used for so long; returns of how many collections.

        Args:
            scope: Whose.
            close: Closes documents by their numbers.
        """
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["count_searches"], {"tenant_id": scope.tenant_id})
            idle = [row[0] for row in rows(connection, _SQL["idle"], {"tenant_id": scope.tenant_id})]
        for collection_id in idle:
            # Between two batches it may be found empty; it has expired when the last one is closed.
            while documents := self._current(scope, collection_id):
                close(scope, documents)
            with self._database.transaction(scope) as connection:
                connection.execute(_SQL["expire"], _of(scope, collection_id))
        return len(idle)

    def _current(self, scope: Scope, collection_id: int) -> list[int]:
        with self._database.transaction(scope) as connection:
            found = rows(connection, _SQL["current_documents"], {**_of(scope, collection_id), "limit": _BATCH})
        return [row[0] for row in found]


def _of(scope: Scope, collection_id: int) -> dict[str, int]:
    return {"tenant_id": scope.tenant_id, "collection_id": collection_id}
