"""A store into one file: every row of every table, as of one moment, and no statement."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from psycopg import sql
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import NotFoundError, StoreError, UsageError
from recollect.installation import version
from recollect.model.written_files import require_writable
from recollect.store.connections import translated_errors
from recollect.store.database import Connection, connect, rows
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


# The file of a backup: a ZIP of one member a table, in PostgreSQL's binary COPY format, and a manifest.
#
# The manifest names every member with its size, its hash and its rows. It says what the file is meant to hold, so
# that one that is cut off, damaged or has anything more in it is refused before a byte of it reaches a database.


FORMAT_VERSION = 1


_MANIFEST = "manifest.json"


_MANIFEST_BYTES = 4 << 20


_FIRST = b"PK\x03\x04"


_OLD_FORMAT = b"PGDMP"


_BLOCK_BYTES = 1 << 20


_LEVEL = 4


# A directory of so many bytes would be read into memory before anything of it could be checked.
_DIRECTORY_BYTES = 1 << 20


# What a damaged archive provokes in the libraries that read it.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


_DIRECTORY_END = struct.Struct("<4s4H2LH")


class TableEntry(BaseModel):
    """A table's member."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: tuple[str, ...]
    rows: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str


class Manifest(BaseModel):
    """What a backup holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format_version: int
    recollect_version: str
    server_version: str
    created_at: str
    schema_version: int = Field(ge=1)
    schema_digest: str
    tables: dict[str, TableEntry]
    sequences: dict[str, int]


def member_of(table: str) -> str:
    """The name of a table's member."""
    return f"tables/{table}.copy"


class NewArchive:
    """Writes a backup, one table after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self.tables: dict[str, TableEntry] = {}

    def table(self, name: str, columns: Iterable[str], blocks: Iterable[Any], rows: Callable[[], int]) -> None:
        """Write a table as its rows arrive; ``rows`` is asked at their end."""
        digest, size = hashlib.sha256(), 0
        with self._zip.open(member_of(name), "w", force_zip64=True) as member:
            for block in blocks:
                digest.update(block)
                size += len(block)
                member.write(block)
        self.tables[name] = TableEntry(columns=tuple(columns), rows=rows(), bytes=size, sha256=digest.hexdigest())

    def close(self, manifest: Manifest) -> None:
        """Write the manifest, and with it the end of the file."""
        self._zip.writestr(_MANIFEST, manifest.model_dump_json(indent=1))
        self._zip.close()

    def abandon(self) -> None:
        """Let go of a file that will not be completed."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()


class OpenedArchive:
    """A backup that was opened, whose manifest is sound; its members are checked by `verify`.

    Raises:
        UsageError: The file is none, is cut off, or holds something that its manifest does not name.
    """

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._path = path
        start = file.read(max(len(_FIRST), len(_OLD_FORMAT)))
        if start.startswith(_OLD_FORMAT):
            raise UsageError(
                f"{str(path)!r} is a pg_dump archive, as development versions of recollect wrote them. Restoring one "
                "runs whatever statements are in it, so this recollect does not. Restore it with the recollect that "
                "wrote it, and write out what it holds (recollect tenants export default FOLDER)."
            )
        if not start.startswith(_FIRST):
            raise UsageError(f"{str(path)!r} is not a backup: it was not written by recollect db backup.")
        _require_small_directory(file, path)
        try:
            self._zip = zipfile.ZipFile(file)
            self.manifest = self._read_manifest()
        except _UNREADABLE as exc:
            raise _damaged(path, str(exc)) from exc
        self._require_members()

    def _read_manifest(self) -> Manifest:
        if _MANIFEST not in self._zip.namelist() or self._zip.getinfo(_MANIFEST).file_size > _MANIFEST_BYTES:
            raise UsageError(
                f"{str(self._path)!r} is not a backup: it is a ZIP archive without the manifest of recollect db backup."
            )
        found = json.loads(self._zip.read(_MANIFEST))
        version = found.get("format_version") if isinstance(found, Mapping) else None
        if version != FORMAT_VERSION:
            raise UsageError(
                f"{str(self._path)!r} has the format {version!r}, and this recollect reads {FORMAT_VERSION}: restore "
                "it with a recollect as new as the one that wrote it."
            )
        try:
            return Manifest.model_validate(found)
        except ValidationError as exc:
            place = ".".join(str(part) for part in exc.errors()[0]["loc"])
            raise UsageError(
                f"{str(self._path)!r} has a manifest that recollect did not write (at {place!r})."
            ) from exc

    def _require_members(self) -> None:
        names = self._zip.namelist()
        expected = {_MANIFEST, *map(member_of, self.manifest.tables)}
        for name in names:
            if name not in expected or names.count(name) > 1:
                raise UsageError(
                    f"{str(self._path)!r} holds {name!r}, which its manifest does not name: nothing of it is restored."
                )
        missing = sorted(expected - set(names))
        if missing:
            raise _damaged(self._path, f"{missing[0]!r} is missing")

    def verify(self) -> None:
        """Read every member and compare it with the manifest.

        Raises:
            UsageError: One is cut off or was changed.
        """
        for table in self.manifest.tables:
            for _ in self.blocks(table):
                pass

    def blocks(self, table: str) -> Iterator[bytes]:
        """A table's rows, as COPY wrote them; at their end they are what the manifest says, or there is an error.

        Raises:
            UsageError: The member is cut off or was changed.
        """
        entry = self.manifest.tables[table]
        digest, size = hashlib.sha256(), 0
        try:
            with self._zip.open(member_of(table)) as member:
                while block := member.read(_BLOCK_BYTES):
                    digest.update(block)
                    size += len(block)
                    if size > entry.bytes:
                        break
                    yield block
        except _UNREADABLE as exc:
            raise _damaged(self._path, f"{member_of(table)}: {exc}") from exc
        if size != entry.bytes or digest.hexdigest() != entry.sha256:
            raise _damaged(self._path, f"{member_of(table)} is not what the manifest says")


def _require_small_directory(file: IO[bytes], path: Path) -> None:
    length = file.seek(0, 2)
    file.seek(max(0, length - _DIRECTORY_END.size))
    end = file.read()
    if len(end) < _DIRECTORY_END.size or not end.startswith(b"PK\x05\x06"):
        raise _damaged(path, "its end is missing")
    if _DIRECTORY_END.unpack(end)[5] > _DIRECTORY_BYTES:
        raise UsageError(f"{str(path)!r} is not a backup: it holds far more than one.")
    file.seek(0)


def _damaged(path: Path, reason: str) -> UsageError:
    return UsageError(f"{str(path)!r} is cut off, damaged or was changed ({reason}). The store is as it was.")
