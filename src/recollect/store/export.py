"""Whole collections out of the store, a few documents at a time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from psycopg.rows import TupleRow

from recollect.errors import NotFoundError
from recollect.model import Scope
from recollect.model.collection import Collection
from recollect.model.principal import EVERYONE
from recollect.model.source import MANUAL_SOURCE
from recollect.store.database import Connection, Repository, rows
from recollect.store.files import stored_pieces
from recollect.store.rights import access_params, may_find, may_read_version, owns_nothing
from recollect.store.sql import queries

if TYPE_CHECKING:
    import numpy as np

_SQL = queries("export")

# One page is in memory at a time, each document with all of its vectors.
_PAGE_DOCUMENTS = 16


class ExportRepository(Repository):
    """Reads collections as plain values, ready for JSON."""

    def documents(
        self, scope: Scope, collection: Collection, *, max_original_bytes: int = 0
    ) -> Iterator[dict[str, Any]]:
        """Every document of a collection with its chunks and vectors, by id, in bounded memory.

        What is written while the export runs may or may not be in it; each document is whole.

        Args:
            scope: Whose, and as whom.
            collection: Which.
            max_original_bytes: With each document the file that it was read from, where it is kept and no larger.
        """
        after = 0
        query = f"{_SQL['documents']} AND {may_read_version(scope)} {_SQL['page']}"
        while True:
            params = {
                "tenant_id": scope.tenant_id,
                "collection_id": collection.collection_id,
                "after": after,
                "limit": _PAGE_DOCUMENTS,
                **access_params(scope),
            }
            with self._database.transaction(scope) as connection:
                owns = not owns_nothing(connection, scope, collection)
                page = rows(connection, query, params)
                chunks = _chunks(connection, scope, collection, [row[1] for row in page])
                messages = _messages(connection, scope, [row[-1] for row in page if row[-1] is not None])
            for row in page:
                document = _document(row, chunks.get(row[1], []), owns=owns)
                document |= messages.get(row[-1], {})
                try:
                    original = self._original(scope, row, max_original_bytes)
                except NotFoundError:
                    if self._stands(scope, row[1]):
                        raise
                    continue  # erased meanwhile
                yield {**document, **({} if original is None else {"original": original})}
            if len(page) < _PAGE_DOCUMENTS:
                return
            after = page[-1][0]

    def _stands(self, scope: Scope, version_id: int) -> bool:
        params = {"tenant_id": scope.tenant_id, "version_id": version_id}
        return bool(self._database.run(scope, _SQL["stands"], params))

    def _original(self, scope: Scope, row: TupleRow, max_bytes: int) -> dict[str, Any] | None:
        name, mime_type, byte_count, file_hash = row[14:18]
        if file_hash is None or byte_count > max_bytes:
            return None
        pieces = stored_pieces(self._database, scope, bytes(file_hash), byte_count)
        data = b64encode(b"".join(pieces())).decode("ascii")
        return {"name": name, "mime_type": mime_type, "sha256": bytes(file_hash).hex(), "data": data}


def _messages(connection: Connection, scope: Scope, document_ids: list[int]) -> dict[int, dict[str, str]]:
    """What tells of messages on what is attached to them, of those that the scope's principal may know of."""
    if not document_ids:
        return {}
    params = {"tenant_id": scope.tenant_id, "document_ids": document_ids, **access_params(scope)}
    found = rows(connection, f"{_SQL['messages']} AND {may_find(scope)}", params)
    return {
        number: {"attached_to": source, **({} if given_id is None else {"attached_to_id": given_id})}
        for number, source, given_id in found
    }


def packed_vector(vector: np.ndarray[Any, Any]) -> str:
    """A vector of any float type as lines have it (``vector``): half precision, little-endian, base64."""
    return b64encode(vector.astype("<f2").tobytes()).decode("ascii")


def _chunks(
    connection: Connection, scope: Scope, collection: Collection, version_ids: list[int]
) -> dict[int, list[dict[str, Any]]]:
    params = {"tenant_id": scope.tenant_id, "version_ids": version_ids, "space_id": collection.space_id}
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows(connection, _SQL["chunks"], params):
        version_id, start, end, embedding, section, page, token_count, parent_start, parent_end, *beside = row
        metadata, context, context_by = beside
        chunk = {
            "start_offset": start,
            "end_offset": end,
            "vector": packed_vector(embedding.to_numpy()),
            "section": section,
            "page": page,
            "token_count": token_count,
            "parent": None if parent_start is None else [parent_start, parent_end],
            "metadata": metadata,
            **({} if context_by is None else {"context": context, "context_by": context_by}),
        }
        found.setdefault(version_id, []).append(chunk)
    return found


def _document(row: TupleRow, chunks: list[dict[str, Any]], *, owns: bool) -> dict[str, Any]:
    source, content, title, metadata, tags, department, language, mime_type, event_time, event_end = row[2:12]
    headings, pages, *_, permissions, origin, expires_at, owner, twin, readers, given_id, _ = row[12:]
    # Who stored it, and for whom the collection exists at all, is for the collection's owners to know.
    told = {"owner": owner, "twin": twin, "readers": [] if readers == [EVERYONE] else readers} if owns else {}
    return {
        **({} if origin == MANUAL_SOURCE else {"origin": origin}),
        "source": source,
        **({} if given_id is None else {"id": given_id}),
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
        **({} if expires_at is None else {"expires_at": expires_at.isoformat()}),
        **{name: value for name, value in told.items() if value},
        "headings": headings,
        "pages": pages,
        "chunks": chunks,
    }
