"""A PostgreSQL server with streaming replicas, of the programs that recollect brings."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from recollect.store._server_account import (
    Account,
    _dedicated_account,
    installation,
    reachable_installation,
    run_program,
)
from recollect.store.migrate import migrate
from server import reachable_folder

TEMPLATE = "recollect_template"
# What a standby needs, and nothing that protects data: nobody misses a test's.
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "fsync": "off",
    "full_page_writes": "on",
    "shared_buffers": "24MB",
    "wal_level": "replica",
    "max_wal_senders": "6",
    "max_standby_streaming_delay": "0",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "50ms",
    "autovacuum": "off",
    "logging_collector": "off",
}


@dataclass
class Server:
    """One server of the cluster."""

    folder: Path
    account: Account | None
    programs: Path

    def dsn(self, database: str = "postgres") -> str:
        return make_conninfo("", host=str(self.folder), port="5432", user="postgres", dbname=database)

    def run(self, program: str, *arguments: str) -> None:
        done = run_program(program, arguments, folder=self.folder, account=self.account, programs=self.programs)
        log = self.folder / "log"
        assert done.status == 0, f"{done.output}\n{log.read_text() if log.exists() else ''}"

    def configure(self, **settings: str) -> None:
        """Add settings to those of the server's file."""
        with (self.folder / "pg/postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in settings.items())

    def owned(self, path: Path) -> Path:
        """Give what the test made to the account that the server runs under."""
        if self.account is not None:
            for one in (path, *path.rglob("*")):
                os.chown(one, self.account.uid, self.account.gid)
        return path

    def start(self) -> None:
        self.run("pg_ctl", "start", "--wait", "-s", "-D", "pg", "-l", "log", "-o", f"-k {self.folder}")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "stop", "--wait", "-s", "-D", "pg", "-m", mode)

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "--wait", "-s", "-D", "pg")

    @property
    def running(self) -> bool:
        return (self.folder / "pg/postmaster.pid").exists()

    def ask(self, query: str, database: str = "postgres") -> object:
        """The first value of what a superuser is answered."""
        with psycopg.connect(self.dsn(database), autocommit=True) as connection:
            done = connection.execute(query)
            row = done.fetchone() if done.description else None
            return row and row[0]


@dataclass
class Cluster:
    """A primary, its replicas, and databases in them."""

    root: Path
    primary: Server
    replica: Server
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of a migrated, empty one, which the replica has too."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.primary.dsn(), autocommit=True) as connection:
            made = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(made.format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
            self.caught_up()
            yield name
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def another_replica(self) -> Iterator[Server]:
        """One more, for a test that kills or promotes it."""
        server = new_server(self.root / f"replica{next(self._numbers)}", self.primary)
        _follow(server, self.primary)
        try:
            yield server
        finally:
            if server.running:
                server.stop()
            shutil.rmtree(server.folder)

    def caught_up(self, replica: Server | None = None) -> None:
        """Wait until a replica has replayed what the primary has written."""
        newest = self.primary.ask("SELECT pg_current_wal_flush_lsn()::text")
        with psycopg.connect((replica or self.replica).dsn(), autocommit=True) as connection:
            wait = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn FROM pg_sleep(0.005)"
            while not connection.execute(wait, [newest]).fetchone()[0]:
                pass

    @contextmanager
    def paused(self, replica: Server | None = None) -> Iterator[None]:
        """Keep a replica as it is at this moment."""
        server = replica or self.replica
        self.caught_up(server)
        server.ask("SELECT pg_wal_replay_pause()")
        while server.ask("SELECT pg_get_wal_replay_pause_state()") != "paused":
            pass
        try:
            yield
        finally:
            if server.running:
                server.ask("SELECT pg_wal_replay_resume()")


def programs(root: Path) -> Server:
    """What servers below a folder are made like."""
    account = _dedicated_account() if os.geteuid() == 0 else None
    return Server(root, account, installation() if account is None else reachable_installation(account))


def initialise(server: Server) -> None:
    """Make an empty cluster, which is not started."""
    arguments = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    server.run("initdb", *arguments, "--no-instructions", "-D", "pg")
    server.configure(**_SETTINGS)


@contextmanager
def replicated() -> Iterator[Cluster]:
    """A primary and a replica of it, both running."""
    with reachable_folder() as root:
        model = programs(root)
        primary = new_server(root / "primary", model)
        initialise(primary)
        primary.start()
        replica = new_server(root / "replica", model)
        try:
            primary.ask(f"CREATE DATABASE {TEMPLATE}")
            migrate(primary.dsn(TEMPLATE))
            _follow(replica, primary)
            yield Cluster(root, primary, replica)
        finally:
            for server in (replica, primary):
                if server.running:
                    server.stop()


def new_server(folder: Path, like: Server) -> Server:
    """A folder for a server."""
    folder.mkdir(mode=0o711)
    if like.account is not None:
        os.chown(folder, like.account.uid, like.account.gid)
    return Server(folder, like.account, like.programs)


def _follow(replica: Server, primary: Server) -> None:
    source = f"--dbname=host={primary.folder} port=5432 user=postgres"
    replica.run("pg_basebackup", source, "-D", "pg", "-R", "-X", "stream", "-c", "fast", "--no-sync")
    replica.start()
