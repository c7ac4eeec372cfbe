"""A store in one file: backup and restore with PostgreSQL's own ``pg_dump``, ``pg_restore`` and ``psql``."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect.errors import ConflictError, NotFoundError, StoreError, StoreUnavailableError, UsageError
from recollect.store._server_binaries import MAJOR_VERSION, client_environment, program
from recollect.store._server_info import server_info
from recollect.store.database import connect, translated_errors

SCHEMA = "recollect"
_MAGIC = b"PGDMP"
_BLOCK_BYTES = 1024 * 1024
# Unknown to servers before 17; pg_restore writes it for its own version, whatever the target's.
_NEWER_SETTING = b"SET transaction_timeout = 0;\n"

# Sent before the backup's own statements, in the same transaction.
_REPLACE = """\\set ON_ERROR_STOP on
BEGIN;
SET LOCAL lock_timeout = '30s';
SET LOCAL client_min_messages = 'warning';
DROP SCHEMA IF EXISTS recollect CASCADE;
CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
"""
# Without statistics the planner would misjudge every query until autovacuum comes round.
_CLOSING = """
SELECT format('ANALYZE %I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'recollect' \\gexec
COMMIT;
"""
_STILL_EMPTY = """
DO $guard$ BEGIN
    IF to_regclass('recollect.documents') IS NOT NULL THEN
        LOCK TABLE recollect.documents IN ACCESS EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM recollect.documents) THEN
            RAISE EXCEPTION 'the store has documents';
        END IF;
    END IF;
END $guard$;
"""


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

    The file appears when it is complete, or not at all.

    Args:
        dsn: The store's connection string.
        file: Where to write; its folder must exist.
        overwrite: Replace an existing file; default: no.

    Returns:
        The file and its size.

    Raises:
        ConflictError: The file exists and ``overwrite`` is not set.
        NotFoundError: The database has no store, or the file's folder does not exist.
        StoreUnavailableError: The server cannot be reached, or is newer than this ``pg_dump``.
        StoreError: The dump failed; nothing is left of it.
    """
    target = file.expanduser().absolute()
    _require_writable(target, overwrite=overwrite)
    _require_dumpable(dsn)
    draft = _draft_beside(target)
    try:
        options = ["--format=custom", "--compress=6", f"--schema={SCHEMA}", "--no-owner", "--no-privileges"]
        done = _run("pg_dump", [*options, f"--file={draft}"], dsn)
        if done.returncode != 0:
            raise _failed("pg_dump", done.stderr, target)
        _publish(draft, target)
    except OSError as exc:
        msg = f"Cannot write the backup {str(target)!r}: {exc.strerror}. Nothing was left behind."
        raise StoreError(msg) from exc
    finally:
        draft.unlink(missing_ok=True)
    return BackupReport(target, target.stat().st_size)


def restore(dsn: str, file: Path, *, force: bool = False) -> None:
    """Put a backup in place of an empty store.

    It happens in one transaction: if anything fails, the store is as it was.

    Args:
        dsn: The connection string of the store to fill; the database must exist.
        file: A file written by :func:`backup`.
        force: Replace a store that has documents; they are lost. Default: refuse.

    Raises:
        NotFoundError: The file does not exist.
        UsageError: The file is not a backup, or is cut off or damaged.
        ConflictError: The store has documents and ``force`` is not set.
        StoreUnavailableError: The server cannot be reached.
        StoreError: The restore failed; the store is as it was.
    """
    source = file.expanduser().absolute()
    _require_backup(source)
    if not force:
        _require_empty(dsn)
    else:
        connect(dsn).close()
    opening = _REPLACE if force else _REPLACE.replace("DROP SCHEMA", f"{_STILL_EMPTY}DROP SCHEMA", 1)
    reader_status, reader_says, writer_status, writer_says = _pour(dsn, source, opening.encode())
    if writer_status != 0 and "the store has documents" in writer_says:
        raise _not_empty()
    # A reader stopped by a broken pipe only follows from the writer's failure, which then is the one to report.
    if reader_status > 0 and "pipe" not in reader_says:
        raise _damaged(source, reader_says)
    if writer_status != 0 or reader_status != 0:
        raise _restore_failed(source, writer_says)


def _pour(dsn: str, source: Path, opening: bytes) -> tuple[int, str, int, str]:
    """Stream a backup through psql; the COMMIT is sent only after the last byte was read without an error."""
    with _started("pg_restore", _reading(source), stdout=subprocess.PIPE) as (reader, reader_errors):
        arguments, extra = _connection_arguments(dsn)
        options = ["--no-psqlrc", "--quiet", "--no-password", "--output=/dev/null", *arguments]
        with _started("psql", options, stdin=subprocess.PIPE, extra=extra) as (writer, writer_errors):
            assert reader.stdout is not None
            assert writer.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                writer.stdin.write(opening)
                first = True
                while block := reader.stdout.read(_BLOCK_BYTES):
                    writer.stdin.write(block.replace(_NEWER_SETTING, b"", 1) if first else block)
                    first = False
                if reader.wait() == 0:
                    writer.stdin.write(_CLOSING.encode())
            with contextlib.suppress(BrokenPipeError):
                writer.stdin.close()
            writer.wait()
            reader.stdout.close()
            reader.wait()
            return reader.returncode, _text(reader_errors), writer.returncode, _text(writer_errors)


def _reading(source: Path) -> list[str]:
    return ["--exit-on-error", "--no-owner", "--no-privileges", "--no-comments", "--file=-", str(source)]


@contextlib.contextmanager
def _started(
    name: str,
    arguments: Sequence[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    extra: dict[str, str] | None = None,
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A program whose complaints go to a file, so that it cannot block on them; it does not outlive the block."""
    with tempfile.TemporaryFile() as errors:
        command = [program(name), *arguments]
        with subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=errors, env=client_environment(extra or {})
        ) as process:
            try:
                yield process, errors
            finally:
                if process.poll() is None:
                    process.kill()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace").strip()


def _run(name: str, arguments: Sequence[str], dsn: str) -> subprocess.CompletedProcess[str]:
    connection, extra = _connection_arguments(dsn)
    command = [program(name), "--no-password", *arguments, *connection]
    return subprocess.run(
        command,
        env=client_environment(extra or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def _connection_arguments(dsn: str) -> tuple[list[str], dict[str, str]]:
    """A connection string as an argument, the password apart: everybody on the machine can read arguments."""
    parameters = conninfo_to_dict(dsn)
    password = parameters.pop("password", None)
    extra = {"PGPASSWORD": str(password)} if password else {}
    return ["--dbname", make_conninfo("", **parameters)], extra


def _require_writable(target: Path, *, overwrite: bool) -> None:
    if target.is_dir():
        raise UsageError(
            f"{str(target)!r} is a folder. Name a file in it, for instance {str(target / 'store.backup')!r}."
        )
    if not target.parent.is_dir():
        raise NotFoundError(f"There is no folder {str(target.parent)!r} to write the backup into. Create it first.")
    if target.exists() and not overwrite:
        raise ConflictError(f"{str(target)!r} exists already. Choose another name, or allow overwriting it.")


def _require_dumpable(dsn: str) -> None:
    server = server_info(dsn)
    if server.major_version > MAJOR_VERSION:
        msg = (
            f"The server is PostgreSQL {server.version}, newer than this pg_dump ({MAJOR_VERSION}). Use its own: "
            f"pg_dump --format=custom --schema={SCHEMA} --no-owner --no-privileges --file FILE DSN"
        )
        raise StoreUnavailableError(msg)
    with connect(dsn) as connection, translated_errors():
        if connection.execute("SELECT FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone() is None:
            raise NotFoundError("There is no recollect store in this database, so there is nothing to back up.")


def _draft_beside(target: Path) -> Path:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".part", dir=target.parent)
    except OSError as exc:
        msg = f"Cannot write into {str(target.parent)!r}: {exc.strerror}. Choose another folder."
        raise StoreError(msg) from exc
    os.close(descriptor)
    return Path(name)


def _publish(draft: Path, target: Path) -> None:
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(target)


def _require_backup(source: Path) -> None:
    try:
        with source.open("rb") as file:
            start = file.read(len(_MAGIC))
    except FileNotFoundError as exc:
        raise NotFoundError(f"There is no backup {str(source)!r}.") from exc
    except OSError as exc:
        raise UsageError(f"The backup {str(source)!r} cannot be read: {exc.strerror}.") from exc
    if start != _MAGIC:
        msg = f"{str(source)!r} is not a backup: it was not written by recollect db backup."
        raise UsageError(msg)
    command = [program("pg_restore"), "--list", str(source)]
    listed = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if listed.returncode != 0:
        raise _damaged(source, listed.stderr)
    if f"SCHEMA - {SCHEMA} " not in listed.stdout:
        raise UsageError(f"{str(source)!r} is a backup of another database: there is no recollect store in it.")


def _damaged(source: Path, output: str) -> UsageError:
    reason = output.strip().splitlines()[-1] if output.strip() else "no reason given"
    return UsageError(
        f"{str(source)!r} is cut off, damaged or of a newer PostgreSQL ({reason}). The store is as it was. "
        "Use another backup."
    )


def _require_empty(dsn: str) -> None:
    with connect(dsn) as connection, translated_errors():
        # Rows that row-level security hides must not make a store look empty.
        connection.execute("SET row_security = off")
        try:
            found = connection.execute(f"SELECT FROM {SCHEMA}.documents LIMIT 1").fetchone()
        except psycopg.errors.UndefinedTable:
            return
    if found is not None:
        raise _not_empty()


def _not_empty() -> ConflictError:
    return ConflictError(
        "The store has documents, and a restore would replace them all. Restore into another store (a new --data-dir "
        "or database), or force it to replace this one."
    )


def _failed(name: str, output: str, target: Path) -> StoreError:
    text = output.strip()
    if "no space left" in text.lower() or shutil.disk_usage(target.parent).free < _BLOCK_BYTES:
        return StoreError(
            f"The disk under {str(target.parent)!r} is full. Nothing was left behind; choose another place."
        )
    if "SSL support is not compiled in" in text:
        return StoreUnavailableError(
            "This server is reached over TLS, which the pg_dump that recollect brings along does not speak. Use your "
            f"own: pg_dump --format=custom --schema={SCHEMA} --no-owner --no-privileges --file FILE DSN"
        )
    return StoreError(f"{name} failed: {text[-1000:]}\nNothing was left behind.")


def _restore_failed(source: Path, output: str) -> StoreError:
    if "lock timeout" in output:
        return StoreUnavailableError("Others are using the store. It is as it was; stop them and restore again.")
    if "SSL support is not compiled in" in output:
        return StoreUnavailableError(
            "This server is reached over TLS, which the programs that recollect brings along do not speak. Use your "
            "own pg_restore."
        )
    return StoreError(f"Restoring {str(source)!r} failed, and the store is as it was: {output[-1000:]}")
