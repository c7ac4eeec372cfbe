"""Closing versions: they leave every search of the present and stay for history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from recollect.model import Scope
from recollect.store.database import Connection, rows
from recollect.store.rights import require_changeable
from recollect.store.sql import queries

_SQL = queries("writer")


def moment_of_change(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> datetime:
    """Now, or the latest moment known of these documents where a clock was set back."""
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    moment: datetime = rows(connection, _SQL["moment"], params)[0][0]
    return moment


def with_attached(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[int]:
    """Documents with what is attached to them, which has the same fate."""
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    return sorted({*document_ids, *(row[0] for row in rows(connection, _SQL["attached"], params))})


def lock_with_attached(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[int]:
    """Take the locks of `lock_documents` for documents and what is attached to them.

    Who may change a document may change what is attached to it.

    Returns:
        All of them: what is attached to a locked document stays so.
    """
    together = with_attached(connection, scope, document_ids)
    lock_documents(connection, scope, document_ids, beside=together)
    later = with_attached(connection, scope, document_ids)
    if later != together:  # stored between the two statements
        lock_documents(connection, scope, document_ids, beside=later)
    return later


def lock_documents(
    connection: Connection, scope: Scope, document_ids: Sequence[int], *, beside: Sequence[int] = ()
) -> None:
    """Take the locks of a change of documents in the order of every writer: their collections, then they by name.

    Args:
        connection: In the transaction of the change.
        scope: Who changes them.
        document_ids: Which.
        beside: More that are locked, whoever may change them.

    Raises:
        NotFoundError: The scope's principal may not read one of them.
        PermissionDeniedError: The principal may not change one of them.
    """
    params = {"tenant_id": scope.tenant_id, "document_ids": [*document_ids, *beside]}
    connection.execute(_SQL["hold_collections_of" if scope.principal is None else "hold_rights_of"], params)
    connection.execute(_SQL["lock_documents_by_id"], params)
    require_changeable(connection, scope, document_ids)


def close_documents(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Lock documents, with what is attached to them, and close their current versions.

    Returns:
        (collection_id, chunk_count) of each closed one.
    """
    document_ids = lock_with_attached(connection, scope, document_ids)
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    version_ids = [row[0] for row in rows(connection, _SQL["current_version_ids"], params)]
    return close_versions(connection, scope, version_ids, moment_of_change(connection, scope, document_ids))


def close_versions(
    connection: Connection, scope: Scope, version_ids: list[int], now: datetime
) -> list[tuple[int, int]]:
    """Close versions of locked documents; returns (collection_id, chunk_count) of each."""
    if not version_ids:
        return []
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "now": now}
    keep_grants(connection, scope, version_ids)
    closed = rows(connection, _SQL["close_versions"], params)
    connection.execute(_SQL["close_vectors"], params)
    connection.execute(_SQL["close_lexical"], params)
    return [(row[0], row[1]) for row in closed]


def keep_grants(connection: Connection, scope: Scope, version_ids: list[int]) -> None:
    """Let versions that are about to be closed keep what they are granted; their chunks follow when they are closed."""
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids}
    connection.execute(_SQL["add_past_lists"], params)
    connection.execute(_SQL["keep_grants"], params)


def count_closed(connection: Connection, scope: Scope, closed: Sequence[tuple[int, int]]) -> None:
    """Take closed versions off the counters of their collections; the last statement of a change.

    Args:
        connection: In the transaction that closed them.
        scope: Whose they are.
        closed: (collection_id, chunk_count) of each.
    """
    documents = Counter(collection_id for collection_id, _ in closed)
    chunks: Counter[int] = Counter()
    for collection_id, chunk_count in closed:
        chunks[collection_id] += chunk_count
    for collection_id in sorted(documents):
        params: dict[str, Any] = {
            "tenant_id": scope.tenant_id,
            "collection_id": collection_id,
            "documents": -documents[collection_id],
            "chunks": -chunks[collection_id],
            "pending": chunks[collection_id],
            "next_expiry": None,
            "languages": [],
        }
        connection.execute(_SQL["count"], params)
