"""Making a store agree with itself again: each change in a transaction, under the locks that writers take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from pgvector import HalfVector
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from recollect.model import Chunk, Document, Scope
from recollect.model.outline import Heading, PageSpan
from recollect.store.database import Connection, Database, rows
from recollect.store.search import Floats, LexicalRow, to_sparse
from recollect.store.sql import queries
from recollect.store.verification.reading import ORPHANS, StoredVersion, read_versions

if TYPE_CHECKING:
    from recollect.store.collections import Collection
    from recollect.store.writer import PreparedDocument

_SQL = queries("verify_repair")
_FOUND = queries("verify")
_WRITER = queries("writer")

# Documents changed in one transaction, and chunks listed by one statement.
_PAGE_DOCUMENTS = 500
_PAGE_CHUNKS = 10_000

# Rows of these are mended, not deleted.
_KEPT = {"stateless_collections", "sourceless_documents", "misfiled_documents", "missing_access_lists"}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chunk, and what is needed to make what is stored of it."""

    document_id: int
    version_id: int
    title: str
    chunk_id: int
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkParts:
    """What is stored anew of a chunk; None: it stays as it is."""

    document_id: int
    chunk_id: int
    key: bytes | None = None
    embedding: Floats | None = None
    lexical: LexicalRow | None = None
    token_vectors: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MendedText:
    """What a version says, as it must have been.

    Attributes:
        content: Its text.
        content_hash: Of the text.
        chunk_count: How many chunks it has.
        chunks: All of them in order: (chunk_id, chunk). None where they stay as they are.
    """

    content: str
    content_hash: bytes
    chunk_count: int
    chunks: Sequence[tuple[int, Chunk]]


class Mender:
    """Changes one tenant's rows.

    Args:
        database: The store's connections.
        scope: The tenant.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope
        self._tenant = {"tenant_id": scope.tenant_id}

    def mend_orphans(self) -> None:
        """Give documents back what they belong to, and delete what belongs to nothing."""
        with self._database.transaction(self._scope) as connection:
            connection.execute(_SQL["hold_collections"], self._tenant)
            connection.execute(_SQL["add_states"] + " " + _FOUND["stateless_collections"], self._tenant)
            self._lock_documents_of(connection, "sourceless_documents", "misfiled_documents")
            for statement in ("recover_source", "recover_documents", "adopt_sourceless", "file_documents"):
                connection.execute(_SQL[statement], self._tenant)
            # Last, because documents may have come from another collection.
            connection.execute(_SQL["add_access_lists"] + " " + _FOUND["missing_access_lists"], self._tenant)
            connection.execute(_SQL["touch_collections"], self._tenant)
        # One transaction each: none of them depends on another, and together they could be long.
        for _, condition, _, _ in ORPHANS:
            if condition not in _KEPT:
                with self._database.transaction(self._scope) as connection:
                    if condition == "orphaned_documents":
                        # A statement of its own before: the deletion then sees the version that a writer gave one.
                        self._lock_documents_of(connection, condition)
                    connection.execute("DELETE " + _FOUND[condition], self._tenant)
        with self._database.transaction(self._scope) as connection:
            connection.execute("DELETE " + _FOUND["wrong_cached_embeddings"], self._tenant)

    def mend_copies(self, collection: Collection) -> None:
        """Say beside versions, vectors and terms what their document and version say; close versions that overlap."""
        versions = ("wrong_version_copies", "overlapping_versions", "wrong_acronym_copies")
        steps: list[tuple[LiteralString, Sequence[str]]] = [
            (_FOUND[condition], ("close_overlapping", "copy_to_versions", "copy_to_acronyms")) for condition in versions
        ]
        beside = _FOUND["chunks_with_rows"]
        steps.append((beside + " AND (" + _FOUND["stale_vector_copies"] + ")", ("copy_to_vectors",)))
        steps.append((beside + " AND (" + _FOUND["stale_lexical_copies"] + ")", ("copy_to_lexical",)))
        for condition, statements in steps:
            for document_ids in self._document_pages(collection, condition):
                self._change(collection, document_ids, [_SQL[name] for name in statements])

    def chunks(self, collection: Collection, check: str) -> Iterator[list[int]]:
        """Chunks of which ``check`` (one of ``BESIDE_CHUNKS``) is true, in pages; what is mended meanwhile is left."""
        condition = _FOUND["chunks_with_rows"] + " AND (" + _FOUND[check] + ") "
        query = "SELECT c.chunk_id " + condition + _SQL["chunks_page"]
        return self._pages(query, collection, _PAGE_CHUNKS)

    def neighbourhood(self, chunk_ids: Sequence[int]) -> list[Neighbour]:
        """Chunks with those before and after them, by version and position."""
        params: dict[str, Any] = self._tenant | {"chunk_ids": list(chunk_ids)}
        with self._database.transaction(self._scope) as connection:
            return [_neighbour(row) for row in rows(connection, _SQL["neighbourhood"], params)]

    def contents(self, version_ids: Sequence[int]) -> dict[int, str]:
        """The texts of versions."""
        params: dict[str, Any] = self._tenant | {"version_ids": list(version_ids)}
        with self._database.transaction(self._scope) as connection:
            return dict(rows(connection, _FOUND["contents"], params))

    def version(self, version_id: int) -> StoredVersion | None:
        """A version as it is now; None where it is gone."""
        with self._database.transaction(self._scope) as connection:
            return next(iter(read_versions(connection, self._scope, [version_id])), None)

    def document(self, version: StoredVersion, content: str) -> Document:
        """The document that a version was, with another text: to be cut anew."""
        params = self._tenant | {"version_id": version.version_id}
        with self._database.transaction(self._scope) as connection:
            uri, title, mime_type, language, headings, pages = rows(connection, _SQL["document"], params)[0]
        return Document(
            content=content,
            source=uri,
            title=title,
            mime_type=mime_type,
            language=language,
            headings=tuple(Heading(*heading) for heading in headings or ()),
            pages=tuple(PageSpan(*page) for page in pages or ()),
        )

    def set_text(self, collection: Collection, version: StoredVersion, text: MendedText) -> None:
        """Store what a version says, and where its chunks stand in it."""
        params: dict[str, Any] = self._tenant | {"version_id": version.version_id}
        with self._changing(collection, [version.document_id], recount=True) as connection:
            self._set_version(connection, params, text)
            if not text.chunks:
                return
            connection.execute(_SQL["free_positions"], params)
            chunks = [
                self._tenant
                | {
                    "chunk_id": chunk_id,
                    "position": chunk.position,
                    "start": chunk.start_offset,
                    "end": chunk.end_offset,
                    "text": chunk.text,
                }
                for chunk_id, chunk in text.chunks
            ]
            connection.cursor().executemany(_SQL["set_chunk"], chunks)

    def rebuild(self, collection: Collection, version: StoredVersion, prepared: PreparedDocument) -> None:
        """Put other chunks in the place of a version's, with their rows in both arms."""
        params: dict[str, Any] = self._tenant | {"version_id": version.version_id}
        document = prepared.document
        text = MendedText(
            content=document.content,
            content_hash=document.content_hash,
            chunk_count=len(prepared.chunks),
            chunks=(),
        )
        with self._changing(collection, [version.document_id], recount=True) as connection:
            if not rows(connection, _SQL["state"], params):
                return  # erased meanwhile
            self._set_version(connection, params, text)
            connection.execute(_SQL["drop_chunks"], params)
            ids = [row[0] for row in rows(connection, _SQL["chunk_ids"], {"count": len(prepared.chunks)})]
            added = [
                params | _chunk_values(chunk_id, chunk, key)
                for chunk_id, chunk, key in zip(ids, prepared.chunks, prepared.embedding_keys, strict=True)
            ]
            connection.cursor().executemany(_SQL["add_chunk"], added)
            tokens: Sequence[bytes | None] = prepared.token_vectors or [None] * len(ids)
            parts = [
                ChunkParts(
                    document_id=version.document_id,
                    chunk_id=own,
                    embedding=vector,
                    lexical=lexical,
                    token_vectors=token,
                )
                for own, vector, lexical, token in zip(ids, prepared.embeddings, prepared.lexical, tokens, strict=True)
            ]
            self._put(connection, parts)
            self._count(connection, collection, len(ids) + len(version.chunks))

    def put_parts(self, collection: Collection, parts: Sequence[ChunkParts]) -> None:
        """Store what was made anew of chunks; those that are gone meanwhile are left out."""
        document_ids = sorted({part.document_id for part in parts})
        with self._changing(collection, document_ids) as connection:
            self._put(connection, parts)
            self._count(connection, collection, sum(part.lexical is not None for part in parts))

    def recount(self, collection: Collection) -> None:
        """Count the collection's documents and chunks anew."""
        with self._changing(collection, [], recount=True):
            pass

    def set_reference_length(self, collection: Collection, length: float) -> None:
        """Keep the reference length that the stored weights were made with."""
        params: dict[str, Any] = self._of(collection) | {"reference_length": length}
        with self._database.transaction(self._scope) as connection:
            connection.execute(_WRITER["hold_collection"], params)
            connection.execute(_SQL["set_reference_length"], params)

    def _of(self, collection: Collection) -> dict[str, Any]:
        return self._tenant | {"collection_id": collection.collection_id}

    @contextmanager
    def _changing(
        self, collection: Collection, document_ids: Sequence[int], *, recount: bool = False
    ) -> Iterator[Connection]:
        """A transaction that holds what a writer would; ``recount``: its documents are counted at the end."""
        params: dict[str, Any] = self._of(collection) | {"document_ids": list(document_ids)}
        with self._database.transaction(self._scope) as connection:
            connection.execute(_WRITER["hold_collection"], params)
            connection.execute(_WRITER["lock_documents_by_id"], params)
            yield connection
            if recount:
                connection.execute(_SQL["lock_state"], params)
                connection.execute(_SQL["recount"], params)

    def _change(self, collection: Collection, document_ids: list[int], statements: Sequence[LiteralString]) -> None:
        params: dict[str, Any] = self._tenant | {"document_ids": document_ids}
        with self._changing(collection, document_ids, recount=True) as connection:
            for statement in statements:
                connection.execute(statement, params)

    def _document_pages(self, collection: Collection, condition: LiteralString) -> Iterator[list[int]]:
        query = _SQL["documents_to_mend"] + " " + condition + " " + _SQL["documents_page"]
        return self._pages(query, collection, _PAGE_DOCUMENTS)

    def _pages(self, query: LiteralString, collection: Collection, limit: int) -> Iterator[list[int]]:
        after = 0
        while True:
            params = self._of(collection) | {"after": after, "limit": limit}
            with self._database.transaction(self._scope) as connection:
                connection.execute(_FOUND["room"])
                page = [row[0] for row in rows(connection, query, params)]
            if page:
                yield page
            if len(page) < limit:
                return
            after = page[-1]

    def _lock_documents_of(self, connection: Connection, *conditions: str) -> None:
        ids = [
            row[0]
            for condition in conditions
            for row in rows(connection, "SELECT d.document_id " + _FOUND[condition], self._tenant)
        ]
        connection.execute(_WRITER["lock_documents_by_id"], self._tenant | {"document_ids": ids})

    @staticmethod
    def _set_version(connection: Connection, params: dict[str, Any], text: MendedText) -> None:
        values = {"content": text.content, "content_hash": text.content_hash, "chunk_count": text.chunk_count}
        connection.execute(_SQL["set_content"], params | values)
        connection.execute(_SQL["set_version"], params | values)

    def _put(self, connection: Connection, parts: Sequence[ChunkParts]) -> None:
        values = [_part_values(self._scope.tenant_id, part) for part in parts]
        cursor = connection.cursor()
        for name, field in (
            ("set_key", "key"),
            ("set_vector", "embedding"),
            ("set_lexical", "lexemes"),
            ("set_tokens", "packed"),
        ):
            given = [one for one in values if one.get(field) is not None]
            if given:
                cursor.executemany(_SQL[name], given)

    def _count(self, connection: Connection, collection: Collection, pending: int) -> None:
        connection.execute(_SQL["touch"], self._of(collection) | {"pending": pending})


def _neighbour(row: TupleRow) -> Neighbour:
    document_id, version_id, title, position, chunk_id, section, text, start, end, parent_start, parent_end = row
    parent = None if parent_start is None or parent_end is None else (parent_start, parent_end)
    chunk = Chunk(
        text=text, position=position, start_offset=start, end_offset=end, section=tuple(section), parent=parent
    )
    return Neighbour(document_id, version_id, title, chunk_id, chunk)


def _chunk_values(chunk_id: int, chunk: Chunk, key: bytes) -> dict[str, Any]:
    parent_start, parent_end = chunk.parent or (None, None)
    return {
        "chunk_id": chunk_id,
        "position": chunk.position,
        "start": chunk.start_offset,
        "end": chunk.end_offset,
        "parent_start": parent_start,
        "parent_end": parent_end,
        "page": chunk.page,
        "token_count": chunk.token_count,
        "key": key,
        "section": list(chunk.section),
        "text": chunk.text,
        "metadata": Jsonb(dict(chunk.metadata)),
    }


def _part_values(tenant_id: int, part: ChunkParts) -> dict[str, Any]:
    values: dict[str, Any] = {
        "tenant_id": tenant_id,
        "chunk_id": part.chunk_id,
        "key": part.key,
        "packed": part.token_vectors,
    }
    if part.embedding is not None:
        values["embedding"] = HalfVector(part.embedding)
    if part.lexical is not None:
        values |= {
            "length": part.lexical.length,
            "lexemes": part.lexical.lexemes.tolist(),
            "weights": to_sparse(part.lexical.lexemes, part.lexical.weights),
        }
    return values
