"""What the store holds, and whether it contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

from recollect.model import Scope
from recollect.store.collections import Collection
from recollect.store.database import Database, rows
from recollect.store.rights import access_params, may_read
from recollect.store.sql import queries

_SQL = queries("status")

# Documents whose texts are in memory at a time.
_PAGE_VERSIONS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """Totals of one tenant.

    Attributes:
        departments: Current chunks by department; documents of none count under the empty string.
    """

    total_documents: int
    total_chunks: int
    departments: Mapping[str, int]
    schema_version: int
    database_bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that contradicts itself.

    Attributes:
        count: How many rows do.
        remedy: What to do about it.
    """

    problem: str
    count: int
    remedy: str = "Mend it: recollect db verify --repair"


class StatusRepository:
    """Counts and checks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def status(self, scope: Scope, collection: Collection | None = None) -> StoreStatus:
        """Totals of what the scope's tenant, or its principal, may read, and the store's size.

        Args:
            scope: Whose.
            collection: Only what is in this one, as the scope's principal sees it; None: in all.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": None if collection is None else collection.collection_id,
            **access_params(scope),
        }
        totals: LiteralString = _SQL["totals"]
        by_department: LiteralString = _SQL["departments"]
        if scope.principal is not None:
            totals = f"{_SQL['readable_totals']} AND {may_read(scope)}"
            by_department = f"{by_department} AND {_SQL['readable']} AND {may_read(scope)})"
        with self._database.transaction(scope) as connection:
            documents, chunks = (
                rows(connection, totals, params)[0]
                if collection is None
                else (collection.document_count, collection.chunk_count)
            )
            departments: dict[str, int] = dict(rows(connection, f"{by_department} {_SQL['departments_order']}", params))
            schema_version, database_bytes = rows(connection, _SQL["store"])[0]
        return StoreStatus(
            total_documents=documents,
            total_chunks=chunks,
            departments=departments,
            schema_version=schema_version,
            database_bytes=database_bytes,
        )

    def check(self, scope: Scope) -> list[Finding]:
        """Everything of the tenant that contradicts itself; an empty list for a sound store."""
        params = {"tenant_id": scope.tenant_id}
        with self._database.transaction(scope) as connection:
            found = [
                Finding(*rows(connection, query, params)[0])
                for name, query in _SQL.items()
                if name.startswith("check_")
            ]
        found.append(Finding("chunk whose text is not the content at its offsets", self._misplaced_chunks(scope)))
        return [finding for finding in found if finding.count]

    def _misplaced_chunks(self, scope: Scope) -> int:
        misplaced = 0
        after = 0
        while True:
            params: dict[str, Any] = {"tenant_id": scope.tenant_id, "after": after, "limit": _PAGE_VERSIONS}
            with self._database.transaction(scope) as connection:
                contents: dict[int, str] = dict(rows(connection, _SQL["contents_page"], params))
                chunks = rows(connection, _SQL["chunk_texts"], {**params, "version_ids": list(contents)})
            wrong = [row for row in chunks if contents[row[0]][row[1] : row[2]] != row[3]]
            misplaced += len(wrong)
            if len(contents) < _PAGE_VERSIONS:
                return misplaced
            after = max(contents)
