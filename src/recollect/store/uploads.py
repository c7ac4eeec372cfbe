"""Files that jobs are to read: kept among the originals from when they were sent until their jobs have succeeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.model.original import Original
from recollect.store.database import Database, rows
from recollect.store.originals import keep_bytes, stored_pieces
from recollect.store.sql import queries

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.job import Job
    from recollect.store.database import Connection

_SQL = queries("originals")
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
