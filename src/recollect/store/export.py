"""Whole collections out of the store, a few documents at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psycopg.rows import TupleRow

from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.store.database import Connection, Database, rows
from recollect.store.rights import access_params, may_read_version
from recollect.store.sql import queries

_SQL = queries("export")

# One page is in memory at a time, each document with all of its vectors.
_PAGE_DOCUMENTS = 16
_EMBEDDING_DIGITS = 5  # more than half precision holds


class ExportRepository:
    """Reads collections as plain values, ready for JSON."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def documents(self, scope: Scope, collection: Collection) -> Iterator[dict[str, Any]]:
        """Every document of a collection with its chunks and vectors, by id, in bounded memory.

        What is written while the export runs may or may not be in it; each document is whole.
        """
        after = 0
        known = _SQL["known_now"] if scope.as_of is None else _SQL["known_as_of"]
        query = f"{_SQL['documents']} AND {known} AND {may_read_version(scope)} {_SQL['page']}"
        while True:
            params = {
                "tenant_id": scope.tenant_id,
                "collection_id": collection.collection_id,
                "after": after,
                "as_of": scope.as_of,
                "limit": _PAGE_DOCUMENTS,
                **access_params(scope),
            }
            with self._database.transaction(scope) as connection:
                page = rows(connection, query, params)
                chunks = _chunks(connection, scope, collection, [row[1] for row in page])
            for row in page:
                yield _document(row, chunks.get(row[1], []))
            if len(page) < _PAGE_DOCUMENTS:
                return
            after = page[-1][0]


def _chunks(
    connection: Connection, scope: Scope, collection: Collection, version_ids: list[int]
) -> dict[int, list[dict[str, Any]]]:
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "space_id": collection.space_id}
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows(connection, _SQL["chunks"], params):
        version_id, start, end, embedding, section, page, token_count, parent_start, parent_end, metadata = row
        chunk = {
            "start_offset": start,
            "end_offset": end,
            "embedding": [round(float(value), _EMBEDDING_DIGITS) for value in embedding.to_list()],
            "section": section,
            "page": page,
            "token_count": token_count,
            "parent": None if parent_start is None else [parent_start, parent_end],
            "metadata": metadata,
        }
        found.setdefault(version_id, []).append(chunk)
    return found


def _document(row: TupleRow, chunks: list[dict[str, Any]]) -> dict[str, Any]:
    _, _, source, content, title, metadata, tags, department, language, mime_type, *times, permissions = row
    event_time, event_end = times
    return {
        "source": source,
        "content": content,
        "title": title,
        "metadata": metadata,
        "tags": tags,
        "department": department,
        "language": language,
        "mime_type": mime_type,
        "event_time": event_time.isoformat() if event_time else None,
        "event_end": event_end.isoformat() if event_end else None,
        "permissions": permissions,
        "chunks": chunks,
    }
