"""A store into one file: every row of every table, as of one moment, and no statement."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from psycopg import sql

from recollect.errors import NotFoundError, StoreError
from recollect.installation import version
from recollect.model.written_files import require_writable
from recollect.store._archive import FORMAT_VERSION, Manifest, NewArchive
from recollect.store.database import Connection, connect, rows
from recollect.store.driver_errors import translated_errors
from recollect.store.migrate import applied_schema
from recollect.store.sql import queries

_SQL = queries("backup")

_COPY = sql.SQL("COPY (SELECT {columns} FROM recollect.{table}) TO STDOUT (FORMAT binary)")


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup wrote.

    Attributes:
        file: The backup, absolute.
        bytes_written: Its size.
    """

    file: Path
    bytes_written: int


def backup(dsn: str, file: Path, *, overwrite: bool = False) -> BackupReport:
    """Write the store, as it is at this moment, into a file. Others may read and write meanwhile.

    The file appears when it is complete, or not at all. What a backup that was killed left behind, the next one into
    the same file removes.

    Args:
        dsn: The connection string of the store's owner.
        file: Where to write; its folder must exist.
        overwrite: Replace an existing file; default: no.

    Returns:
        The file and its size.

    Raises:
        ConflictError: The file exists and ``overwrite`` is not set.
        NotFoundError: The database has no store, or the file's folder does not exist.
        StoreUnavailableError: The server cannot be reached.
        StoreError: The backup failed; nothing is left of it.
    """
    target = file.expanduser().absolute()
    require_writable(target, overwrite=overwrite)
    with connect(dsn, autocommit=False) as connection, translated_errors():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # Rows that a policy hides from the owner are an error, not left out.
        connection.execute("SET LOCAL row_security = off")
        if connection.execute("SELECT to_regclass('recollect.schema_migrations')").fetchone() == (None,):
            raise NotFoundError("There is no recollect store in this database, so there is nothing to back up.")
        try:
            with _draft_beside(target) as draft:
                _write(connection, draft)
                draft.flush()
                os.fsync(draft.fileno())
                Path(draft.name).replace(target)
        except OSError as exc:
            full = exc.errno == errno.ENOSPC
            reason = f"the disk under {str(target.parent)!r} is full" if full else str(exc.strerror)
            raise StoreError(f"Cannot write the backup {str(target)!r}: {reason}. Nothing was left behind.") from exc
    return BackupReport(target, target.stat().st_size)


def _write(connection: Connection, file: IO[bytes]) -> None:
    schema_version, digest = applied_schema(connection)
    archive = NewArchive(file)
    try:
        for table, columns, _ in rows(connection, _SQL["tables"]):
            statement = _COPY.format(
                columns=sql.SQL(", ").join(map(sql.Identifier, columns)), table=sql.Identifier(table)
            )
            cursor = connection.cursor()
            with cursor.copy(statement) as blocks:
                archive.table(table, columns, blocks, partial(getattr, cursor, "rowcount"))
        archive.close(
            Manifest(
                format_version=FORMAT_VERSION,
                recollect_version=version(),
                server_version=str(connection.info.server_version),
                created_at=datetime.now(UTC).isoformat(),
                schema_version=schema_version,
                schema_digest=digest,
                tables=archive.tables,
                sequences=dict(_sequences(connection)),
            )
        )
    except BaseException:
        archive.abandon()
        raise


def _sequences(connection: Connection) -> Iterator[tuple[str, int]]:
    """Every sequence with the last number that was drawn; 0 where none was."""
    for name, _, _ in rows(connection, _SQL["sequences"]):
        statement = sql.SQL("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM recollect.{}")
        row = connection.execute(statement.format(sql.Identifier(name))).fetchone()
        yield name, int(row[0]) if row else 0


@contextlib.contextmanager
def _draft_beside(target: Path) -> Iterator[IO[bytes]]:
    """A file beside the target, held by a lock while somebody writes it; removed if it was not renamed."""
    prefix, suffix = f".{target.name[:100]}.", ".part"
    try:
        _remove_leftovers(target.parent, prefix, suffix)
        file = tempfile.NamedTemporaryFile(prefix=prefix, suffix=suffix, dir=target.parent, delete=False)  # noqa: SIM115
    except OSError as exc:
        raise StoreError(f"Cannot write into {str(target.parent)!r}: {exc.strerror}. Choose another folder.") from exc
    try:
        with file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
            yield file
    finally:
        Path(file.name).unlink(missing_ok=True)


def _remove_leftovers(folder: Path, prefix: str, suffix: str) -> None:
    """Remove the drafts of backups that were killed: nobody holds their lock."""
    for path in folder.iterdir():
        if not (path.name.startswith(prefix) and path.name.endswith(suffix)):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)
