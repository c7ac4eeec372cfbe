"""Making sure that what was erased is not on disk any more.

PostgreSQL takes a removed row's bytes away only when something is written over them: neither VACUUM nor a checkpoint
does, and segments of the write-ahead log stay until a checkpoint. So a scrub writes every table anew from the rows
that are there, with its indexes and TOAST, and the planner's statistics too; on recollect's own server it also has the
log's segments removed (`wal_recycle` is off there), empties the server's log, and reads every file afterwards.

Bytes that are compressed are not found by reading. That none of them is left follows from the files: each one of before
is gone, and a rewrite that reports a removed row as still needed by somebody is done again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
from psycopg import sql

from recollect.errors import StoreError, StoreUnavailableError
from recollect.model import Scope
from recollect.model.audit import AuditEntry
from recollect.model.history import ScrubReport
from recollect.store.database import Connection, Database, rows
from recollect.store.logs import AuditRepository
from recollect.store.sql import queries
from recollect.store.tuning import index_build_settings, this_machine

_SQL = queries("scrub")
_ERASURE = queries("erasure")

#: Shorter strings stand in files by chance.
SHORTEST_MARK_BYTES = 8

_LOCK_SECONDS = 30
# So long a transaction of before may hold on to removed rows.
_PATIENCE_SECONDS = 60.0
_STEP_SECONDS = 0.2
_STILL_NEEDED = re.compile(r"(\d+) dead row versions cannot be removed yet")
_ROUNDS_OF_LOG = 5
_BLOCK_BYTES = 8 * 1024 * 1024


class Scrubber:
    """Writes a store anew, so that nothing of what was erased is left in its files.

    Args:
        database: The store's connections.
        audit: Where it is recorded.
        data_dir: Of recollect's own server; None: the server is another one, whose files cannot be read.
    """

    def __init__(self, database: Database, audit: AuditRepository, data_dir: Path | None) -> None:
        self._database = database
        self._audit = audit
        self._data_dir = data_dir

    def due(self) -> int:
        """How many documents, turns and tenants were erased since the last scrub."""
        with self._database.autocommit() as connection:
            return int(rows(connection, _SQL["due"])[0][0])

    def scrub(
        self, scope: Scope, *, actor: str, texts: Sequence[str] = (), hashes: Sequence[bytes] = ()
    ) -> ScrubReport:
        """Write every table anew, and look for strings in the files.

        Searches and writes of a table wait while it is written anew.

        Args:
            scope: In whose audit it is recorded.
            actor: Who asks.
            texts: Looked for in the files, unless a row of the store holds them or they have less than eight bytes.
            hashes: The same of what is no text.

        Raises:
            StoreUnavailableError: Others hold a table, or somebody scrubs already.
            StoreError: A transaction that began before goes on and on.
        """
        with self._database.autocommit() as connection, _alone(connection):
            connection.execute(_ERASURE["forget_samples"])
            connection.execute(_ERASURE["sample_lexemes"])
            before: dict[str, str] = dict(rows(connection, _SQL["files"]))
            with self._room(connection):
                _rewrite(connection, [row[0] for row in rows(connection, _SQL["tables"])])
            for catalog in ("pg_statistic", "pg_statistic_ext_data"):
                connection.execute(sql.SQL("VACUUM (FULL) pg_catalog.{}").format(sql.Identifier(catalog)))
            checkpointed = _checkpoint(connection)
            files: dict[str, str] = dict(rows(connection, _SQL["files"]))
            kept = [name for name, path in files.items() if path == before.get(name)]
            held = _held(connection, texts)
            removed: int | None = None
            if self._data_dir is not None:
                removed, stuck = _renew_log(connection)
                kept += stuck
                _empty_server_log(self._data_dir)
                kept += _still_there(self._data_dir / "pg", set(before.values()) - set(files.values()))
        marks = [text.encode() for text in dict.fromkeys(texts) if text not in held]
        marks = [mark for mark in [*marks, *hashes] if len(mark) >= SHORTEST_MARK_BYTES]
        found, count, size = _search(self._data_dir, marks) if self._data_dir is not None else ({}, 0, 0)
        report = ScrubReport(
            relations=len(files) - sum(1 for name in kept if name in files),
            kept=tuple(sorted(kept)),
            log_segments=removed,
            proven=self._data_dir is not None,
            files=count,
            bytes=size,
            strings=len(marks) if self._data_dir is not None else 0,
            held=len(held),
            found=found,
            remains=self._remains(checkpointed=checkpointed),
        )
        self._audit.append(scope, [AuditEntry(action="scrub", actor=actor, details=_details(report))])
        return report

    @contextmanager
    def _room(self, connection: Connection) -> Iterator[None]:
        """Memory for the graphs of vector indexes, which are built anew; nobody is waited for longer than a while."""
        vectors, dimension = rows(connection, _SQL["vectors"])[0]
        settings = {"lock_timeout": f"{_LOCK_SECONDS}s"}
        if self._data_dir is not None:
            settings |= index_build_settings(this_machine(), vectors=vectors, dimension=dimension)
        for name, value in settings.items():
            connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
        try:
            yield
        finally:
            if not connection.closed:
                for name in settings:
                    connection.execute(sql.SQL("RESET {}").format(sql.Identifier(name)))

    def _remains(self, *, checkpointed: bool) -> tuple[str, ...]:
        lines = ["Backups, dumps, exports and snapshots made before: until they are deleted."]
        if self._data_dir is None:
            lines.append(
                "Write-ahead log: segments hold the former rows, and are used again as they are, until they are "
                "written over; archived ones and those that replicas and slots keep, until they are deleted. The "
                "server is not recollect's own, so its log was left alone."
            )
            if not checkpointed:
                lines.append(
                    "Database files: the former files of the tables until the next checkpoint, which this role may not "
                    "ask for."
                )
            lines.append("The server's files could not be read, so nothing was proven of them.")
        lines.append(
            "The disk's free blocks, where the former files were: until the file system or the device writes over them."
        )
        lines.append("Other running processes: what they hold in memory, until they end.")
        return tuple(lines)


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    if not rows(connection, _SQL["alone"])[0][0]:
        raise StoreUnavailableError("Another process is scrubbing the store. Run recollect db scrub when it has ended.")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(_SQL["let_go"])


def _rewrite(connection: Connection, tables: Sequence[str]) -> None:
    """Write tables anew, until none of them holds a removed row that an older transaction could still see."""
    needed: list[int] = []

    def listen(said: psycopg.errors.Diagnostic) -> None:
        needed.extend(int(count) for count in _STILL_NEEDED.findall(said.message_detail or ""))

    deadline = time.monotonic() + _PATIENCE_SECONDS
    connection.add_notice_handler(listen)
    try:
        waiting = list(tables)
        while waiting:
            again = []
            for table in waiting:
                needed.clear()
                _vacuum(connection, table)
                if any(needed):
                    again.append(table)
            if again and time.monotonic() > deadline:
                raise StoreError(
                    f"A transaction that began before still sees removed rows of {', '.join(again)} after "
                    f"{_PATIENCE_SECONDS:.0f} s. End it (pg_stat_activity shows it), and run recollect db scrub."
                )
            if again:
                time.sleep(_STEP_SECONDS)
            waiting = again
    finally:
        connection.remove_notice_handler(listen)


def _vacuum(connection: Connection, table: str) -> None:
    statement = sql.SQL("VACUUM (FULL, VERBOSE) {}").format(sql.Identifier("recollect", table))
    try:
        connection.execute(statement)
    except psycopg.errors.LockNotAvailable as exc:
        raise StoreUnavailableError(
            f"Others are using the table {table}: it was not free for {_LOCK_SECONDS} s. Run recollect db scrub later."
        ) from exc
    except psycopg.errors.UndefinedTable:
        pass  # a partition that was dropped meanwhile


def _checkpoint(connection: Connection) -> bool:
    try:
        connection.execute("CHECKPOINT")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def _held(connection: Connection, texts: Sequence[str]) -> set[str]:
    """Those of the texts that rows of the store hold, of whatever tenant."""
    wanted = [text for text in dict.fromkeys(texts) if len(text.encode()) >= SHORTEST_MARK_BYTES]
    held: set[str] = set()
    for table, column in rows(connection, _SQL["places"]) if wanted else ():
        statement = sql.SQL(
            "SELECT w.text FROM unnest(%(texts)s::text[]) AS w (text) "
            "WHERE EXISTS (SELECT FROM {} WHERE strpos({}::text, w.text) > 0)"
        ).format(sql.Identifier("recollect", table), sql.Identifier(column))
        held |= {row[0] for row in connection.execute(statement, {"texts": wanted}).fetchall()}
    return held


def _renew_log(connection: Connection) -> tuple[int, list[str]]:
    """Have every segment of the write-ahead log removed that is there now; returns how many went, and what is left."""
    former = {row[0] for row in rows(connection, _SQL["segments"])}
    left = set(former)
    for _ in range(_ROUNDS_OF_LOG):
        # Also those that were put in place for the time to come: they are written through first.
        while rows(connection, _SQL["next_segment"])[0][0] <= max(former):
            connection.execute("SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        left = former & {row[0] for row in rows(connection, _SQL["segments"])}
        if not left:
            break
    return len(former - left), [f"pg_wal/{name}" for name in left]


def _empty_server_log(data_dir: Path) -> None:
    (data_dir / "server.log.old").unlink(missing_ok=True)
    with suppress(OSError):
        # The server appends to it, so it goes on at the new end. Whoever owns the folder could have put a link there.
        os.close(os.open(data_dir / "server.log", os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW))


def _still_there(cluster: Path, former: set[str]) -> list[str]:
    """Files of before that are on disk still, and are not empty."""
    found = []
    for path in former:
        for file in (cluster / path).parent.glob(f"{Path(path).name}*"):
            exact = re.fullmatch(rf"{Path(path).name}(_[a-z]+)?(\.\d+)?", file.name)
            if exact and file.stat().st_size:
                found.append(str(file.relative_to(cluster)))
    return found


def _search(data_dir: Path, marks: Sequence[bytes]) -> tuple[dict[str, int], int, int]:
    """The files below a folder that hold any of the marks, with how many; how many files were read, and bytes."""
    found: dict[str, int] = {}
    count = size = 0
    for file in sorted(data_dir.rglob("*")):
        try:
            if file.is_symlink() or not file.is_file():
                continue
            held, length = _marks_in(file, marks)
        except FileNotFoundError:
            continue  # the server lives: it makes files and removes them
        count += 1
        size += length
        if held:
            found[str(file.relative_to(data_dir))] = held
    return found, count, size


def _marks_in(file: Path, marks: Sequence[bytes]) -> tuple[int, int]:
    overlap = max((len(mark) for mark in marks), default=1) - 1
    held: set[bytes] = set()
    length = 0
    tail = b""
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK_BYTES):
            length += len(block)
            window = tail + block
            held |= {mark for mark in marks if mark not in held and mark in window}
            tail = window[-overlap:] if overlap else b""
    return len(held), length


def _details(report: ScrubReport) -> dict[str, object]:
    names = ("relations", "log_segments", "proven", "files", "bytes", "strings", "held")
    return {**{name: getattr(report, name) for name in names}, "kept": list(report.kept), "found": dict(report.found)}
