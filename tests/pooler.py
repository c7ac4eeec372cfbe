"""PgBouncer before a server of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def _listens(place: Path) -> bool:
    """Whether a socket takes connections: it has its name a moment before it does."""
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(place)) == 0


@contextmanager
def bouncing(server: str, mode: str, *, size: int = 3, **settings: str) -> Iterator[str]:
    """A connection string through a PgBouncer of its own, which runs under the account of the server."""
    parts = conninfo_to_dict(server)
    owner = pwd.getpwuid(Path(parts["host"]).stat().st_uid).pw_name
    with tempfile.TemporaryDirectory(prefix="recollect-test-") as folder:
        users = Path(folder) / "users.txt"
        users.write_text('"postgres" ""\n"recollect_app" ""\n', encoding="ascii")
        lines = {
            "pool_mode": mode,
            "auth_type": "trust",
            "auth_file": users,
            "unix_socket_dir": folder,
            "listen_port": "6432",
            "default_pool_size": size,
            "max_client_conn": 100,
            "logfile": f"{folder}/log",
            **settings,
        }
        text = "\n".join(f"{name} = {value}" for name, value in lines.items())
        configuration = Path(folder) / "pgbouncer.ini"
        databases = f"[databases]\n* = host={parts['host']} port={parts['port']}\n"
        configuration.write_text(f"{databases}[pgbouncer]\n{text}\n", encoding="ascii")
        account = []
        if os.geteuid() == 0:
            account = ["-u", owner]
            for path in (Path(folder), users, configuration):
                shutil.chown(path, owner)
        process = subprocess.Popen([PROGRAM, *account, "-q", configuration], stdin=subprocess.DEVNULL)
        try:
            while not _listens(Path(folder) / ".s.PGSQL.6432"):
                assert process.poll() is None, (Path(folder) / "log").read_text()
                time.sleep(0.005)
            yield make_conninfo(server, host=folder, port=6432)
        finally:
            process.terminate()
            process.wait()
