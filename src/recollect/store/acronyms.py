"""The acronyms that documents explain, kept with the version that explains them and gone with it."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.model import Scope
from recollect.store.copying import copy_into
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

_SQL = queries("acronyms")

#: How many a search takes up at most, those explained most often.
MAX_ACRONYMS = 2_000


class AcronymRepository:
    """Reads a collection's acronyms.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def frequent(
        self,
        scope: Scope,
        collection_id: int,
        *,
        access_ids: Sequence[int] | None = None,
        limit: int = MAX_ACRONYMS,
    ) -> list[tuple[str, str, int]]:
        """(acronym, long form, how often current documents explain it so), the most frequent first.

        Args:
            scope: Whose documents.
            collection_id: Where they are.
            access_ids: Only documents of these access lists (`Collection.access_ids`); None: all.
            limit: How many at most.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection_id,
            "access_ids": None if access_ids is None else list(access_ids),
            "limit": limit,
        }
        with self._database.single_reads(scope) as connection:
            return [(row[0], row[1], row[2]) for row in rows(connection, _SQL["frequent"], params)]


def copy_acronyms(
    connection: Connection, scope: Scope, collection_id: int, found: Sequence[tuple[int, str, str, int]]
) -> None:
    """Store the acronyms of new versions, in the transaction that stores the versions.

    Args:
        connection: In that transaction.
        scope: Whose versions.
        collection_id: Of the versions.
        found: Version, acronym, long form and occurrences; none twice.
    """
    if not found:
        return
    with copy_into(connection, _SQL["copy"]) as copy:
        copy.set_types(["int4", "int8", "int4", "text", "text", "int4"])
        for version_id, short, long, occurrences in found:
            copy.write_row((scope.tenant_id, version_id, collection_id, short, long, occurrences))
