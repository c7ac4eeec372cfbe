"""Creating the embedded server's cluster, and starting its server.

Everything here is called with :func:`recollect.store._server_files.exclusive` held.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import time
from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg import sql

from recollect.errors import StoreUnavailableError
from recollect.store._folder import Folder, Owner
from recollect.store._server_account import (
    MAJOR_VERSION,
    Account,
    Outcome,
    reachable_installation,
    require_reachable,
    run_program,
    server_account,
)
from recollect.store._server_files import (
    LOG,
    PGDATA,
    SOCKET_FOLDER,
    SOCKET_NAME,
    Layout,
    connection_string,
    explain,
)
from recollect.store._server_process import ServerProcess, Shutdown
from recollect.store.tuning import settings_for, this_machine

_LOGGER = logging.getLogger(__name__)
_DRAFT_PREFIX = ".pg-init-"
_SETTINGS_FILE = "recollect.conf"
_INCLUDE = f"\n# Written anew at every start; ALTER SYSTEM overrides it.\ninclude = '{_SETTINGS_FILE}'\n"
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
        folder: Where it lives.
        account: The account it runs under; None means the caller's.
    """

    folder: Folder
    account: Account | None

    @classmethod
    def of(cls, folder: Folder) -> ServerControl:
        """Find out under which account this store's server runs.

        Raises:
            StoreUnavailableError: The caller is root and there is no such account.
        """
        return cls(folder, server_account(folder, PGDATA))

    @property
    def process(self) -> ServerProcess:
        """The processes of the server."""
        return ServerProcess(self.folder)

    @property
    def layout(self) -> Layout:
        """What lies where, for messages and for programs that run under the server's account."""
        return Layout(self.folder.path)

    @property
    def _owner(self) -> Owner | None:
        return Owner(self.account.uid, self.account.gid) if self.account else None

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
        # The empty database that initdb made: to rename it is quicker than to copy it, and nothing uses two.
        maintenance = connection_string(self.layout, database="template1")
        wanted = sql.Identifier(database)
        try:
            with psycopg.connect(maintenance, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_SECONDS) as connection:
                try:
                    connection.execute(sql.SQL("ALTER DATABASE postgres RENAME TO {}").format(wanted))
                except (psycopg.errors.InvalidCatalogName, psycopg.errors.ObjectInUse):
                    connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(wanted))
        except psycopg.errors.DuplicateDatabase:
            pass
        except psycopg.Error as exc:
            raise explain("create the database", str(exc), self.layout) from exc

    # Creating the cluster

    def _prepare_cluster(self) -> None:
        for leftover in self.folder.names():
            if leftover.startswith(_DRAFT_PREFIX):
                self.folder.remove_tree(leftover)
        if self.folder.status(PGDATA) is None:
            self._initialise()
            return
        try:
            with self.folder.folder(PGDATA) as cluster:
                version = cluster.read("PG_VERSION").decode("ascii", errors="replace").strip()
        except FileNotFoundError:
            msg = (
                f"{str(self.layout.pgdata)!r} is not a PostgreSQL cluster (it has no PG_VERSION), so recollect leaves "
                "it alone. Move it away, or choose another data directory: --data-dir or RECOLLECT_DATA_DIR."
            )
            raise StoreUnavailableError(msg) from None
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
        name = f"{_DRAFT_PREFIX}{secrets.token_hex(4)}"
        # One syncfs makes it as durable as a thousand fsyncs, and several times faster.
        sync = ["--sync-method=syncfs"] if sys.platform == "linux" else []
        arguments = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums"]
        arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions", *sync]
        try:
            with self.folder.make_folder(name, self._owner) as draft:
                done = self._run("initdb", [*arguments, "-D", name])
                if done.status != 0:
                    raise explain("create the cluster", done.output, self.layout)
                settings = draft.read("postgresql.conf", theirs_only=True)
                draft.write("postgresql.conf", settings + _INCLUDE.encode(), self._owner, durable=True)
            self.folder.rename(name, PGDATA)
        finally:
            self.folder.remove_tree(name)

    # Starting

    def _launch(self, deadline: float) -> None:
        self.process.remove_stale_note()
        self._write_settings()
        with self.folder.make_folder(SOCKET_FOLDER, self._owner) as run:
            # Nobody listens there: the number in the lock may be another process's by now, or another store's server's.
            for left_over in (f"{SOCKET_NAME}.lock", SOCKET_NAME):
                run.remove(left_over)
        log_start = self._open_log()
        seconds = max(1, int(deadline - time.monotonic()))
        arguments = ["start", "--wait", f"--timeout={seconds}", "-s", "-D", "pg", "-l", LOG]
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
        programs = reachable_installation(account)
        for _ in range(_ATTEMPTS):
            require_reachable(self.layout.root, account)
            log_start = self._log_size()
            done = run_program(name, arguments, folder=self.layout.root, account=account, programs=programs)
            said = f"{done.output}\n{self._log_since(log_start)}"
            # Somebody may close a folder above at the same moment: pytest does so with root's at every start.
            if done.status == 0 or "permission denied" not in said.lower():
                break
        return done

    def _write_settings(self) -> None:
        settings = {**_FIXED_SETTINGS, **settings_for(this_machine())}
        if sys.platform == "linux":
            # After a crash every file is synced first: one by one that takes longer than the recovery itself.
            settings["recovery_init_sync_method"] = "syncfs"
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        with self.folder.folder(PGDATA) as cluster:
            cluster.write(_SETTINGS_FILE, "".join(lines).encode("ascii"), self._owner)

    def _open_log(self) -> int:
        if self._log_size() > _LARGEST_LOG_BYTES:
            self.folder.rename(LOG, f"{LOG}.old")
        os.close(self.folder.open_file(LOG, os.O_WRONLY | os.O_APPEND, self._owner))
        return self._log_size()

    def _log_size(self) -> int:
        info = self.folder.status(LOG)
        return 0 if info is None else info.st_size

    def _log_since(self, start: int) -> str:
        try:
            return self.folder.read(LOG, start=start).decode("utf-8", errors="replace")
        except OSError:
            return ""
