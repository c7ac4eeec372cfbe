"""Which words stand in what a caller may read: numbers of the whole collection would tell of what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.store.database import Database, rows
from recollect.store.search_rows import collection_params
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection

_SQL = queries("readable_terms")


class ReadableTermRepository:
    """Looks at the current chunks of a collection that a caller may read, one by one: not for every search.

    A collection that may be read whole (`Collection.access_ids` None) is not asked about here; its counts are known,
    see `SearchRepository.document_frequencies`.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def frequencies(self, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> dict[int, int]:
        """In how many readable chunks each lexeme stands."""
        return dict(self._rows("frequencies", scope, collection, lexemes))

    def present(self, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> set[int]:
        """Those of the lexemes that stand in a readable chunk at least; each is looked for until it is found."""
        return {row[0] for row in self._rows("present", scope, collection, lexemes)}

    def _rows(self, query: str, scope: Scope, collection: Collection, lexemes: Sequence[int]) -> list[Any]:
        params = {**collection_params(scope, collection), "lexemes": list(lexemes)}
        with self._database.single_reads(scope) as connection:
            return rows(connection, _SQL[query], params)
