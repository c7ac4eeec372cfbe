"""Files as they came: sent to be kept, uploaded for a job that reads them, and originals of documents."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError, StoreError, UsageError
from recollect.model import Scope
from recollect.model.original import PIECE_BYTES, Original
from recollect.model.uploaded_file import BatchedJob, UploadedFile, source_of_file
from recollect.store.admission import note_effect
from recollect.store.database import Connection, Database, Repository, rows
from recollect.store.rights import asker_params
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model.job import Job


# The files that documents were read from: kept once a tenant, in pieces, for as long as a version has them.


class UploadRepository(Repository):
    """Keeps files for the jobs that read them, on whichever machine."""

    def add(
        self, scope: Scope, originals: Sequence[Original], enqueue: Callable[[Connection], Sequence[Job]]
    ) -> Sequence[Job]:
        """Keep files, and ask for the jobs that read them: all of it or nothing.

        Args:
            scope: Whose.
            originals: The files.
            enqueue: Asks for the jobs within the transaction, one a file, in the same order.

        Raises:
            UsageError: A file is not what it was when its hash was taken.
            QuotaExceededError: The tenant would have more than it may.
        """
        with self._database.transaction(scope) as connection:
            # In the order of every writer: two who send the same files wait for one another, and for nobody else.
            for original in sorted(originals, key=lambda one: one.file_hash):
                keep_bytes(connection, scope, original)
            connection.execute(_WRITER["require_quota"], {"tenant_id": scope.tenant_id})
            jobs = enqueue(connection)
            for job, original in zip(jobs, originals, strict=True):
                of_job = {"tenant_id": scope.tenant_id, "job_id": job.job_id, "file_hash": original.file_hash}
                connection.execute(_ORIGINALS["add_upload"], of_job)
        return jobs

    def drop(self, scope: Scope, file_hash: bytes) -> None:
        """Keep a file for no job any more."""
        self._database.run(scope, _ORIGINALS["drop_uploads"], {"tenant_id": scope.tenant_id, "file_hash": file_hash})

    def get(self, scope: Scope, file_hash: bytes, *, name: str, mime_type: str) -> Original:
        """A file that some job is to read.

        Args:
            scope: Whose.
            file_hash: SHA-256 of its bytes.
            name: Its sender's name for it.
            mime_type: As its sender declared it.

        Raises:
            NotFoundError: It is not kept any more.
        """
        found = self._database.read(
            scope, _ORIGINALS["uploaded"], {"tenant_id": scope.tenant_id, "file_hash": file_hash}
        )
        if not found:
            raise NotFoundError(f"The file {name!r} is not kept any more: send it again.")
        (byte_count,) = found[0]
        opened = stored_pieces(self._database, scope, file_hash, byte_count)
        return Original(name=name, mime_type=mime_type, byte_count=byte_count, file_hash=file_hash, opened=opened)


_ORIGINALS = queries("originals")


_PAGE = 1_000


def keep_originals(connection: Connection, scope: Scope, originals: Sequence[tuple[int, Original]]) -> None:
    """Keep the originals of versions, in the transaction that stores these; what is kept already is not read.

    In the order of their hashes, before the cached embeddings: two who keep the same wait for one another, and for
    nobody who waits for them.

    Args:
        connection: In the transaction.
        scope: Whose.
        originals: Versions by number, each with its own.

    Raises:
        UsageError: A file is not what it was when its hash was taken.
    """
    for version_id, original in sorted(originals, key=lambda pair: pair[1].file_hash):
        key = keep_bytes(connection, scope, original)
        attached = {"version_id": version_id, "name": _name(original.name), "mime_type": original.mime_type}
        connection.execute(_ORIGINALS["attach"], key | attached)


def keep_bytes(connection: Connection, scope: Scope, original: Original) -> dict[str, Any]:
    """Keep the bytes of an original until the end of the transaction, which has to say what they are kept for.

    Returns:
        The key of its row.

    Raises:
        UsageError: The file is not what it was when its hash was taken.
    """
    key = {"tenant_id": scope.tenant_id, "file_hash": original.file_hash}
    connection.execute(_ORIGINALS["hold"], key | {"byte_count": original.byte_count})
    if not rows(connection, _ORIGINALS["is_kept"], key)[0][0]:
        _write(connection, key, original)
    return key


def _write(connection: Connection, key: dict[str, Any], original: Original) -> None:
    digest, size = hashlib.sha256(), 0
    for number, data in enumerate(_of_equal_size(original.pieces())):
        digest.update(data)
        size += len(data)
        connection.execute(_ORIGINALS["add_piece"], key | {"number": number, "data": data}, prepare=True)
    if digest.digest() != original.file_hash or size != original.byte_count:
        raise UsageError(f"The file {original.name!r} changed while it was stored: nothing of it was. Try again.")


def _of_equal_size(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks of `PIECE_BYTES`, the last one shorter."""
    waiting = bytearray()
    for block in blocks:
        waiting += block
        while len(waiting) >= PIECE_BYTES:
            yield bytes(waiting[:PIECE_BYTES])
            del waiting[:PIECE_BYTES]
    if waiting:
        yield bytes(waiting)


def _name(name: str) -> str:
    """A name as PostgreSQL's text can hold it."""
    return name.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def stored_pieces(database: Database, scope: Scope, file_hash: bytes, byte_count: int) -> Callable[[], Iterator[bytes]]:
    """Reads a stored original, a statement a piece, and compares its end with its hash.

    Whether it may be read is for the caller to ask first.
    """

    def pieces() -> Iterator[bytes]:
        digest = hashlib.sha256()
        for number in range(-(-byte_count // PIECE_BYTES)):
            params = {"tenant_id": scope.tenant_id, "file_hash": file_hash, "number": number}
            with database.single_reads(scope) as connection:
                found = rows(connection, _ORIGINALS["piece"], params)
            if not found:
                raise NotFoundError("The original was erased while it was read, or a part of it is missing.")
            digest.update(found[0][0])
            yield bytes(found[0][0])
        if digest.digest() != file_hash:
            raise StoreError("The stored original is damaged: `recollect db verify` says what is wrong with the store.")

    return pieces


def damaged_originals(connection: Connection, scope: Scope) -> Iterator[str]:
    """The hashes of originals of a tenant that are damaged, or that no version has, in bounded memory."""
    after = b""
    while page := rows(connection, _ORIGINALS["page"], {"tenant_id": scope.tenant_id, "after": after, "limit": _PAGE}):
        for file_hash, byte_count in page:
            key = {"tenant_id": scope.tenant_id, "file_hash": file_hash}
            digest, size, number = hashlib.sha256(), 0, 0
            while found := rows(connection, _ORIGINALS["piece"], key | {"number": number}):
                digest.update(found[0][0])
                size += len(found[0][0])
                number += 1
            unowned = rows(connection, _ORIGINALS["unowned"], key)[0][0]
            if unowned or size != byte_count or digest.digest() != bytes(file_hash):
                yield bytes(file_hash).hex()
        after = page[-1][0]


_SQL = queries("files")


_WRITER = queries("writer")


class FileRepository(Repository):
    """Keeps files for those who sent them. A principal sees its own, the owner of the store all of them."""

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
        found = self._database.run(scope, statement, params)
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
        self._database.run(scope, _SQL["forget_unstored"], {"tenant_id": scope.tenant_id, "document_id": document_id})

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
