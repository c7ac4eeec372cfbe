"""The queue of jobs, for whoever runs them: the store's owner, across tenants.

Its tables are procrastinate's, which `recollect.store.job_connector` hands to procrastinate itself. What stands here is
what a process does for a single job of its own, and how the jobs of a worker that died come back.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg

from recollect.errors import StoreError
from recollect.store.database import Database, rows
from recollect.store.sql import queries
from recollect.store.worker_processes import has_ended, machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from types import TracebackType

    from psycopg.rows import TupleRow

    from recollect.store.database import Connection

logger = logging.getLogger(__name__)

_SQL = queries("job_queue")

# Procrastinate's functions and triggers expect their tables in the search path.
_SEARCH_PATH: LiteralString = "SET LOCAL search_path = recollect_jobs, pg_temp"

# A worker whose session has ended may be about to open another one: it has as long as so many heartbeats take.
_MISSED_BEATS = 2.5

_JOB = (
    *("id", "status", "task_name", "priority", "lock", "queueing_lock", "args", "scheduled_at", "queue_name"),
    *("attempts", "worker_id"),
)

_JOIN_SECONDS = 10.0


@contextmanager
def queue_transaction(database: Database) -> Iterator[Connection]:
    """A transaction of the owner's in which procrastinate's names mean the queue."""
    with database.autocommit() as connection, connection.transaction():
        connection.execute(_SEARCH_PATH)
        yield connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """How it is told that a worker is alive.

    Attributes:
        every_seconds: From one heartbeat to the next.
        stalled_seconds: Without a heartbeat for so long, a worker is taken for dead.
    """

    every_seconds: float = 2.0
    stalled_seconds: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How many jobs of a kind have a status, and how long the first of those that are due has waited."""

    kind: str
    status: str
    jobs: int
    waited_seconds: float


class JobQueue:
    """What is to be run next.

    Args:
        database: The store's connections.
        heartbeats: How it is told that a worker is alive.
    """

    def __init__(self, database: Database, heartbeats: Heartbeats | None = None) -> None:
        self.database = database
        self.heartbeats = heartbeats or Heartbeats()
        self._last_tenant = 0

    def recover(self) -> int:
        """Hand the jobs of workers that are gone to others; returns how many.

        One whose process ran on this machine and has ended is gone at once; of others sessions and heartbeats tell.
        """
        beats = self.heartbeats
        missed = min(beats.every_seconds * _MISSED_BEATS, beats.stalled_seconds)
        here = self._run(_SQL["workers_here"], {"host": machine()})
        ended = [worker_id for worker_id, process in here if has_ended(process)]
        params = {"stalled": beats.stalled_seconds, "missed": missed, "ended": ended}
        found = len(self._run(_SQL["recover"], params))
        if found:
            logger.warning("%d jobs of workers that are gone were put back into the queue.", found)
        return found

    def fetch(
        self, queues: Sequence[str] | None, *, worker_id: int, without: Sequence[str] = ()
    ) -> dict[str, Any] | None:
        """Take the next job of these queues (None: any), as procrastinate names its columns; None: there is none.

        Tenants take turns: the next job is the first one of the next tenant after that of the last job. The jobs of one
        tenant keep their order.

        Procrastinate's own way compares every job that waits with every other one of its lock, and lets one that waits
        for its next attempt hold up all that come behind it.
        """
        params = {
            "queues": None if queues is None else list(queues),
            "without": list(without),
            "worker_id": worker_id,
            "after_tenant": self._last_tenant,
        }
        try:
            found = self._run(_SQL["fetch"], params)
        except StoreError as exc:
            # Of two workers who take jobs of one lock at once, one is refused, and looks again.
            if isinstance(exc.__cause__, psycopg.errors.UniqueViolation):
                return None
            raise
        if not found:
            return None
        job = dict(zip(_JOB, found[0], strict=True))
        self._last_tenant = job["args"].get("tenant_id", 0)
        return job

    def claim(self, queue_id: int, *, worker_id: int) -> bool:
        """Take one job, where it is due, waits, and no other one of its lock runs."""
        # Of two who claim jobs of one lock at once, one is refused by the index that allows one of them to run.
        with suppress(StoreError):
            return bool(self._run(_SQL["claim"], {"queue_id": queue_id, "worker_id": worker_id}))
        return False

    def finish(self, queue_id: int, *, worker_id: int) -> None:
        """A job that a worker held has ended; does nothing where others hold it by now."""
        self._run(_SQL["finish"], {"queue_id": queue_id, "worker_id": worker_id}, fetch=False)

    def put_off(self, queue_id: int, *, worker_id: int, due_at: datetime | None) -> None:
        """A job that a worker held goes on later; does nothing where others hold it by now."""
        params = {"queue_id": queue_id, "worker_id": worker_id, "due_at": due_at}
        self._run(_SQL["put_off"], params, fetch=False)

    def is_served(self) -> bool:
        """Whether a worker is alive that takes jobs as they come; a process that runs its own jobs is none."""
        return bool(self._run(_SQL["serving"], {"stalled": self.heartbeats.stalled_seconds})[0][0])

    def workload(self) -> list[Workload]:
        """The jobs of all tenants, counted."""
        found = self._run(_SQL["workload"], {})
        return [Workload(kind=row[0], status=row[1], jobs=row[2], waited_seconds=row[3]) for row in found]

    def require_writable(self) -> None:
        """Refuse to run jobs where nothing can be written.

        Raises:
            StoreError: It is a read replica, or the database is read-only.
        """
        if self._run(_SQL["read_only"], {})[0][0]:
            raise StoreError(
                "This database is a read replica, or read-only: nothing can be taken from its queue. Let dsn name the "
                "primary server."
            )

    def left(self, queues: Sequence[str] | None, *, due: bool, without: Sequence[str] = ()) -> bool:
        """Whether jobs of these queues (None: any) wait or run, or only whether any wait that are due."""
        params = {"queues": None if queues is None else list(queues), "due": due, "without": list(without)}
        return bool(self._run(_SQL["left"], params)[0][0])

    def presence(self, *, serves: bool = False) -> Presence:
        """Be a worker for the time of a block.

        Args:
            serves: Whether one that takes jobs as they come, not a process that runs its own.
        """
        return Presence(self.database, self.heartbeats, serves=serves)

    def _run(self, query: LiteralString, params: dict[str, Any], *, fetch: bool = True) -> Sequence[TupleRow]:
        with queue_transaction(self.database) as connection:
            if fetch:
                return rows(connection, query, params)
            connection.execute(query, params)
            return ()


class Presence:
    """A worker that is registered, and whose heart beats in a thread of its own until `close`.

    It beats over one session, which ends with the process however that ends; where a pooler is in between there is no
    such session, and missed heartbeats alone tell.
    """

    def __init__(self, database: Database, heartbeats: Heartbeats, *, serves: bool) -> None:
        self._serves = serves
        self._database = database
        self._heartbeats = heartbeats
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._worker_id: int | None = None

    @property
    def worker_id(self) -> int:
        """The worker's number."""
        assert self._worker_id is not None, "it is registered by now"
        return self._worker_id

    def open(self) -> int:
        """Register a worker and begin to beat; returns its number.

        Raises:
            StoreUnavailableError: The store cannot be reached.
        """
        registered: Future[int] = Future()
        # In a context of its own, which nobody interrupts.
        self._thread = threading.Thread(target=self._live, args=(registered,), name="recollect-heartbeat", daemon=True)
        self._thread.start()
        self._worker_id = registered.result()
        return self._worker_id

    def close(self) -> None:
        """Stop beating, and give back what the worker still holds; idempotent."""
        self._closing.set()
        thread, self._thread = self._thread, None
        if thread is None:
            return
        thread.join(_JOIN_SECONDS)
        # Where the store cannot be reached, the missed heartbeats will tell.
        with suppress(StoreError), queue_transaction(self._database) as connection:
            connection.execute(_SQL["unregister"], {"worker_id": self.worker_id})

    def __enter__(self) -> Presence:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _live(self, registered: Future[int]) -> None:
        with ExitStack() as held:
            try:
                sessions = self._database.has_sessions()
                params: dict[str, Any] = {
                    "session": sessions,
                    "host": machine(),
                    "process": os.getpid(),
                    "serves": self._serves,
                }
                heart = self._database.session if sessions else self._database.autocommit
                with heart() as connection:
                    params["worker_id"] = int(rows(connection, _SQL["register"], params)[0][0])
            except Exception as exc:  # noqa: BLE001 - raised by whoever opens
                registered.set_exception(exc)
                return
            registered.set_result(params["worker_id"])
            kept: Connection | None = None
            while not self._closing.wait(0 if sessions and kept is None else self._heartbeats.every_seconds):
                try:
                    if sessions:
                        kept = kept or held.enter_context(heart())
                        kept.execute(_SQL["beat"], params)
                    else:
                        with heart() as connection:
                            connection.execute(_SQL["beat"], params)
                except (StoreError, psycopg.Error) as exc:
                    logger.info("A heartbeat failed and is tried again: %s", exc)
                    kept = None
                    with suppress(StoreError, psycopg.Error):
                        held.close()
                    self._closing.wait(self._heartbeats.every_seconds)
