"""Every version of a document: which there are, what they said, and how an old one becomes the current one again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString

from recollect.errors import NotFoundError
from recollect.model import Document, IngestResult, Scope
from recollect.model.history import DocumentHistory, VersionRecord
from recollect.model.time_to_live import ExpiryPolicy
from recollect.store.audit import record
from recollect.store.closing import close_versions, lock_with_attached, moment_of_change
from recollect.store.database import Connection, Database, rows
from recollect.store.expiry import store_lifetimes
from recollect.store.rights import access_params, may_find, may_read_version
from recollect.store.sql import queries

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
        with self._database.single_reads(scope) as connection:
            found = rows(connection, f"{_SQL['content']} AND {may_read_version(scope)}", params)
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
        with self._database.single_reads(scope) as connection:
            first, last = rows(connection, f"{_SQL['span']} AND {may_read_version(scope)}", params)[0]
        return None if first is None else (first, last)

    def known_at(self, scope: Scope, version_ids: Sequence[int], moment: datetime) -> set[int]:
        """Which of these versions were known at a moment."""
        params = {"tenant_id": scope.tenant_id, "version_ids": list(version_ids), "at": moment}
        with self._database.single_reads(scope) as connection:
            return {row[0] for row in rows(connection, _SQL["known_at"], params)}

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
