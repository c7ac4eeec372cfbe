"""The queue of jobs, for whoever runs them: the store's owner, across tenants; and what is done for it at intervals.

Its tables, their triggers and functions are procrastinate's. Who takes what from them stands here, and how the jobs of
a worker that died come back.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

import psutil
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from recollect.errors import StoreError
from recollect.model import Scope
from recollect.store.database import Database, Repository, rows
from recollect.store.sql import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from psycopg.rows import TupleRow

    from recollect.store.database import Connection


logger = logging.getLogger(__name__)


_SQL = queries("job_queue")


# Procrastinate's functions and triggers expect their tables in the search path.
_SEARCH_PATH: LiteralString = "SET LOCAL search_path = recollect_jobs, pg_temp"


# A worker whose session has ended may be about to open another one: it has as long as so many heartbeats take.
_MISSED_BEATS = 2.5


_JOIN_SECONDS = 10.0


#: Of what is done every so often; a worker that takes jobs of named queues does it where this is one of them.
UPKEEP = "upkeep"


#: What whoever listens is told where a job that runs is to stop, as procrastinate's trigger says it.
STOP = "abort_job_requested"


# A connection that waits to be told is opened anew so long after it was lost; jobs are looked for meanwhile.
_RECONNECT_SECONDS = 2.0


# Whoever no longer listens waits so long at most.
_LISTEN_SECONDS = 0.2


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One that a worker has taken.

    Attributes:
        queue_id: Its number in the queue.
        task: Its name there.
        arguments: A tenant's job has ``tenant_id`` and ``job_id``.
        queue: Which it was in.
    """

    queue_id: int
    task: str
    arguments: Mapping[str, Any]
    queue: str


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
        here = self._run("workers_here", host=machine())
        ended = [worker_id for worker_id, process in here if has_ended(process)]
        found = len(self._run("recover", stalled=beats.stalled_seconds, missed=missed, ended=ended))
        if found:
            logger.warning("%d jobs of workers that are gone were put back into the queue.", found)
        return found

    def fetch(self, queues: Sequence[str] | None, *, worker_id: int, without: Sequence[str] = ()) -> QueuedJob | None:
        """Take the next job of these queues (None: any); None: there is none.

        Tenants take turns: the next job is the first one of the next tenant after that of the last job. The jobs of one
        tenant keep their order.
        """
        named, others = None if queues is None else list(queues), list(without)
        try:
            found = self._run(
                "fetch", queues=named, without=others, worker_id=worker_id, after_tenant=self._last_tenant
            )
        except StoreError as exc:
            # Of two workers who take jobs of one lock at once, one is refused, and looks again.
            if isinstance(exc.__cause__, psycopg.errors.UniqueViolation):
                return None
            raise
        if not found:
            return None
        number, task, arguments, queue = found[0]
        self._last_tenant = arguments.get("tenant_id", 0)
        return QueuedJob(queue_id=number, task=task, arguments=arguments, queue=queue)

    def add_periodic(self, task: str, *, at: int) -> None:
        """Put what is due into the queue, unless some worker has done so for that time, or it still waits there.

        Args:
            task: Its name.
            at: When it was due, in seconds since 1970.
        """
        name, given = task.partition(":")[2], Jsonb({"timestamp": at})
        try:
            self._run("add_periodic", task=task, name=name, at=at, queue=UPKEEP, args=given)
        except StoreError as exc:
            if not isinstance(exc.__cause__, psycopg.errors.UniqueViolation):
                raise

    def to_stop(self, *, worker_id: int) -> Sequence[int]:
        """The numbers of jobs that a worker runs and that are to stop."""
        return [row[0] for row in self._run("to_stop", worker_id=worker_id)]

    @contextmanager
    def listening(self, queues: Sequence[str] | None, tell: Callable[[str], object]) -> Iterator[None]:
        """For the time of a block call ``tell`` where a job comes into one of these queues (None: any) or is to `STOP`.

        Behind a pooler nobody is told: there is no session that could wait.
        """
        if not self.database.has_sessions():
            yield
            return
        channels = (
            ["procrastinate_any_queue_v1"]
            if queues is None
            else [f"procrastinate_queue_v1#{queue}" for queue in queues]
        )
        closing = threading.Event()
        arguments = (channels, tell, closing)
        thread = threading.Thread(target=self._listen, args=arguments, name="recollect-listen", daemon=True)
        thread.start()
        try:
            yield
        finally:
            closing.set()
            thread.join(_JOIN_SECONDS)

    def _listen(self, channels: Sequence[str], tell: Callable[[str], object], closing: threading.Event) -> None:
        while not closing.is_set():
            try:
                with psycopg.connect(self.database.dsn, autocommit=True) as connection:
                    for channel in channels:
                        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                    while not closing.is_set():
                        for told in connection.notifies(timeout=_LISTEN_SECONDS):
                            tell(json.loads(told.payload)["type"])
            except psycopg.Error as exc:
                logger.info("The connection that waits for jobs was lost and is opened again: %s", exc)
                closing.wait(_RECONNECT_SECONDS)

    def claim(self, queue_id: int, *, worker_id: int) -> bool:
        """Take one job, where it is due, waits, and no other one of its lock runs."""
        # Of two who claim jobs of one lock at once, one is refused by the index that allows one of them to run.
        with suppress(StoreError):
            return bool(self._run("claim", queue_id=queue_id, worker_id=worker_id))
        return False

    def finish(self, queue_id: int, *, worker_id: int) -> None:
        """A job that a worker held has ended; does nothing where others hold it by now."""
        self._run("finish", queue_id=queue_id, worker_id=worker_id)

    def put_off(self, queue_id: int, *, worker_id: int, due_at: datetime | None) -> None:
        """A job that a worker held goes on later; does nothing where others hold it by now."""
        self._run("put_off", queue_id=queue_id, worker_id=worker_id, due_at=due_at)

    def is_served(self) -> bool:
        """Whether a worker is alive that takes jobs as they come; a process that runs its own jobs is none."""
        return bool(self._run("serving", stalled=self.heartbeats.stalled_seconds)[0][0])

    def workload(self) -> list[Workload]:
        """The jobs of all tenants, counted."""
        found = self._run("workload")
        return [Workload(kind=row[0], status=row[1], jobs=row[2], waited_seconds=row[3]) for row in found]

    def require_writable(self) -> None:
        """Refuse to run jobs where nothing can be written.

        Raises:
            StoreError: It is a read replica, or the database is read-only.
        """
        if self._run("read_only")[0][0]:
            raise StoreError(
                "This database is a read replica, or read-only: nothing can be taken from its queue. Let dsn name the "
                "primary server."
            )

    def left(self, queues: Sequence[str] | None, *, due: bool, without: Sequence[str] = ()) -> bool:
        """Whether jobs of these queues (None: any) wait or run, or only whether any wait that are due."""
        named = None if queues is None else list(queues)
        return bool(self._run("left", queues=named, due=due, without=list(without))[0][0])

    @contextmanager
    def presence(self, *, serves: bool = False) -> Iterator[int]:
        """Be a worker for the time of a block, which is given its number; afterwards others have what it still holds.

        Its heart beats in a thread of its own, over one session, which ends with the process however that ends. Where a
        pooler is in between there is no such session, and missed heartbeats alone tell.

        Args:
            serves: Whether one that takes jobs as they come, not a process that runs its own.

        Raises:
            StoreUnavailableError: The store cannot be reached.
        """
        registered: Future[int] = Future()
        closing = threading.Event()
        arguments = (registered, closing, serves)
        # In a context of its own, which nobody interrupts.
        thread = threading.Thread(target=self._live, args=arguments, name="recollect-heartbeat", daemon=True)
        thread.start()
        worker_id = registered.result()
        try:
            yield worker_id
        finally:
            closing.set()
            thread.join(_JOIN_SECONDS)
            # Where the store cannot be reached, the missed heartbeats will tell.
            with suppress(StoreError):
                self._run("unregister", worker_id=worker_id)

    def _run(self, query: str, /, **params: object) -> Sequence[TupleRow]:
        with queue_transaction(self.database) as connection:
            cursor = connection.execute(_SQL[query], params, binary=True)
            return cursor.fetchall() if cursor.description else ()

    def _live(self, registered: Future[int], closing: threading.Event, serves: bool) -> None:
        with ExitStack() as held:
            try:
                sessions = self.database.has_sessions()
                params: dict[str, Any] = {
                    "session": sessions,
                    "host": machine(),
                    "process": os.getpid(),
                    "serves": serves,
                }
                heart = self.database.session if sessions else self.database.autocommit
                with heart() as connection:
                    params["worker_id"] = int(rows(connection, _SQL["register"], params)[0][0])
            except Exception as exc:  # noqa: BLE001 - raised by whoever opens
                registered.set_exception(exc)
                return
            registered.set_result(params["worker_id"])
            kept: Connection | None = None
            while not closing.wait(0 if sessions and kept is None else self.heartbeats.every_seconds):
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
                    closing.wait(self.heartbeats.every_seconds)


# Which workers of this machine have ended, as their processes tell long before their heartbeats are missed.


_BOOT = Path("/proc/sys/kernel/random/boot_id")


_NAMESPACE = Path("/proc/self/ns/pid")


@cache
def machine() -> str:
    """Names where this process runs: two processes with the same name there see each other's numbers.

    A host's name alone does not tell: containers may share it, whose processes have numbers of their own, and so may
    machines that were copied. So the name is that of one start of one kernel, and of one space of process numbers.
    Where the system does not tell these, it is a name that no other process has, and heartbeats alone tell who is gone.
    """
    try:
        if sys.platform == "linux":
            told = f"{_BOOT.read_text(encoding='ascii').strip()} {_NAMESPACE.readlink()}"
        else:
            told = f"{psutil.boot_time():.0f}"
    except OSError:
        told = f"{os.getpid()} {os.urandom(8).hex()}"
    return f"{socket.gethostname()} {told}"


def has_ended(process: int) -> bool:
    """Whether no process of this machine has a number, or it is one that was ended and that nobody has asked after.

    One whose number was given to another process since counts as running.
    """
    try:
        status: str = psutil.Process(process).status()
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:
        return False
    return status == psutil.STATUS_ZOMBIE


# Who does what is to be done every so many hours: of several processes, one.


_UPKEEP = queries("upkeep")


class UpkeepRepository(Repository):
    """Keeps when periodic tasks were begun."""

    def claim(self, scope: Scope, task: str, *, every_seconds: float) -> bool:
        """Whether a task of the tenant is due; then it counts as begun, and nobody else is told so.

        Args:
            scope: Whose task.
            task: Its name.
            every_seconds: Seconds from one beginning to the next.
        """
        params = {"tenant_id": scope.tenant_id, "task": task, "seconds": every_seconds}
        return bool(self._database.run(scope, _UPKEEP["claim"], params))


def every_tenant(database: Database) -> list[Scope]:
    """A scope of each tenant that is not suspended, for what is done for all of them."""
    with database.autocommit() as connection:
        return [Scope(tenant_id=row[0]) for row in rows(connection, _UPKEEP["tenants"])]
