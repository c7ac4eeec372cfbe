"""Reading a store as it stands, to be checked: nothing here changes anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, LiteralString, TypeAlias

import numpy as np
from psycopg.rows import TupleRow

from recollect.model import Chunk, Scope
from recollect.model.collection import Collection
from recollect.store.database import Connection, Database, rows
from recollect.store.originals import damaged_originals
from recollect.store.search_rows import LexicalRow
from recollect.store.sql import queries
from recollect.store.verification.report import Findings
from recollect.store.wire import sparsevecs

_SQL = queries("verify")

#: Rows compared without ``deep``, a collection and a table.
SAMPLE_ROWS = 1_000

# What is in memory at a time.
_PAGE_VERSIONS = 256
_PAGE_CHUNKS = 4_096
_PAGE_ROWS = 2_048

#: What is stored of a chunk beside its text, and the chunks of a version of which it is missing or wrong.
Part: TypeAlias = Literal["vector", "lexical", "tokens"]
PARTS: tuple[Part, ...] = ("vector", "lexical", "tokens")
BrokenParts: TypeAlias = dict[Part, set[int]]

# Checks of what belongs to no one collection: what to call an instance by.
_OUTSIDE: dict[str, tuple[LiteralString, str]] = {
    "stateless_collections": ("p.collection_id", "collection"),
    "missing_access_lists": ("u.collection_id", "of collection"),
    "orphaned_documents": ("d.document_id", "document"),
}

# Checks of what stands beside the chunks of a collection, each a condition, and the part that it is about.
_BESIDE_CHUNKS: dict[str, Part | None] = {
    "missing_vectors": "vector",
    "wrong_vectors": "vector",
    "stale_vector_copies": None,
    "missing_lexical_rows": "lexical",
    "stale_lexical_copies": None,
    "missing_token_vectors": "tokens",
}

#: What stands in two places and differs, by its check or, where one check has several, a name of its own.
COPIES: dict[str, LiteralString] = {
    "version_copies": _SQL["versions_with_documents"] + " AND " + _SQL["other_readers"],
    "version_copies_of_acronyms": _SQL["wrong_acronym_copies"],
    "overlapping_versions": _SQL["overlapping_versions"],
    "stale_vector_copies": _SQL["chunks_with_rows"] + " AND " + _SQL["stale_vector_copies"],
    "stale_vector_copies_elsewhere": _SQL["vectors_elsewhere"] + " AND " + _SQL["stale_copies_elsewhere"],
    "stale_lexical_copies": _SQL["chunks_with_rows"] + " AND " + _SQL["stale_lexical_copies"],
}


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is stored, which may contradict itself."""

    chunk_id: int
    chunk: Chunk
    key: bytes


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version with its text (None where that is missing) and its chunks, by position.

    Attributes:
        analysed_as: The language that its words were counted in; None: the collection's.
    """

    document_id: int
    version_id: int
    uri: str
    title: str
    chunk_count: int
    content_hash: bytes
    current: bool
    content: str | None
    chunks: Sequence[StoredChunk]
    analysed_as: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """A lexical row with the text that it was made of.

    Attributes:
        consistent: Whether its lexemes are those that have a weight.
        analysed_as: The language that its document's words were counted in; None: the collection's.
    """

    chunk_id: int
    version_id: int
    title: str
    section: tuple[str, ...]
    text: str
    row: LexicalRow
    consistent: bool
    context: str = ""
    analysed_as: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexState:
    """A space's vector index: usable or not, being built or dropped right now, and whether a collection has it."""

    space_id: int
    valid: bool
    busy: bool
    owned: bool


def tenant_ids(database: Database) -> list[int]:
    """Every tenant of the store."""
    with database.autocommit() as connection:
        return [row[0] for row in rows(connection, _SQL["tenants"])]


def index_states(database: Database) -> list[IndexState]:
    """The vector indexes there are, of every tenant."""
    with database.autocommit() as connection:
        return [IndexState(*row) for row in rows(connection, _SQL["indexes"])]


@contextmanager
def snapshot(database: Database, scope: Scope) -> Iterator[Connection]:
    """A transaction that reads one moment of the store, and cannot write."""
    with database.transaction(scope, snapshot=True) as connection:
        connection.execute(_SQL["room"])
        yield connection


def outside(database: Database, scope: Scope) -> Findings:
    """What collections of a tenant lack, documents without a version, and cached embeddings that are no embeddings."""
    found = Findings()
    params = {"tenant_id": scope.tenant_id}
    with snapshot(database, scope) as connection:
        for name, (number, noun) in _OUTSIDE.items():
            count, first = rows(connection, "SELECT count(*), min(" + number + ") " + _SQL[name], params)[0]
            found.add(name, count, f"{noun} {first}")
        wrong = rows(connection, "SELECT count(*) " + _SQL["wrong_cached_embeddings"], params)[0][0]
        found.add("embedding_cache", wrong)
        found.add("texts", rows(connection, "SELECT count(*) " + _SQL["unowned_texts"], params)[0][0])
        count, first = rows(connection, "SELECT count(*), min(i.fact_id) " + _SQL["wrong_fact_vectors"], params)[0]
        found.add("fact_vectors", count, f"fact {first}")
        for number in damaged_originals(connection, scope):
            found.add("originals", 1, f"the one with the SHA-256 {number}")
    return found


@dataclass(frozen=True, slots=True)
class MisembeddedFact:
    """A fact whose vector is to be made anew, by the model of its conversation."""

    fact_id: int
    model: str
    role: str
    statement: str


def misembedded_facts(database: Database, scope: Scope) -> list[MisembeddedFact]:
    """The facts of a tenant whose vectors are not of their conversations' models."""
    columns: LiteralString = "SELECT i.fact_id, s.embedding_model, f.role, f.statement "
    with snapshot(database, scope) as connection:
        found = rows(connection, columns + _SQL["wrong_fact_vectors"], {"tenant_id": scope.tenant_id})
    return [MisembeddedFact(*row) for row in found]


class CollectionSnapshot:
    """One collection at one moment.

    Args:
        connection: Of `snapshot`.
        scope: Whose collection.
        collection: As it was found; its counters are read again.
    """

    def __init__(self, connection: Connection, scope: Scope, collection: Collection) -> None:
        self._connection = connection
        self._params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "space_id": collection.space_id,
        }

    def exists(self) -> bool:
        """Whether the collection was not deleted meanwhile."""
        return bool(self._rows(_SQL["counters"]))

    def rows_beside(self) -> Findings:
        """What of versions and of the rows beside chunks is missing, wrong or stale."""
        found = Findings()
        for name in ("version_copies", "version_copies_of_acronyms", "overlapping_versions"):
            count, first = self._rows("SELECT count(*), min(v.version_id) " + COPIES[name])[0]
            found.add(name.removesuffix("_of_acronyms"), count, f"version {first}")
        for chunks, conditions in (
            (_SQL["chunks_with_rows"], {name: _SQL[name] for name in _BESIDE_CHUNKS}),
            (
                _SQL["vectors_elsewhere"],
                {"stray_vectors": _SQL["stray_vectors"], "stale_vector_copies": _SQL["stale_copies_elsewhere"]},
            ),
        ):
            wanted: LiteralString = ", ".join(
                "count(*) FILTER (WHERE " + wrong + "), min(c.chunk_id) FILTER (WHERE " + wrong + ")"
                for wrong in conditions.values()
            )
            counts = self._rows("SELECT " + wanted + " " + chunks)[0]
            for at, name in enumerate(conditions):
                found.add(name, counts[2 * at], f"chunk {counts[2 * at + 1]}")
        return found

    def broken(self, findings: Findings) -> Iterator[tuple[int, int, Part]]:
        """Versions and chunks of which a part is missing or wrong, as `rows_beside` found it."""
        for name, part in _BESIDE_CHUNKS.items():
            if part is not None and findings.counts[name]:
                query = "SELECT v.version_id, c.chunk_id " + _SQL["chunks_with_rows"] + " AND (" + _SQL[name] + ")"
                yield from ((version_id, chunk_id, part) for version_id, chunk_id in self._rows(query))

    def counters(self) -> Findings:
        """Whether the collection's counters and statistics are those of its rows."""
        found = Findings()
        documents, chunks, real_documents, real_chunks, unnoticed = self._rows(_SQL["counters"])[0]
        said = f"{documents:,} documents and {chunks:,} chunks, and there are {real_documents:,} and {real_chunks:,}"
        found.add("counters", (documents != real_documents) + (chunks != real_chunks), said)
        found.add("counters", unnoticed, "a document would expire unnoticed")
        terms = self._rows(_SQL["term_statistics"])[0][0] + self._rows(_SQL["term_totals"])[0][0]
        found.add("term_statistics", terms)
        return found

    def reference_length(self) -> float | None:
        """The reference length that is kept."""
        length: float | None = self._rows(_SQL["reference_length"])[0][0]
        return length

    def versions(self) -> Iterator[StoredVersion]:
        """Every version with its text and chunks, in bounded memory."""
        after = 0
        while True:
            page = self._rows(_SQL["versions"], after=after, limit=_PAGE_VERSIONS)
            for part in _of_bounded_size(page):
                yield from _versions(self._connection, self._params["tenant_id"], part)
            if len(page) < _PAGE_VERSIONS:
                return
            after = page[-1][1]

    def terms(self, *, deep: bool) -> Iterator[list[StoredTerms]]:
        """Lexical rows in lists: all of them, or without ``deep`` some, chosen by hash."""
        for page in self._pages("lexical", deep=deep):
            weights = sparsevecs([row[7] for row in page])
            yield [_terms(row, *own) for row, own in zip(page, weights, strict=True)]

    def token_vectors(self, *, deep: bool) -> Iterator[tuple[int, int, bytes]]:
        """Chunks, their versions and packed token vectors: all of them, or without ``deep`` some, chosen by hash."""
        for page in self._pages("tokens", deep=deep):
            yield from ((row[0], row[1], bytes(row[2])) for row in page)

    def _pages(self, name: str, *, deep: bool) -> Iterator[list[TupleRow]]:
        if not deep:
            yield self._rows(_SQL[f"{name}_sample"], limit=SAMPLE_ROWS)
            return
        after = 0
        while page := self._rows(_SQL[f"{name}_page"], after=after, limit=_PAGE_ROWS):
            yield page
            after = page[-1][0]

    def _rows(self, query: LiteralString, **more: int) -> list[TupleRow]:
        return rows(self._connection, query, self._params | more)


def read_versions(connection: Connection, scope: Scope, version_ids: Sequence[int]) -> list[StoredVersion]:
    """Given versions with their texts and chunks; those that are gone are left out."""
    params = {"tenant_id": scope.tenant_id, "version_ids": list(version_ids)}
    return list(_versions(connection, scope.tenant_id, rows(connection, _SQL["versions_by_id"], params)))


def _of_bounded_size(page: Sequence[TupleRow]) -> Iterator[list[TupleRow]]:
    """The rows of versions in lists whose chunks fit into memory, as far as their counts can be believed."""
    part: list[TupleRow] = []
    chunks = 0
    for row in page:
        if part and chunks + row[4] > _PAGE_CHUNKS:
            yield part
            part, chunks = [], 0
        part.append(row)
        chunks += row[4]
    if part:
        yield part


def _versions(connection: Connection, tenant_id: int, page: Sequence[TupleRow]) -> Iterator[StoredVersion]:
    params = {"tenant_id": tenant_id, "version_ids": [row[1] for row in page]}
    contents: dict[int, str] = dict(rows(connection, _SQL["contents"], params))
    chunks: dict[int, list[StoredChunk]] = {}
    for row in rows(connection, _SQL["chunks"], params):
        chunks.setdefault(row[0], []).append(_chunk(row))
    for row in page:
        document_id, version_id, uri, title, chunk_count, content_hash, current, analysed_as = row
        yield StoredVersion(
            document_id=document_id,
            version_id=version_id,
            uri=uri,
            title=title,
            chunk_count=chunk_count,
            content_hash=bytes(content_hash),
            current=current,
            content=contents.get(version_id),
            chunks=chunks.get(version_id, []),
            analysed_as=analysed_as,
        )


def _chunk(row: TupleRow) -> StoredChunk:
    _, chunk_id, position, start, end, parent_start, parent_end, key, section, text, context, metadata = row
    parent = None if parent_start is None or parent_end is None else (parent_start, parent_end)
    chunk = Chunk(
        text=text,
        position=position,
        start_offset=start,
        end_offset=end,
        section=tuple(section),
        parent=parent,
        metadata=metadata,
        context=context,
    )
    return StoredChunk(chunk_id, chunk, bytes(key))


def _terms(row: TupleRow, indices: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> StoredTerms:
    chunk_id, version_id, title, section, text, length, lexemes, _, context, analysed_as, metadata = row
    own = indices + 1
    consistent = len(lexemes) == len(own) and bool((np.array(lexemes, dtype=np.int64) == own).all())
    weighed = LexicalRow(length, own, weights)
    return StoredTerms(
        chunk_id, version_id, title, tuple(section), text, weighed, consistent, context, analysed_as, metadata
    )
