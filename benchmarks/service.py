"""The service as a machine runs it: PostgreSQL, the server and a worker, each started anew when it ends.

What supervises them here is this module: a thread each, which does what systemd does with ``Restart=always`` and
``RestartSec=0.5``. PostgreSQL runs as in production, with ``fsync`` and ``synchronous_commit`` on.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg

from recollect.store._folder import Folder
from recollect.store._server_account import installation, reachable_installation, server_account
from recollect.store._server_files import PGDATA, Layout, connection_string
from recollect.store.embedded import DATABASE, EmbeddedServer

COMMAND = [sys.executable, "-m", "recollect.cli.main"]
RESTART_SECONDS = 0.5


@dataclass
class Program:
    """A process that is started anew whenever it ends, until it is stopped.

    Attributes:
        name: What it is called in figures.
        command: What is run.
        environment: Of the process.
        log: The file that it writes to.
        account: The user and group that it runs as; None: the caller's.
        starts: How often it was started.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    account: tuple[int, int] | None = None
    starts: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _process: subprocess.Popen[bytes] | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start it, and whenever it ends again."""
        self._launch()
        self._thread = threading.Thread(target=self._supervise, name=f"supervise-{self.name}", daemon=True)
        self._thread.start()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it for good."""
        self._ended.set()
        assert self._process is not None
        self._process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        for process in [] if self._process.poll() is not None else self.family():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def kill(self, *, with_children: bool = False) -> None:
        """End it with SIGKILL; the supervisor starts it anew."""
        victims = self.family() if with_children else self.family()[:1]
        for process in victims:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def family(self) -> list[psutil.Process]:
        """The process, and what it has started."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return [process, *process.children(recursive=True)]
        return []

    @property
    def pid(self) -> int:
        """Of the process that runs now, or ran last."""
        assert self._process is not None
        return self._process.pid

    def _launch(self) -> None:
        user, group = self.account or (None, None)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                user=user,
                group=group,
                extra_groups=None if user is None else [],
            )
        self.starts += 1

    def _supervise(self) -> None:
        assert self._process is not None
        while True:
            self._process.wait()
            if self._ended.wait(RESTART_SECONDS):
                return
            self._launch()


@dataclass
class Service:
    """PostgreSQL, the server and a worker, supervised.

    Attributes:
        postgres: The database's server.
        server: What answers.
        worker: What does the jobs.
        url: Where the server answers.
        dsn: Where the database is.
        data: Its folder.
    """

    postgres: Program
    server: Program
    worker: Program
    url: str
    dsn: str
    data: Path

    def connect(self) -> psycopg.Connection:
        """A connection of the owner, in the first tenant, outside of transactions."""
        connection = psycopg.connect(self.dsn, autocommit=True, connect_timeout=10)
        connection.execute("SET search_path = recollect, public; SET recollect.tenant_id = 1")
        return connection


@contextmanager
def running(
    work: Path, *, environment: dict[str, str], server: list[str] | None = None, worker: bool = True
) -> Iterator[Service]:
    """A service on a fresh store, until the block ends.

    Args:
        work: An empty folder, which the database's account can pass through.
        environment: Settings of the server and the worker.
        server: What is run as the server, given the port in place of ``{port}``; by default ``recollect serve``.
        worker: Whether a worker runs.
    """
    data = work / "data"
    with EmbeddedServer(data):
        pass
    dsn = connection_string(Layout(data), database=DATABASE)
    port = _free_port()
    own = {**os.environ, **environment, "RECOLLECT_DSN": dsn, "RECOLLECT_DATA_DIR": str(work / "unused")}
    command = server or [*COMMAND, "serve", "--port", "{port}", "--no-worker"]
    service = Service(
        postgres=_postgres(data, work / "postgres.log"),
        server=Program("server", [part.format(port=port) for part in command], own, work / "server.log"),
        worker=Program("worker", [*COMMAND, "worker", "--concurrency", "2"], own, work / "worker.log"),
        url=f"http://127.0.0.1:{port}",
        dsn=dsn,
        data=data,
    )
    programs = [service.postgres, service.server, *([service.worker] if worker else [])]
    started: list[Program] = []
    try:
        for program in programs:
            program.start()
            started.append(program)
            if program is service.postgres:
                until(lambda: _answers(dsn), what="PostgreSQL answers")
        yield service
    finally:
        for program in reversed(started):
            program.stop(signal.SIGINT if program is service.postgres else signal.SIGTERM)


def until(condition: Callable[[], bool], *, what: str, seconds: float = 120.0) -> float:
    """Wait for something; returns how long it took, or ends the program."""
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > seconds:
            raise SystemExit(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.02)
    return time.perf_counter() - begun


def _postgres(data: Path, log: Path) -> Program:
    with Folder.open(data) as folder:
        account = server_account(folder, PGDATA)
    programs = installation() if account is None else reachable_installation(account)
    command = [str(programs / "bin" / "postgres"), "-D", str(data / PGDATA)]
    own = {**os.environ, "PGDATA": str(data / PGDATA)}
    return Program("PostgreSQL", command, own, log, account and (account.uid, account.gid))


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
