"""Reading a store as it stands, to be checked: nothing here changes anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, LiteralString, TypeAlias

import numpy as np
from psycopg.rows import TupleRow

from recollect.model import Chunk, Scope
from recollect.model.collection import Collection
from recollect.store.database import Connection, Database, rows
from recollect.store.files import damaged_originals
from recollect.store.search import LexicalRow
from recollect.store.sql import queries
from recollect.store.wire import sparsevecs

#: Every check, in the order in which they are reported, with what it counts.
CHECKS = {
    "tables": "tables whose files cannot be read: restore a backup (recollect db restore); until then nothing else is "
    "checked",
    "schema": "parts of the schema that are missing, changed or damaged",
    "stateless_collections": "collections without counters",
    "orphaned_documents": "documents without a version",
    "missing_access_lists": "access lists that documents or collections have, and that do not exist: after a repair "
    "their documents are for the collection's owners alone, until somebody is granted them anew",
    "embedding_cache": "cached embeddings of a wrong dimension, not of unit length, or of texts that no chunk has",
    "originals": "originals whose bytes do not have their hash (erase the document and upload it again, or restore a "
    "backup), or that no version has",
    "texts": "texts that no version has",
    "fact_vectors": "facts whose vector is not of their conversation's model: until a repair they are found by words",
    "orphaned_indexes": "vector indexes of no collection",
    "version_copies": "versions with another access list or id than their document's, acronyms in another collection "
    "than their version",
    "overlapping_versions": "versions that were not closed when the next one began",
    "missing_contents": "versions without their text",
    "content_hashes": "versions whose text does not have its hash",
    "chunk_counts": "versions that have more or fewer chunks than were written",
    "chunk_positions": "versions whose chunks are not numbered from 0 without gaps",
    "chunk_texts": "chunks whose text is not the document's at their offsets",
    "chunk_hashes": "chunks whose hash is not that of what is indexed of them",
    "missing_vectors": "chunks without a vector",
    "wrong_vectors": "vectors of a wrong dimension, or not of unit length",
    "stray_vectors": "vectors of a space that their collection does not have, or wrong ones in a space beside the one "
    "that searches use: a repair removes them",
    "stale_vector_copies": "vectors with another version, time or access list than their version",
    "missing_lexical_rows": "chunks without a lexical row",
    "stale_lexical_copies": "lexical rows with another collection, version, time or access list than their version",
    "reference_length": "collections whose weights were made for another reference length than the one kept",
    "lexical_rows": "lexical rows that are not what their text gives",
    "missing_token_vectors": "chunks without token vectors, in a collection that stores them",
    "token_vectors": "token vectors that cannot be read",
    "counters": "counters of documents and chunks, or times of the next expiry, that are wrong",
    "term_statistics": "terms whose frequency is not that of the chunks",
    "dense_index": "vector indexes that are missing although due, or unusable",
}

#: How many of the things that cannot be mended are named.
MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyCheck:
    """One check of a verification.

    Attributes:
        name: One of `CHECKS`.
        found: How many of what the check counts there were.
        repaired: How many of them are mended.
        detail: What is counted and how it was looked for, an instance, and what to do about those that are left.
    """

    name: str
    found: int
    repaired: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        checks: Every check that was made.
        collections: Collections that were looked at.
        chunks: Their current chunks.
    """

    checks: tuple[VerifyCheck, ...]
    collections: int
    chunks: int

    @property
    def clean(self) -> bool:
        """Whether there is nothing wrong, or nothing any more."""
        return all(check.found == check.repaired for check in self.checks)


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """How far a verification has come.

    Attributes:
        stage: What it is at; each stage may come again, and begins at nothing.
        done: Chunks compared, or versions mended.
        total: How many there are of them.
    """

    stage: Literal["checking", "mending"]
    done: int
    total: int


@dataclass(slots=True)
class Findings:
    """What was found so far, by check.

    Attributes:
        counts: How many.
        instances: One of them, in words.
        notes: What a person should know about a check.
    """

    counts: Counter[str] = field(default_factory=Counter)
    instances: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, count: int, instance: str = "") -> None:
        """Count something; the first instance is kept."""
        if name not in CHECKS:
            raise KeyError(name)
        if count:
            self.counts[name] += count
            if instance:
                self.instances.setdefault(name, instance)

    def note(self, name: str, text: str) -> None:
        """Say something about a check, once."""
        said = self.notes.setdefault(name, [])
        if text not in said and len(said) < MAX_NAMED:
            said.append(text)

    def merge(self, other: Findings) -> None:
        """Take over what another one holds."""
        for name, count in other.counts.items():
            self.add(name, count, other.instances.get(name, ""))
        for name, texts in other.notes.items():
            for text in texts:
                self.note(name, text)


_SQL = queries("verify")

#: Rows compared without ``deep``, a collection and a table.
SAMPLE_ROWS = 1_000

# What is in memory at a time.
_PAGE_VERSIONS = 256
_PAGE_CHUNKS = 4_096
_PAGE_ROWS = 2_048


# What is checked: rows that are counted in one pass. What one is called and numbered by, where they are, and by its
# check what is wrong with some. First what belongs to no one collection, then what does.
_Rows: TypeAlias = tuple[str, LiteralString, Mapping[str, LiteralString]]
_NUMBERS: dict[str, LiteralString] = {
    "collection": "p.collection_id",
    "of collection": "u.collection_id",
    "document": "d.document_id",
    "fact": "i.fact_id",
    "version": "v.version_id",
    "chunk": "c.chunk_id",
    "": "NULL::int",
}
_OUTSIDE: tuple[_Rows, ...] = (
    ("collection", _SQL["stateless_collections"], {"stateless_collections": "true"}),
    ("of collection", _SQL["missing_access_lists"], {"missing_access_lists": "true"}),
    ("document", _SQL["orphaned_documents"], {"orphaned_documents": "true"}),
    ("", _SQL["wrong_cached_embeddings"], {"embedding_cache": "true"}),
    ("", _SQL["unowned_texts"], {"texts": "true"}),
    ("fact", _SQL["wrong_fact_vectors"], {"fact_vectors": "true"}),
)
_VECTORS = ("missing_vectors", "wrong_vectors", "stale_vector_copies")
_TERMS = ("missing_lexical_rows", "stale_lexical_copies", "missing_token_vectors")
_ELSEWHERE = {"stray_vectors": _SQL["stray_vectors"], "stale_vector_copies": _SQL["stale_copies_elsewhere"]}
_OTHER_COPIES: LiteralString = _SQL["other_readers"] + " OR " + _SQL["other_given_ids"]
_INSIDE: tuple[_Rows, ...] = (
    ("version", _SQL["versions_with_documents"], {"version_copies": _OTHER_COPIES}),
    ("version", _SQL["wrong_acronym_copies"], {"version_copies": "true"}),
    ("version", _SQL["overlapping_versions"], {"overlapping_versions": "true"}),
    ("chunk", _SQL["chunks_with_rows"], {name: _SQL[name] for name in _VECTORS + _TERMS}),
    ("chunk", _SQL["vectors_elsewhere"], _ELSEWHERE),
)

# What differs from what it is copied from; and what is made anew with its version, with the model or without it.
_COPIES = ("version_copies", "overlapping_versions", "stale_vector_copies", "stale_lexical_copies")
_REMADE = {"missing_vectors": True, "wrong_vectors": True, "missing_lexical_rows": False, "missing_token_vectors": True}


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
    analysed_as: str | None = None
    content: str | None = None
    chunks: Sequence[StoredChunk] = ()


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """A lexical row with the chunk that it was made of.

    Attributes:
        consistent: Whether its lexemes are those that have a weight.
        analysed_as: The language that its document's words were counted in; None: the collection's.
    """

    chunk_id: int
    version_id: int
    title: str
    chunk: Chunk
    row: LexicalRow
    consistent: bool
    analysed_as: str | None = None


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
    """What collections of a tenant lack, documents without a version, and what else belongs to no collection."""
    with snapshot(database, scope) as connection:
        found = _counted(connection, {"tenant_id": scope.tenant_id}, _OUTSIDE)
        for number in damaged_originals(connection, scope):
            found.add("originals", 1, f"the one with the SHA-256 {number}")
    return found


def misembedded_facts(database: Database, scope: Scope) -> list[TupleRow]:
    """The facts of a tenant whose vectors are not of their conversations' models: ids, models, roles, statements."""
    columns: LiteralString = "SELECT i.fact_id, s.embedding_model, f.role, f.statement "
    with snapshot(database, scope) as connection:
        return rows(connection, columns + _SQL["wrong_fact_vectors"], {"tenant_id": scope.tenant_id})


def copied_wrongly(connection: Connection, params: dict[str, Any]) -> list[int]:
    """The documents of a collection of which something stands in two places and differs."""
    connection.execute(_SQL["room"])
    found = {
        row[0]
        for _, source, checks in _INSIDE
        for name, wrong in checks.items()
        if name in _COPIES
        for row in rows(connection, "SELECT DISTINCT v.document_id " + source + " AND (" + wrong + ")", params)
    }
    return sorted(found)


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
        return bool(self._rows(_SQL["reference_length"]))

    def rows_beside(self) -> Findings:
        """What of versions and of the rows beside chunks is missing, wrong or stale."""
        return _counted(self._connection, self._params, _INSIDE)

    def remade(self, findings: Findings) -> Iterator[tuple[int, bool]]:
        """Versions of which a part is missing or wrong as `rows_beside` found it; and whether that needs the model."""
        for name in _REMADE.keys() & findings.counts.keys():
            query = "SELECT DISTINCT v.version_id " + _SQL["chunks_with_rows"] + " AND (" + _SQL[name] + ")"
            yield from ((version_id, _REMADE[name]) for (version_id,) in self._rows(query))

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
        while page := self._rows(_SQL["versions"], after=after, limit=_PAGE_VERSIONS):
            after = page[-1][1]
            while page:
                # As many as have chunks that fit into memory, as far as their counts can be believed.
                totals = np.cumsum([row[4] for row in page])
                fitting = max(1, int(np.searchsorted(totals, _PAGE_CHUNKS, side="right")))
                yield from _versions(self._connection, self._params["tenant_id"], page[:fitting])
                page = page[fitting:]

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


def _counted(connection: Connection, params: dict[str, Any], checks: Sequence[_Rows]) -> Findings:
    """What is wrong, counted by a statement for all checks of the same rows."""
    found = Findings()
    for noun, source, conditions in checks:
        first: LiteralString = "min(" + _NUMBERS[noun] + ")"
        wanted: LiteralString = ", ".join(
            "count(*) FILTER (WHERE " + wrong + "), " + first + " FILTER (WHERE " + wrong + ")"
            for wrong in conditions.values()
        )
        told = rows(connection, "SELECT " + wanted + " " + source, params)[0]
        for at, name in enumerate(conditions):
            found.add(name, told[2 * at], f"{noun} {told[2 * at + 1]}" if noun else "")
    return found


def _versions(connection: Connection, tenant_id: int, page: Sequence[TupleRow]) -> Iterator[StoredVersion]:
    params = {"tenant_id": tenant_id, "version_ids": [row[1] for row in page]}
    contents: dict[int, str] = dict(rows(connection, _SQL["contents"], params))
    chunks: dict[int, list[StoredChunk]] = {}
    for version_id, chunk_id, position, start, end, *parent, key, section, text, context, metadata in rows(
        connection, _SQL["chunks"], params
    ):
        chunk = Chunk(
            text=text,
            position=position,
            start_offset=start,
            end_offset=end,
            section=tuple(section),
            parent=None if None in parent else (parent[0], parent[1]),
            metadata=metadata,
            context=context,
        )
        chunks.setdefault(version_id, []).append(StoredChunk(chunk_id, chunk, bytes(key)))
    for row in page:
        yield replace(StoredVersion(*row), content=contents.get(row[1]), chunks=chunks.get(row[1], []))


def _terms(row: TupleRow, indices: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> StoredTerms:
    chunk_id, version_id, title, section, text, length, lexemes, _, context, analysed_as, metadata = row
    own = indices + 1
    consistent = len(lexemes) == len(own) and bool((np.array(lexemes, dtype=np.int64) == own).all())
    chunk = Chunk(
        text=text,
        position=0,
        start_offset=0,
        end_offset=len(text),
        section=tuple(section),
        metadata=metadata,
        context=context,
    )
    return StoredTerms(chunk_id, version_id, title, chunk, LexicalRow(length, own, weights), consistent, analysed_as)
