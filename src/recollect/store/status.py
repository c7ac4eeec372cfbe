"""What the store holds, and whether it contradicts itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.collections import CollectionRepository
from recollect.store.database import Repository, rows
from recollect.store.rights import access_params, may_read
from recollect.store.sql import queries
from recollect.store.verification import CHECKS, CollectionSnapshot, Findings, StoredVersion, outside, snapshot

_SQL = queries("status")


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


class StatusRepository(Repository):
    """Counts and checks."""

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

    def languages(self, scope: Scope, collection: Collection, *, documents: int) -> dict[str, int]:
        """Chunks by the language of their document, of the current documents that were stored last.

        A document counts with all of its chunks, whatever parts of it are in; one of the collection's own language, in
        a collection that is told one, is left out.

        Args:
            scope: Whose.
            collection: Where.
            documents: How many at most.
        """
        params = {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id, "limit": documents}
        return dict(self._database.run(scope, _SQL["languages"], params))

    def check(self, scope: Scope) -> list[Finding]:
        """Everything of the tenant that contradicts itself; an empty list for a sound store.

        What a verification finds without counting the words of any text, except cached embeddings, which no search is
        answered from.
        """
        found = outside(self._database, scope)
        for place in CollectionRepository(self._database).list_all(scope, hidden=True):
            with snapshot(self._database, scope) as connection:
                moment = CollectionSnapshot(connection, scope, place)
                if moment.exists():
                    found.merge(moment.rows_beside())
                    found.merge(moment.counters())
                    for version in moment.versions():
                        _look_at_text(version, found)
        del found.counts["embedding_cache"]
        return [Finding(said, found.counts[name]) for name, said in CHECKS.items() if found.counts[name]]


def _look_at_text(version: StoredVersion, found: Findings) -> None:
    content, chunks = version.content, [one.chunk for one in version.chunks]
    found.add("chunk_counts", len(chunks) != version.chunk_count)
    found.add("missing_contents", content is None)
    if content is not None:
        found.add("chunk_texts", sum(content[one.start_offset : one.end_offset] != one.text for one in chunks))
