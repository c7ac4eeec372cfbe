"""Every version of a document: which there are, what they said, and how an old one becomes the current one again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, LiteralString

from psycopg import sql

from recollect.errors import NotFoundError
from recollect.model import Document, IngestResult, Scope
from recollect.model.document import ExpiryPolicy
from recollect.model.history import DocumentHistory, VersionRecord
from recollect.store.closing import close_versions, lock_with_attached, moment_of_change, store_lifetimes
from recollect.store.database import Connection, Database, rows
from recollect.store.dense_index import INDEX_THRESHOLD_CHUNKS, room_for_index
from recollect.store.indexes import drop_concurrently, drop_leftovers, one_at_a_time
from recollect.store.logs import record
from recollect.store.rights import access_params, may_find, may_read_version
from recollect.store.sql import queries
from recollect.store.tuning import Machine

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.space import Space
    from recollect.store.collections import CollectionRepository


_SQL = queries("history")

_WRITER = queries("writer")


class HistoryRepository:
    """Reads and restores versions.

    Args:
        database: The store's connections.
        expiry: When a restored version expires.
    """

    def __init__(self, database: Database, *, expiry: ExpiryPolicy | None = None) -> None:
        self._database = database
        self._expiry = expiry or ExpiryPolicy()

    def versions(self, scope: Scope, document_id: int) -> DocumentHistory:
        """Every version of a document that was known at the scope's time or before.

        Raises:
            NotFoundError: There is no such document.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "document_id": document_id,
            "as_of": scope.as_of,
            **access_params(scope),
        }
        with self._database.transaction(scope) as connection:
            found = rows(connection, f"{_SQL['document']} AND {may_find(scope)}", params)
            readable: LiteralString = f"{_SQL['versions']} AND {may_read_version(scope)} {_SQL['in_order']}"
            versions = rows(connection, readable, params)
        if not found or not versions:
            raise NotFoundError(f"There is no document {document_id}. `recollect documents list` shows what there is.")
        fields = list(VersionRecord.__dataclass_fields__)
        known = tuple(
            VersionRecord(**{**dict(zip(fields, row, strict=True)), "tags": tuple(row[-1])}) for row in versions
        )
        document_id, source, collection, given_id = found[0]
        return DocumentHistory(
            document_id=document_id,
            source=source,
            collection=collection,
            department=known[-1].department,
            versions=known,
            id=given_id,
        )

    def content(self, scope: Scope, document_id: int, version: int) -> str:
        """What a version of a document said.

        Raises:
            NotFoundError: There is no such version.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "document_id": document_id,
            "version": version,
            **access_params(scope),
        }
        found = self._database.read(scope, f"{_SQL['content']} AND {may_read_version(scope)}", params)
        if not found:
            raise _missing(document_id, version)
        content: str = found[0][0]
        return content

    def span(self, scope: Scope, collection_ids: Sequence[int]) -> tuple[datetime, datetime] | None:
        """When what the scope's principal may read of collections first became known, and when it last changed.

        Returns:
            Both moments; None where there is nothing.
        """
        params = {
            "tenant_id": scope.tenant_id,
            "collection_ids": list(collection_ids),
            **access_params(scope),
        }
        first, last = self._database.read(scope, f"{_SQL['span']} AND {may_read_version(scope)}", params)[0]
        return None if first is None else (first, last)

    def known_at(self, scope: Scope, version_ids: Sequence[int], moment: datetime) -> set[int]:
        """Which of these versions were known at a moment."""
        params = {"tenant_id": scope.tenant_id, "version_ids": list(version_ids), "at": moment}
        return {row[0] for row in self._database.read(scope, _SQL["known_at"], params)}

    def restore(self, scope: Scope, document_id: int, version: int, *, actor: str) -> IngestResult:
        """Make what an old version said the document's newest version; nothing is computed anew.

        Title, text, metadata, language and dates are the old version's. Department, tags and grants stay as they are.
        What was attached to it then, and was deleted with it, comes back too.

        Args:
            scope: Whose document.
            document_id: Current or deleted.
            version: Which one. The current version is left alone.
            actor: Who asks, for the audit.

        Returns:
            What became of the document: ``updated``, ``added`` where it had been deleted, or ``unchanged``.

        Raises:
            NotFoundError: There is no such version.
        """
        with self._database.transaction(scope) as connection:
            lock_with_attached(connection, scope, [document_id])
            # Before the versions change: what was deleted with this one is told by the moment.
            params = {"tenant_id": scope.tenant_id, "document_id": document_id, "version": version}
            attached = rows(
                connection,
                f"{_SQL['attached_then']} AND {may_read_version(scope)} {_SQL['each_once']}",
                {**params, **access_params(scope)},
            )
            restored = self._restore(connection, scope, document_id, version, actor=actor)
            if restored.status != "unchanged":
                for attached_id, its_version in attached:
                    self._restore(connection, scope, attached_id, its_version, actor=actor)
        return restored

    def _restore(
        self, connection: Connection, scope: Scope, document_id: int, version: int, *, actor: str
    ) -> IngestResult:
        """As `restore`, of one locked document."""
        params: dict[str, Any] = {"tenant_id": scope.tenant_id, "document_ids": [document_id]}
        latest = rows(connection, _WRITER["latest_versions"], params)
        if not latest:
            raise _missing(document_id, version)
        _, latest_id, newest, current, *_ = latest[0]
        params |= {"document_id": document_id, "version": version, "latest_id": latest_id}
        readable: LiteralString = f"{_SQL['old_version']} AND {may_read_version(scope)}"
        old = rows(connection, readable, {**params, **access_params(scope)})
        if not old:
            raise _missing(document_id, version)
        old_id, collection_id, chunk_count, tags, access_id = old[0]
        if current and newest == version:
            return IngestResult(document_id, version, "unchanged", chunk_count)
        params |= {"old_id": old_id, "collection_id": collection_id, "tags": tags, "access_id": access_id}
        self._copy(connection, scope, params, chunk_count, closing=[latest_id] if current else [])
        details = {"document_id": document_id, "restored_version": version, "version": newest + 1}
        record(connection, scope, action="restore", actor=actor, details=details)
        return IngestResult(document_id, newest + 1, "updated" if current else "added", chunk_count)

    def _copy(
        self, connection: Connection, scope: Scope, params: dict[str, Any], chunk_count: int, *, closing: list[int]
    ) -> None:
        now = moment_of_change(connection, scope, params["document_ids"])
        version_id = rows(connection, _SQL["allocate"])[0][0]
        params = {**params, "now": now, "version_id": version_id}
        closed = close_versions(connection, scope, closing, now)
        for statement in ("restore_version", "restore_content", "restore_original", "restore_bands", "restore_chunks"):
            connection.execute(_SQL[statement], params)
        lifetime = self._expiry.lifetime(Document(content="", tags=tuple(params["tags"])))
        lifetimes = {} if lifetime is None else {version_id: lifetime}
        closed_chunks = sum(count for _, count in closed)
        counted = {
            **params,
            "documents": 1 - len(closed),
            "chunks": chunk_count - closed_chunks,
            "pending": chunk_count + closed_chunks,
            "next_expiry": store_lifetimes(connection, scope, lifetimes, since=now),
            "languages": [],
        }
        connection.execute(_WRITER["count"], counted)
        connection.execute(_WRITER["require_quota"], counted)


def _missing(document_id: int, version: int) -> NotFoundError:
    return NotFoundError(
        f"The document {document_id} has no version {version}. `recollect documents history {document_id}` shows them."
    )


# Indexes of a collection's closed rows, made in closed-row segments once enough has been closed.
#
# A segment covers the rows that were closed in a stretch of time. It is made when that time is over, so that no
# writer has to keep it up; what is closed later waits for the next one and is compared one by one until then. Small
# segments are replaced by one that covers their time too.


_INDEX_SQL = queries("past")

_SPACES = queries("spaces")

_WHERE = sql.SQL(
    "WHERE tenant_id = {tenant_id} AND {column} = {number} "
    "AND known_to >= {first}::timestamptz AND known_to < {past}::timestamptz"
)

_LEXICAL = sql.SQL("CREATE INDEX CONCURRENTLY {name} ON chunk_lexical USING gin (lexemes) ")

# The estimate of how many rows were known at a moment is good to one in so many.
_SHARES = [number / 64 for number in range(65)]


class HistoryIndexer:
    """Makes the closed-row segments of a collection.

    Args:
        database: The store's connections.
        collections: Finds collections.
        threshold: Chunks from which on a collection's vectors have an approximate index; smaller ones need no segments.
        machine: The server's, where its memory is known.
    """

    def __init__(
        self,
        database: Database,
        collections: CollectionRepository,
        *,
        threshold: int = INDEX_THRESHOLD_CHUNKS,
        machine: Machine | None = None,
    ) -> None:
        self._database = database
        self._collections = collections
        self._threshold = threshold
        self._machine = machine

    def due(self, scope: Scope, name: str) -> bool:
        """Whether enough of an indexed collection has been closed since its last segment was made.

        That is twice what gets an index, and half of what is current.
        """
        collection = self._collections.find(scope, name)
        if collection is None or not collection.indexed:
            return False
        waiting = self._database.read(scope, _INDEX_SQL["uncovered"], _params(scope, collection), prepare=False)[0][0]
        return bool(waiting >= max(2 * self._threshold, collection.chunk_count // 2))

    def build(self, scope: Scope, name: str, *, until: datetime | None = None) -> None:
        """Make a segment of what has been closed since the last one, which it replaces if that one is small.

        Readers and writers go on meanwhile. An interrupted build leaves indexes behind that the next one removes.

        Args:
            scope: Whose collection.
            name: The collection's.
            until: Only of what was closed before this moment; None: of all.

        Raises:
            NotFoundError: The collection does not exist.
        """
        collection = self._collections.get(scope, name)
        params = _params(scope, collection)
        with self._database.session() as connection, one_at_a_time(connection, collection.collection_id):
            drop_leftovers(connection, params)
            last = rows(connection, _INDEX_SQL["last_segment"], params)
            swallowed = [row for row in last if row[2] < collection.chunk_count]
            first = _first(connection, params, swallowed)
            segment_id, past, sound = rows(connection, _INDEX_SQL["number"], {"first": first, "until": until})[0]
            if not sound:
                return
            self._make(connection, scope, collection, segment_id, first, past)
            with self._database.transaction(scope) as writing:
                if rows(writing, _INDEX_SQL["hold"], params):
                    # Statements of their own, after the lock: their snapshots hold what it waited for.
                    writing.execute(_INDEX_SQL["lock_state"], params)
                    writing.execute(_INDEX_SQL["replace"], {**params, "segment_ids": [row[0] for row in swallowed]})
                    made = {"segment_id": segment_id, "first": first, "past": past, "shares": _SHARES}
                    writing.execute(_INDEX_SQL["add"], {**params, **made})
            # Afterwards: searches that were planned before may still use them, and find their rows without them too.
            drop_leftovers(connection, params)

    def build_space(self, scope: Scope, name: str, space: Space) -> None:
        """Make the indexes of a space that is not used yet, of every segment that there is; those that are there stay.

        Raises:
            NotFoundError: The collection does not exist.
        """
        collection = self._collections.get(scope, name)
        params = _params(scope, collection) | {"space_id": space.space_id}
        with self._database.session() as connection, one_at_a_time(connection, collection.collection_id):
            usable = {row[0] for row in rows(connection, _SPACES["indexes"], params) if row[1]}
            for segment_id, first, past in rows(connection, _SPACES["segments"], params):
                index = f"chunk_vectors_past_{space.space_id}_{segment_id}"
                if index not in usable:
                    drop_concurrently(connection, index)
                    where = _where(scope, "space_id", space.space_id, first, past)
                    shape = (self._most(collection), space.dimension)
                    with room_for_index(connection, index, shape, self._machine, workers=0) as create:
                        connection.execute(create + where)
            connection.execute("SELECT forget_content_statistics()")

    def _make(
        self, connection: Connection, scope: Scope, collection: Collection, segment_id: int, first: str, past: str
    ) -> None:
        space_id, collection_id = collection.space_id, collection.collection_id
        vectors = f"chunk_vectors_past_{space_id}_{segment_id}"
        lexical = _LEXICAL.format(name=sql.Identifier(f"chunk_lexical_past_{collection_id}_{segment_id}"))
        shape = (self._most(collection), collection.embedding_dimension)
        with room_for_index(connection, vectors, shape, self._machine) as create:
            connection.execute(create + _where(scope, "space_id", space_id, first, past))
            connection.execute(lexical + _where(scope, "collection_id", collection_id, first, past))
            connection.execute("SELECT forget_content_statistics()")

    def _most(self, collection: Collection) -> int:
        """The vectors of a segment and the small one that it replaces."""
        return 2 * max(collection.chunk_count, self._threshold)


def _where(scope: Scope, column: str, number: int, first: str, past: str) -> sql.Composed:
    return _WHERE.format(
        tenant_id=sql.Literal(scope.tenant_id),
        column=sql.Identifier(column),
        number=sql.Literal(number),
        first=sql.Literal(first),
        past=sql.Literal(past),
    )


def _params(scope: Scope, collection: Collection) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, "collection_id": collection.collection_id}


def _first(connection: Connection, params: dict[str, Any], swallowed: list[Any]) -> str:
    if swallowed:
        return str(swallowed[0][1])
    return str(rows(connection, _INDEX_SQL["covered_until"], params)[0][0])
