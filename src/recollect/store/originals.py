"""The files that documents were read from: kept once a tenant, in pieces, for as long as a version has them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFoundError, StoreError, UsageError
from recollect.model import Scope
from recollect.model.original import PIECE_BYTES, Original
from recollect.store.database import Connection, Database, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model.job import Job


# Files that jobs are to read: kept among the originals from when they were sent until their jobs have succeeded.


_WRITER = queries("writer")


class UploadRepository:
    """Keeps files for the jobs that read them, on whichever machine.

    Args:
        database: The store's connections.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

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
                connection.execute(_SQL["add_upload"], of_job)
        return jobs

    def drop(self, scope: Scope, file_hash: bytes) -> None:
        """Keep a file for no job any more."""
        with self._database.transaction(scope) as connection:
            connection.execute(_SQL["drop_uploads"], {"tenant_id": scope.tenant_id, "file_hash": file_hash})

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
        with self._database.single_reads(scope) as connection:
            found = rows(connection, _SQL["uploaded"], {"tenant_id": scope.tenant_id, "file_hash": file_hash})
        if not found:
            raise NotFoundError(f"The file {name!r} is not kept any more: send it again.")
        (byte_count,) = found[0]
        opened = stored_pieces(self._database, scope, file_hash, byte_count)
        return Original(name=name, mime_type=mime_type, byte_count=byte_count, file_hash=file_hash, opened=opened)


_SQL = queries("originals")


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
        connection.execute(_SQL["attach"], key | attached)


def keep_bytes(connection: Connection, scope: Scope, original: Original) -> dict[str, Any]:
    """Keep the bytes of an original until the end of the transaction, which has to say what they are kept for.

    Returns:
        The key of its row.

    Raises:
        UsageError: The file is not what it was when its hash was taken.
    """
    key = {"tenant_id": scope.tenant_id, "file_hash": original.file_hash}
    connection.execute(_SQL["hold"], key | {"byte_count": original.byte_count})
    if not rows(connection, _SQL["is_kept"], key)[0][0]:
        _write(connection, key, original)
    return key


def _write(connection: Connection, key: dict[str, Any], original: Original) -> None:
    digest, size = hashlib.sha256(), 0
    for number, data in enumerate(_of_equal_size(original.pieces())):
        digest.update(data)
        size += len(data)
        connection.execute(_SQL["add_piece"], key | {"number": number, "data": data}, prepare=True)
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
                found = rows(connection, _SQL["piece"], params)
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
    while page := rows(connection, _SQL["page"], {"tenant_id": scope.tenant_id, "after": after, "limit": _PAGE}):
        for file_hash, byte_count in page:
            key = {"tenant_id": scope.tenant_id, "file_hash": file_hash}
            digest, size, number = hashlib.sha256(), 0, 0
            while found := rows(connection, _SQL["piece"], key | {"number": number}):
                digest.update(found[0][0])
                size += len(found[0][0])
                number += 1
            unowned = rows(connection, _SQL["unowned"], key)[0][0]
            if unowned or size != byte_count or digest.digest() != bytes(file_hash):
                yield bytes(file_hash).hex()
        after = page[-1][0]
