"""Creating, probing, starting and stopping the embedded server's processes.

Everything here is called with :func:`recollect.store._server_files.exclusive` held.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import sql

from recollect.errors import StoreUnavailableError
from recollect.store._server_account import make_reachable, server_account
from recollect.store._server_binaries import MAJOR_VERSION, Account, Outcome, run_program
from recollect.store._server_errors import explain
from recollect.store._server_files import SOCKET_NAME, Layout, connection_string, give_to_owner_of, remove_short_name
from recollect.store._server_process import ServerProcess, Shutdown
from recollect.store.tuning import settings_for, this_machine

_LOGGER = logging.getLogger(__name__)
_DRAFT_PREFIX = ".pg-init-"
_SETTINGS_FILE = "recollect.conf"
_LARGEST_LOG_BYTES = 5 * 1024 * 1024
_CONNECT_TIMEOUT_SECONDS = 10
_ATTEMPTS = 4
# A server that recovers within itself and is asked to stop meanwhile hangs for ever. So it ends with its first crashed
# session, and whoever needs it starts it. On the command line: there no other setting wins over it.
_OPTIONS = "-c restart_after_crash=off"
_SHORTEST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 1.0

State = Literal["ready", "no database", "busy", "stopping", "down"]

_FIXED_SETTINGS = {
    "listen_addresses": "",
    # Relative to the cluster: the path stays short however deep the store lies.
    "unix_socket_directories": "../run",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # Statements, and details of errors, hold the text of documents, which has no place in a log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}


@dataclass(frozen=True, slots=True)
class ServerControl:
    """The server of one store.

    Attributes:
        layout: Where it lives.
        account: The account it runs under; None means the caller's.
    """

    layout: Layout
    account: Account | None

    @classmethod
    def of(cls, layout: Layout) -> ServerControl:
        """Find out under which account this store's server runs.

        Raises:
            StoreUnavailableError: The caller is root and there is no such account.
        """
        return cls(layout, server_account(layout.root, layout.pgdata))

    @property
    def process(self) -> ServerProcess:
        """The processes of the server."""
        return ServerProcess(self.layout)

    def ensure_running(self, *, database: str, timeout_seconds: float) -> str:
        """Create the cluster, start the server and create the database, each only if it is missing.

        Args:
            database: The database's name.
            timeout_seconds: How long a start may take; it is long after a crash, when the server recovers.

        Returns:
            The connection string of the database.

        Raises:
            StoreUnavailableError: It cannot be done; the message says why and what to do.
        """
        deadline = time.monotonic() + timeout_seconds
        dsn = connection_string(self.layout, database=database)
        shutdown: Shutdown | None = None
        pause = _SHORTEST_PAUSE_SECONDS
        while True:
            state = self._probe(dsn)
            if state == "ready":
                return dsn
            if state == "no database":
                self._create_database(database)
                return dsn
            if time.monotonic() > deadline:
                raise self._too_late(timeout_seconds)
            if state == "down":
                shutdown = None
                self._prepare_cluster()
                self._launch(deadline)
            elif state == "stopping":
                shutdown = self._end_if_it_hangs(shutdown)
            if pause == _SHORTEST_PAUSE_SECONDS:
                _LOGGER.info("the server in %s is starting, recovering or stopping: waiting", self.layout.root)
            time.sleep(pause)
            # What waits for minutes asks seldom: every question costs the server a process and a line in its log.
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)

    def _end_if_it_hangs(self, shutdown: Shutdown | None) -> Shutdown | None:
        postmaster = self.process.postmaster()
        if postmaster is None:
            return None
        if shutdown is None or shutdown.postmaster != postmaster:
            shutdown = Shutdown(self.process, postmaster)
        if shutdown.hangs():
            self.process.end(postmaster)
        return shutdown

    def stop(self, *, wait_seconds: float) -> None:
        """Stop the server, and end it where it hangs; one that has much to write goes on by itself."""
        self.process.stop(wait_seconds=wait_seconds)
        if self.process.postmaster() is None:
            remove_short_name(self.layout)

    def _probe(self, dsn: str) -> State:
        phase = self.process.phase()
        if phase != "ready":
            return "busy" if phase == "starting" else phase
        try:
            psycopg.connect(dsn, connect_timeout=_CONNECT_TIMEOUT_SECONDS).close()
        except psycopg.OperationalError as exc:
            return self._state_behind(str(exc))
        return "ready"

    def _state_behind(self, message: str) -> State:
        if "does not exist" in message and "database" in message:
            return "no database"
        if "too many clients" in message or "remaining connection slots" in message:
            return "ready"
        passing = ("starting up", "shutting down", "recovery", "not yet accepting", "refused", "closed", "No such file")
        if any(phrase in message for phrase in passing):
            return "busy"
        raise explain("connect to the server", message, self.layout)

    def _create_database(self, database: str) -> None:
        maintenance = connection_string(self.layout, database="postgres")
        try:
            with psycopg.connect(maintenance, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_SECONDS) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        except psycopg.errors.DuplicateDatabase:
            pass
        except psycopg.Error as exc:
            raise explain("create the database", str(exc), self.layout) from exc

    # Creating the cluster

    def _prepare_cluster(self) -> None:
        for leftover in self.layout.root.glob(f"{_DRAFT_PREFIX}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        pgdata = self.layout.pgdata
        if not pgdata.exists():
            self._initialise()
            return
        version_file = pgdata / "PG_VERSION"
        if not version_file.is_file():
            msg = (
                f"{str(pgdata)!r} is not a PostgreSQL cluster (it has no PG_VERSION), so recollect leaves it alone. "
                "Move it away, or choose another data directory: --data-dir or RECOLLECT_DATA_DIR."
            )
            raise StoreUnavailableError(msg)
        version = version_file.read_text(encoding="ascii", errors="replace").strip()
        if version != str(MAJOR_VERSION):
            raise self._other_major_version(version)

    def _other_major_version(self, version: str) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"{str(self.layout.pgdata)!r} was written by PostgreSQL {version}; this recollect has {MAJOR_VERSION}, "
            "which cannot open it. With the recollect that wrote it: recollect db backup FILE. Then with this one and "
            "a new --data-dir: recollect db restore FILE."
        )

    def _initialise(self) -> None:
        # An interrupted initdb leaves only this folder, which the next start removes.
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT_PREFIX, dir=self.layout.root))
        self._hand_over(draft)
        # One syncfs makes it as durable as a thousand fsyncs, and several times faster.
        sync = ["--sync-method=syncfs"] if sys.platform == "linux" else []
        arguments = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums"]
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions", *sync]
        try:
            done = self._run("initdb", [*arguments, "-D", draft.name])
            if done.status != 0:
                raise explain("create the cluster", done.output, self.layout)
            with (draft / "postgresql.conf").open("a", encoding="utf-8") as file:
                file.write(
                    f"\n# Written anew at every start; ALTER SYSTEM overrides it.\ninclude = '{_SETTINGS_FILE}'\n"
                )
                file.flush()
                os.fsync(file.fileno())
            draft.rename(self.layout.pgdata)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    # Starting

    def _launch(self, deadline: float) -> None:
        self.process.remove_stale_note()
        # Nobody listens there: the number in the lock may be another process's by now, or another store's server's.
        for left_over in (f"{SOCKET_NAME}.lock", SOCKET_NAME):
            (self.layout.socket_dir / left_over).unlink(missing_ok=True)
        self._write_settings()
        self.layout.socket_dir.mkdir(mode=0o700, exist_ok=True)
        self._hand_over(self.layout.socket_dir)
        log_start = self._open_log()
        seconds = max(1, int(deadline - time.monotonic()))
        arguments = ["start", "--wait", f"--timeout={seconds}", "-s", "-D", "pg", "-l", self.layout.log.name]
        arguments += ["-o", _OPTIONS]
        done = self._run("pg_ctl", arguments)
        if done.status == 0:
            return
        log = self._log_since(log_start)
        # Another server, or what a killed one left behind, is still there: the caller looks again.
        if "still in use" in log or ("lock file" in log and "already exists" in log):
            self.process.end_orphans()
            return
        if "did not start in time" in done.output:
            raise self._too_late(seconds)
        raise explain("start the server", done.output, self.layout, log=log)

    def _too_late(self, seconds: float) -> StoreUnavailableError:
        tail = "\n".join(f"  {line}" for line in self._log_since(0).splitlines()[-5:])
        return StoreUnavailableError(
            f"The server in {str(self.layout.root)!r} was not ready after {seconds:.0f} s. It may still be recovering "
            f"from a crash: try again later. Its log ends:\n{tail}"
        )

    def _run(self, name: str, arguments: list[str]) -> Outcome:
        account = self.account
        if account is None:
            return run_program(name, arguments, folder=self.layout.root)
        for _ in range(_ATTEMPTS):
            make_reachable(self.layout.root, account)
            log_start = self._log_size()
            done = run_program(name, arguments, folder=self.layout.root, account=account)
            said = f"{done.output}\n{self._log_since(log_start)}"
            # Somebody may close a folder above at the same moment: pytest does so with root's at every start.
            if done.status == 0 or "permission denied" not in said.lower():
                break
        return done

    def _hand_over(self, path: Path) -> None:
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid, follow_symlinks=False)

    def _write_settings(self) -> None:
        settings = {**_FIXED_SETTINGS, **settings_for(this_machine())}
        if sys.platform == "linux":
            # After a crash every file is synced first: one by one that takes longer than the recovery itself.
            settings["recovery_init_sync_method"] = "syncfs"
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        file = self.layout.pgdata / _SETTINGS_FILE
        draft = file.with_suffix(".tmp")
        draft.write_text("".join(lines), encoding="ascii")
        self._hand_over(draft)
        draft.replace(file)

    def _open_log(self) -> int:
        log = self.layout.log
        if log.exists() and log.stat().st_size > _LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.old"))
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600))
        give_to_owner_of(self.layout.root, log)
        self._hand_over(log)
        return self._log_size()

    def _log_size(self) -> int:
        try:
            return self.layout.log.stat().st_size
        except FileNotFoundError:
            return 0

    def _log_since(self, start: int) -> str:
        try:
            with self.layout.log.open("rb") as file:
                file.seek(start)
                return file.read().decode("utf-8", errors="replace")
        except OSError:
            return ""
