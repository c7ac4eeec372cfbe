"""Writing documents: a batch of them in one transaction, each whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from recollect.errors import NotFoundError
from recollect.model import Chunk, Document, Scope
from recollect.store.batch_copy import NewVersion, copy_all
from recollect.store.collections import Collection
from recollect.store.database import Connection, Database, rows
from recollect.store.documents import Source
from recollect.store.search import Floats, LexicalRow
from recollect.store.sql import queries

_SQL = queries("writer")

WriteStatus = Literal["added", "updated", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDocument:
    """A document with everything that is stored of it.

    Attributes:
        document: Its ``source`` and ``title`` are set.
        chunks: In order of position.
        embedding_keys: SHA-256 of what was embedded of each chunk.
        embeddings: float32 array of shape (len(chunks), dimension), rows of unit length.
        lexical: One row a chunk.
        fingerprint: How it was read, cut and embedded.
        acronyms: (acronym, long form, occurrences) of those that its content explains, none twice.
        token_vectors: Packed, one a chunk, where the collection asks for them.
    """

    document: Document
    chunks: Sequence[Chunk]
    embedding_keys: Sequence[bytes]
    embeddings: Floats
    lexical: Sequence[LexicalRow]
    fingerprint: str
    acronyms: Sequence[tuple[str, str, int]] = ()
    token_vectors: Sequence[bytes] | None = None


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """What became of a prepared document."""

    document_id: int
    version: int
    status: WriteStatus
    chunk_count: int


@dataclass(frozen=True, slots=True)
class _Latest:
    version_id: int
    version: int
    current: bool
    content_hash: bytes
    fingerprint: str
    chunk_count: int
    file_hash: bytes | None


class _ErasedMeanwhileError(Exception):
    """A document was erased between the statement that found it and the one that locked it."""


class DocumentWriter:
    """Stores, closes and erases documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(
        self,
        scope: Scope,
        collection: Collection,
        source: Source,
        batch: Sequence[PreparedDocument],
        *,
        force: bool = False,
    ) -> list[WrittenDocument]:
        """Store a batch in one transaction: after it all of its documents can be found, or none.

        A document whose current version has the same content and fingerprint is left alone (another process may
        have stored it meanwhile), unless ``force``. Otherwise the current version is closed and a new one begins.
        The URIs of a batch must differ.

        Returns:
            What became of each document, in the order of ``batch``.

        Raises:
            NotFoundError: The collection was deleted meanwhile.
        """
        while batch:
            try:
                return self._write_once(scope, collection, source, batch, force=force)
            except _ErasedMeanwhileError:
                continue
        return []

    def _write_once(
        self,
        scope: Scope,
        collection: Collection,
        source: Source,
        batch: Sequence[PreparedDocument],
        *,
        force: bool,
    ) -> list[WrittenDocument]:
        with self._database.transaction(scope) as connection:
            ids = self._lock(connection, scope, collection, source, [_uri(item) for item in batch])
            latest = self._latest(connection, scope, list(ids.values()))
            written: list[WrittenDocument] = []
            fresh: list[tuple[PreparedDocument, int, int]] = []
            for item in batch:
                document_id = ids[_uri(item)]
                old = latest.get(document_id)
                if old and not force and _same(old, item):
                    self._restamp(connection, scope, old, item)
                    written.append(WrittenDocument(document_id, old.version, "unchanged", old.chunk_count))
                    continue
                version = old.version + 1 if old else 1
                status: WriteStatus = "updated" if old and old.current else "added"
                fresh.append((item, document_id, version))
                written.append(WrittenDocument(document_id, version, status, len(item.chunks)))
            if fresh:
                closing = [latest[d].version_id for _, d, _ in fresh if d in latest and latest[d].current]
                self._replace(connection, scope, collection, fresh, closing)
        return written

    def close(self, scope: Scope, document_ids: Sequence[int]) -> int:
        """Close the current versions of documents: they leave every search of the present, but stay for history.

        Returns:
            How many documents were current and are not any more.
        """
        with self._database.transaction(scope) as connection:
            closed = _close_documents(connection, scope, document_ids)
            _count_closed(connection, scope, closed)
        return len(closed)

    def erase(self, scope: Scope, document_ids: Sequence[int]) -> int:
        """Remove documents physically: every version, chunk, vector, lexical row and cached embedding.

        Returns:
            How many documents there were.
        """
        with self._database.transaction(scope) as connection:
            closed = _close_documents(connection, scope, document_ids)
            params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
            connection.execute(_SQL["erase_cached"], params)
            erased = connection.execute(_SQL["erase_documents"], params).rowcount
            _count_closed(connection, scope, closed)
        return erased

    def settle(self, scope: Scope) -> None:
        """Let searches find new words as fast as old ones; called once after many writes."""
        with self._database.single_reads(scope) as connection:
            connection.execute(_SQL["settle"])

    @staticmethod
    def _lock(
        connection: Connection, scope: Scope, collection: Collection, source: Source, uris: list[str]
    ) -> dict[str, int]:
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "source_id": source.source_id,
            "uris": uris,
        }
        if not rows(connection, _SQL["hold_collection"], params):
            raise NotFoundError(f"The collection {collection.name!r} was deleted meanwhile: the rest was not stored.")
        connection.execute(_SQL["ensure_documents"], params)
        ids: dict[str, int] = dict(rows(connection, _SQL["lock_documents"], params))
        if len(ids) < len(uris):
            # Begun anew rather than repeated here: locks taken out of order could block two writers for good.
            raise _ErasedMeanwhileError
        return ids

    @staticmethod
    def _latest(connection: Connection, scope: Scope, document_ids: list[int]) -> dict[int, _Latest]:
        # A statement of its own, after the lock: its snapshot holds what the lock waited for.
        params = {"tenant_id": scope.tenant_id, "document_ids": document_ids}
        return {row[0]: _Latest(*row[1:]) for row in rows(connection, _SQL["latest_versions"], params)}

    @staticmethod
    def _restamp(connection: Connection, scope: Scope, old: _Latest, item: PreparedDocument) -> None:
        if item.document.file_hash is not None and item.document.file_hash != old.file_hash:
            params = {
                "tenant_id": scope.tenant_id,
                "version_id": old.version_id,
                "file_hash": item.document.file_hash,
            }
            connection.execute(_SQL["restamp"], params)

    @staticmethod
    def _replace(
        connection: Connection,
        scope: Scope,
        collection: Collection,
        fresh: Sequence[tuple[PreparedDocument, int, int]],
        closing: list[int],
    ) -> None:
        chunk_total = sum(len(item.chunks) for item, _, _ in fresh)
        allocation = {"versions": len(fresh), "chunks": chunk_total}
        now = _moment(connection, scope, [document_id for _, document_id, _ in fresh])
        version_ids, chunk_ids = rows(connection, _SQL["allocate"], allocation)[0]
        closed = _close(connection, scope, closing, now)
        numbers = iter(chunk_ids)
        versions = [
            NewVersion(item, document_id, version_id, version, [next(numbers) for _ in item.chunks])
            for (item, document_id, version), version_id in zip(fresh, version_ids, strict=True)
        ]
        copy_all(connection, scope, collection, versions, now)
        closed_chunks = sum(chunk_count for _, chunk_count in closed)
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection.collection_id,
            "documents": len(fresh) - len(closed),
            "chunks": chunk_total - closed_chunks,
            "pending": chunk_total + closed_chunks,
        }
        connection.execute(_SQL["count"], params)


def _uri(item: PreparedDocument) -> str:
    if item.document.source is None:
        raise ValueError("A prepared document has a source.")
    return item.document.source


def _same(old: _Latest, item: PreparedDocument) -> bool:
    return old.current and old.fingerprint == item.fingerprint and old.content_hash == item.document.content_hash


def _moment(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> datetime:
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    moment: datetime = rows(connection, _SQL["moment"], params)[0][0]
    return moment


def _close_documents(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Lock documents and close their current versions; returns (collection_id, chunk_count) of each closed one."""
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    connection.execute(_SQL["hold_collections_of"], params)
    connection.execute(_SQL["lock_documents_by_id"], params)
    version_ids = [row[0] for row in rows(connection, _SQL["current_version_ids"], params)]
    return _close(connection, scope, version_ids, _moment(connection, scope, document_ids))


def _close(connection: Connection, scope: Scope, version_ids: list[int], now: datetime) -> list[tuple[int, int]]:
    """Close versions; returns (collection_id, chunk_count) of each."""
    if not version_ids:
        return []
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "now": now}
    closed = rows(connection, _SQL["close_versions"], params)
    connection.execute(_SQL["close_vectors"], params)
    connection.execute(_SQL["close_lexical"], params)
    return [(row[0], row[1]) for row in closed]


def _count_closed(connection: Connection, scope: Scope, closed: Sequence[tuple[int, int]]) -> None:
    documents = Counter(collection_id for collection_id, _ in closed)
    chunks: Counter[int] = Counter()
    for collection_id, chunk_count in closed:
        chunks[collection_id] += chunk_count
    for collection_id in sorted(documents):
        params = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection_id,
            "documents": -documents[collection_id],
            "chunks": -chunks[collection_id],
            "pending": chunks[collection_id],
        }
        connection.execute(_SQL["count"], params)
