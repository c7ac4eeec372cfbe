"""Where one document stands: what is stored of it, and how many chunks come before its best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pgvector import HalfVector
from psycopg.rows import TupleRow

from recollect.errors import NotFoundError, UsageError
from recollect.model import Scope
from recollect.model.arguments import whole_number
from recollect.model.collection import Collection
from recollect.store.database import Repository, rows
from recollect.store.rights import access_params, may_find, may_read_version
from recollect.store.search import Floats, to_sparse
from recollect.store.sql import queries

_SQL = queries("why_not")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A document, and the version of it that is known in a scope, or else its last one.

    Attributes:
        source: Its URI within its origin.
        known: Whether this version is known in the scope.
        known_to: When it was closed, None where it is current.
        expires_at: None for never.
        permissions: The document's grants, and its denials with a ``!`` before each.
        vectors: Chunks that the dense retriever can find.
        lexical_rows: Chunks that the lexical retriever can find.
    """

    document_id: int
    title: str
    source: str
    collection: str
    version_id: int
    version: int
    known: bool
    known_from: datetime
    known_to: datetime | None
    expires_at: datetime | None
    permissions: Sequence[str]
    status: str
    error: str | None
    department: str | None
    chunk_count: int
    vectors: int
    lexical_rows: int


@dataclass(frozen=True, slots=True)
class BestChunk:
    """The chunk of a document that a retriever prefers: its score, and its rank from 1 among all that may be found."""

    chunk_id: int
    score: float
    rank: int


class StandingRepository(Repository):
    """Finds a document by what people call it, and counts what comes before it."""

    def find(self, scope: Scope, collection: Collection, document: int | str) -> Standing:
        """A document by its id, its source, its title or the end of its path; closed ones too.

        Args:
            scope: Whose documents, and as of when.
            collection: Documents of this collection are meant first.
            document: What somebody calls it.

        Raises:
            NotFoundError: There is none, or it was erased.
            UsageError: Several are meant equally.
        """
        name = str(document).replace("\0", "").strip()
        number = whole_number(name)
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "name": name.removeprefix("./"),
            "document_id": number,
            "as_of": scope.as_of,
            **access_params(scope),
        }
        named, alike = (f"{_SQL[query]} AND {may_find(scope)} {_SQL['named_order']}" for query in ("named", "alike"))
        with self._database.transaction(scope) as connection:
            found = rows(connection, named, params) or (rows(connection, alike, params) if name else [])
            params["document_id"] = _meant(found, document, number)
            standing = rows(connection, f"{_SQL['standing']} AND {may_read_version(scope)} {_SQL['latest']}", params)
        if not standing:  # erased, or closed to who asks, since it was found
            raise _missing(document)
        return Standing(**dict(zip(Standing.__dataclass_fields__, standing[0], strict=True)))

    def dense_rank(
        self,
        scope: Scope,
        collection: Collection,
        embedding: Floats,
        *,
        version_id: int,
        version_ids: list[int] | None = None,
    ) -> BestChunk | None:
        """The best chunk of a version by cosine similarity, ranked by counting; None where it has no vectors.

        Args:
            scope: Whose chunks, and as of when.
            collection: Where to count.
            embedding: The query's, of unit length.
            version_id: The document's version.
            version_ids: Count only chunks of these versions; None: all.
        """
        params = {
            **_counted(scope, collection, version_id, version_ids),
            "embedding": HalfVector(embedding),
        }
        found = self._database.run(scope, _SQL["dense_rank"], params)
        return BestChunk(found[0][0], found[0][1], found[0][2] + 1) if found else None

    def stored_rank(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[int, float],
        *,
        version_id: int,
        version_ids: list[int] | None = None,
    ) -> int:
        """The rank of a version's best chunk by the stored BM25 weights, which is near its rank by today's.

        Args:
            scope: Whose chunks, and as of when.
            collection: Where to count.
            query: The lexemes' weights.
            version_id: The document's version.
            version_ids: Count only chunks of these versions; None: all.
        """
        params = {
            **_counted(scope, collection, version_id, version_ids),
            "query": to_sparse(list(query), list(query.values())),
        }
        return int(self._database.run(scope, _SQL["stored_rank"], params)[0][0]) + 1

    def lexemes(self, scope: Scope, version_id: int, wanted: Sequence[int]) -> set[int]:
        """Which of some lexemes stand in a version."""
        params = {"tenant_id": scope.tenant_id, "version_id": version_id, "lexemes": list(wanted)}
        return {row[0] for row in self._database.run(scope, _SQL["lexemes"], params)}


def _missing(document: int | str) -> NotFoundError:
    return NotFoundError(
        f"There is no document {document!r}: it was never ingested, or it has been erased. "
        "`recollect documents list` shows what there is."
    )


def _meant(found: Sequence[TupleRow], document: int | str, number: int | None) -> int:
    if not found:
        raise _missing(document)
    # An id comes before names; then the collection searched, then what is current.
    orders = [(row[0] != number, not row[2], not row[3]) for row in found]
    best = [row for row, order in zip(found, orders, strict=True) if order == min(orders)]
    if len(best) > 1:
        known = ", ".join(f"{row[0]} in {row[1]!r}" for row in best[:10])
        raise UsageError(f"Several documents are named {document!r}: say which by id ({known}).")
    return int(best[0][0])


def _counted(scope: Scope, collection: Collection, version_id: int, version_ids: list[int] | None) -> dict[str, Any]:
    return {
        "tenant_id": scope.tenant_id,
        "collection_id": collection.collection_id,
        "space_id": collection.space_id,
        "as_of": scope.as_of,
        "version_id": version_id,
        "version_ids": version_ids,
        "access_ids": None if collection.access_ids is None else list(collection.access_ids),
    }
