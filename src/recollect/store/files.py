"""Files that were sent to be kept: whose they are, how long they stay, and which documents were made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError
from recollect.model.original import Original
from recollect.model.uploaded_file import BatchedJob, UploadedFile, source_of_file
from recollect.store.database import Connection, Database, rows
from recollect.store.idempotency import note_effect
from recollect.store.originals import keep_bytes, stored_pieces
from recollect.store.rights import asker_params
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope

_SQL = queries("files")
_WRITER = queries("writer")


class FileRepository:
    """Keeps files for those who sent them. A principal sees its own, the owner of the store all of them.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, scope: Scope, original: Original, *, purpose: str, lifetime: timedelta | None) -> UploadedFile:
        """Keep a file.

        Args:
            scope: Whose.
            original: The file.
            purpose: What it was sent for.
            lifetime: How long it is kept; None: until it is deleted.

        Raises:
            UsageError: The file is not what it was when its hash was taken.
            QuotaExceededError: The tenant would have more than it may.
        """
        with self._database.transaction(scope) as connection:
            key = keep_bytes(connection, scope, original)
            said = {"name": original.name, "mime_type": original.mime_type, "purpose": purpose}
            seconds = None if lifetime is None else lifetime.total_seconds()
            ((file_id,),) = rows(
                connection,
                _SQL["add"],
                {**_of(scope), **key, **said, "seconds": seconds},
            )
            connection.execute(_WRITER["require_quota"], {"tenant_id": scope.tenant_id})
            note_effect(connection, scope)
        return self.get(scope, file_id)

    def get(self, scope: Scope, file_id: int) -> UploadedFile:
        """One file.

        Raises:
            NotFoundError: There is none of that number, or somebody else has sent it.
        """
        found = self.several(scope, [file_id])
        if not found:
            raise missing_file(file_id)
        return found[file_id]

    def several(self, scope: Scope, file_ids: Sequence[int]) -> Mapping[int, UploadedFile]:
        """Those of some files that there are, by number."""
        found = self._page(scope, file_ids=list(file_ids), limit=len(file_ids))
        return {one.file_id: one for one in found}

    def page(
        self, scope: Scope, *, purpose: str | None = None, newest_first: bool = False, after: int = 0, limit: int = 100
    ) -> list[UploadedFile]:
        """Files by number.

        Args:
            scope: Whose.
            purpose: Only those that were sent for this.
            newest_first: The largest number first.
            after: The last number of the page before; 0: the first page.
            limit: How many at most.
        """
        return self._page(scope, purpose=purpose, newest_first=newest_first, after=after, limit=limit)

    def _page(
        self,
        scope: Scope,
        *,
        file_ids: list[int] | None = None,
        purpose: str | None = None,
        newest_first: bool = False,
        after: int = 0,
        limit: int,
    ) -> list[UploadedFile]:
        params = {
            "tenant_id": scope.tenant_id,
            **asker_params(scope),
            "file_ids": file_ids,
            "purpose": purpose,
            "after": after,
            "limit": limit,
        }
        statement = _SQL["page"] + " " + _SQL["newest_first" if newest_first else "oldest_first"]
        with self._database.transaction(scope) as connection:
            found = rows(connection, statement, params)
        return [UploadedFile(**dict(zip(UploadedFile.__dataclass_fields__, _plain(row), strict=True))) for row in found]

    def original(self, scope: Scope, file: UploadedFile) -> Original:
        """The bytes of a file, to be read."""
        opened = stored_pieces(self._database, scope, file.file_hash, file.byte_count)
        return Original(
            name=file.name,
            mime_type=file.mime_type,
            byte_count=file.byte_count,
            file_hash=file.file_hash,
            opened=opened,
        )

    def is_wanted(self, scope: Scope, file_id: int, *, collection: str) -> bool:
        """Whether a document is to stay that a job makes of a file for a collection, whoever sent it."""
        wanted = {"file_id": file_id, "source": source_of_file(file_id), "collection": collection}
        with self._database.transaction(scope) as connection:
            return bool(self._one(connection, scope, "is_wanted", **wanted)[0][0])

    def delete(self, scope: Scope, file_id: int) -> bool:
        """Keep a file no longer; its bytes stay where versions of documents have them. Whether it was there."""
        with self._database.transaction(scope) as connection:
            return bool(self._one(connection, scope, "delete", file_id=file_id))

    def delete_expired(self, scope: Scope) -> int:
        """Keep those no longer whose time is over; returns how many."""
        with self._database.transaction(scope) as connection:
            return connection.execute(_SQL["delete_expired"], {"tenant_id": scope.tenant_id}).rowcount

    def documents(self, scope: Scope, file_id: int) -> Sequence[tuple[int, int, str]]:
        """The documents that were made from a file: each with the number and the name of its collection."""
        with self._database.transaction(scope) as connection:
            found = self._one(connection, scope, "documents", source=source_of_file(file_id))
        return [(document_id, collection_id, name) for document_id, collection_id, name in found]

    def files_of(self, scope: Scope, document_ids: Sequence[int]) -> Mapping[int, int]:
        """Of documents that were made from files, these files."""
        if not document_ids:
            return {}
        with self._database.transaction(scope) as connection:
            return dict(self._one(connection, scope, "files_of", document_ids=list(document_ids)))

    def detach(self, scope: Scope, document_id: int) -> list[int]:
        """Have a document not stay that a job is about to store; returns those that have not ended."""
        with self._database.transaction(scope) as connection:
            return sorted(row[0] for row in self._one(connection, scope, "detach", document_id=document_id))

    def forget_unstored(self, scope: Scope, document_id: int) -> None:
        """Forget a document of which nothing was ever stored, with the jobs that could not."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["forget_unstored"], {"tenant_id": scope.tenant_id, "document_id": document_id})

    def batch(self, scope: Scope, batch: str) -> list[BatchedJob]:
        """The jobs that were asked for together, as whoever asked for them sees them."""
        with self._database.transaction(scope) as connection:
            found = self._one(connection, scope, "batch", batch=batch)
        return [BatchedJob(**dict(zip(BatchedJob.__dataclass_fields__, row, strict=True))) for row in found]

    def unstored_counts(self, scope: Scope) -> Mapping[int, tuple[int, int, int]]:
        """By collection, how many documents wait for a job that stores them, and whose job failed or was cancelled."""
        with self._database.transaction(scope) as connection:
            found = self._one(connection, scope, "unstored_counts")
        return {place: (pending, failed, cancelled) for place, pending, failed, cancelled in found}

    def _one(self, connection: Connection, scope: Scope, name: str, **params: object) -> list[Any]:
        return rows(connection, _SQL[name], {**_of(scope), **params})


def delete_of_documents(connection: Connection, scope: Scope, document_ids: Sequence[int]) -> None:
    """Keep the files no longer that documents were made from, in the transaction that erases these."""
    params = {"tenant_id": scope.tenant_id, "document_ids": list(document_ids)}
    connection.execute(_SQL["delete_of_documents"], params)


def missing_file(file_id: int) -> NotFoundError:
    """What is said of a file that there is not."""
    return NotFoundError(f"There is no file {file_id}: it was deleted, its time is over, or it is somebody else's.")


def _plain(row: Sequence[Any]) -> Iterator[Any]:
    return (bytes(value) if isinstance(value, memoryview) else value for value in row)


def _of(scope: Scope) -> dict[str, Any]:
    return {"tenant_id": scope.tenant_id, **asker_params(scope)}
