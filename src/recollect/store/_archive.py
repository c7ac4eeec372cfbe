"""The file of a backup: a ZIP of one member a table, in PostgreSQL's binary COPY format, and a manifest.

The manifest names every member with its size, its hash and its rows. It says what the file is meant to hold, so that
one that is cut off, damaged or has anything more in it is refused before a byte of it reaches a database.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import UsageError

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
