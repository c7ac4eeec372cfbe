"""Every stop of the embedded server ends, whatever state the server is in."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest

from conftest import postmaster, value
from recollect.errors import StoreUnavailableError
from recollect.store import _server_process
from recollect.store.embedded import EmbeddedServer


@pytest.fixture
def impatient(monkeypatch):
    """A server that does nothing for a moment counts as hung."""
    monkeypatch.setattr(_server_process, "_IDLE_SECONDS", 0.3)
    monkeypatch.setattr(_server_process, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(_server_process, "_QUIT_SECONDS", 0.3)


def running(folder: Path) -> psutil.Process:
    process = postmaster(folder)
    assert process is not None
    return process


def checkpointer(folder: Path) -> psutil.Process:
    return next(child for child in running(folder).children() if "checkpointer" in " ".join(child.cmdline()))


@contextmanager
def frozen(process: psutil.Process) -> Iterator[None]:
    """Nothing that a stopped process is asked for happens: it hangs as one does that waits for what never comes."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        if process.is_running():
            process.send_signal(signal.SIGCONT)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == _server_process.__name__]


def shared_memory(process: psutil.Process) -> list[Path]:
    """What a process has of the memory that outlives it."""
    return [Path(area.path) for area in process.memory_maps() if area.path.startswith("/dev/shm/PostgreSQL.")]


def test_the_last_user_lets_go_while_a_crashed_session_is_cleared_up(data_dir):
    for number in range(4):
        server = EmbeddedServer(data_dir)
        with psycopg.connect(server.start(), autocommit=True) as session:
            session.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS number WHERE false")
            session.execute("INSERT INTO kept VALUES (1)")
            process = running(data_dir)
            os.kill(session.info.backend_pid, signal.SIGKILL)
            if number % 2:
                with pytest.raises(psycopg.OperationalError):
                    session.execute("SELECT 1")
            server.stop()
        process.wait(timeout=10)
    with EmbeddedServer(data_dir) as dsn:
        assert value(dsn, "SELECT count(*) FROM kept") == 4


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("part", [running, checkpointer], ids=["postmaster", "checkpointer"])
def test_a_server_that_hangs_is_ended_by_its_last_user(data_dir, part, caplog):
    server = EmbeddedServer(data_dir)
    with psycopg.connect(server.start(), autocommit=True) as session:
        session.execute("CREATE TABLE kept AS SELECT 1 AS number")
    process = running(data_dir)
    memory = shared_memory(process)
    with frozen(part(data_dir)), caplog.at_level(logging.WARNING, logger=_server_process.__name__):
        server.stop(wait_seconds=0.1)
        process.wait(timeout=10)
    assert said(caplog) == [
        f"The server in {data_dir} hung while shutting down, and was ended. Nothing that was committed is lost."
    ]
    with EmbeddedServer(data_dir) as dsn:
        assert value(dsn, "SELECT count(*) FROM kept") == 1
    assert [path for path in memory if path.exists()] == []


@pytest.mark.usefixtures("impatient")
def test_whoever_meets_a_server_that_hangs_ends_it_and_says_so(data_dir, caplog):
    with EmbeddedServer(data_dir):
        hung = running(data_dir)
        with frozen(checkpointer(data_dir)), caplog.at_level(logging.WARNING, logger=_server_process.__name__):
            hung.send_signal(signal.SIGINT)
            with EmbeddedServer(data_dir) as dsn:
                assert value(dsn, "SELECT 1") == 1
                assert running(data_dir) != hung
    assert len(said(caplog)) == 1


@pytest.mark.usefixtures("impatient")
def test_sessions_that_outlive_a_killed_server_do_not_stop_the_next(data_dir):
    with EmbeddedServer(data_dir) as dsn, psycopg.connect(dsn, autocommit=True) as session:
        outlives = psutil.Process(session.info.backend_pid)
        with frozen(outlives):
            running(data_dir).kill()
            server = EmbeddedServer(data_dir)
            assert value(server.start(), "SELECT 1") == 1
            outlives.wait(timeout=10)
            server.stop()


def test_what_a_killed_process_was_doing_holds_up_no_stop(data_dir, python):
    source = """
import sys, psycopg
from pathlib import Path
from recollect.store.embedded import EmbeddedServer
session = psycopg.connect(EmbeddedServer(Path(sys.argv[1])).start())
session.execute("CREATE TABLE half_made AS SELECT 1 AS number")
print("begun", flush=True)
session.execute("SELECT count(*) FROM generate_series(1, 10000000000)")
"""
    victim = python(source, data_dir)
    assert victim.stdout.readline() == "begun\n"
    victim.kill()
    victim.wait()
    with EmbeddedServer(data_dir) as dsn:
        assert value(dsn, "SELECT to_regclass('half_made')") is None
    assert postmaster(data_dir) is None


@pytest.fixture
def recovering(data_dir) -> Iterator[psutil.Process]:
    """A server in recovery that lasts: it waits for an archive."""
    with EmbeddedServer(data_dir):
        pass
    with (data_dir / "pg" / "postgresql.auto.conf").open("a", encoding="ascii") as file:
        file.write("restore_command = 'sleep 60; false'\n")
    (data_dir / "pg" / "recovery.signal").touch()
    with pytest.raises(StoreUnavailableError, match=r"may still be recovering|was not ready"):
        EmbeddedServer(data_dir, start_timeout_seconds=0.5).start()
    process = running(data_dir)
    yield process
    for member in (process, *process.children(recursive=True)):
        member.kill()


def test_a_server_that_recovers_is_left_alone(data_dir, recovering):
    with pytest.raises(StoreUnavailableError, match="try again later"):
        EmbeddedServer(data_dir, start_timeout_seconds=0.2).start()
    assert running(data_dir) == recovering
    assert (data_dir / "pg" / "postmaster.pid").read_text(encoding="utf-8").split("\n")[7].strip() == "starting"


def test_waiting_leaves_no_lines_in_the_log(data_dir, recovering):
    log = (data_dir / "server.log").read_text(encoding="utf-8")
    with pytest.raises(StoreUnavailableError, match="try again later"):
        EmbeddedServer(data_dir, start_timeout_seconds=0.5).start()
    assert (data_dir / "server.log").read_text(encoding="utf-8") == log
    assert running(data_dir) == recovering


def test_a_store_that_is_moved_while_its_server_runs_is_still_stopped(data_dir, tmp_path):
    server = EmbeddedServer(data_dir)
    server.start()
    process = running(data_dir)
    data_dir.rename(tmp_path / "moved")
    with pytest.raises(StoreUnavailableError, match="was moved or removed while it was in use"):
        server.start()
    with EmbeddedServer(tmp_path / "moved") as dsn:
        assert value(dsn, "SELECT 1") == 1
        assert running(tmp_path / "moved") == process
        server.stop()
        assert process.is_running()
    assert postmaster(tmp_path / "moved") is None
    assert not data_dir.exists()


def test_the_last_user_of_a_moved_store_stops_its_server(data_dir, tmp_path):
    with EmbeddedServer(data_dir):
        data_dir.rename(tmp_path / "moved")
    assert postmaster(tmp_path / "moved") is None


def test_a_copy_of_a_running_store_says_so(data_dir, tmp_path):
    with EmbeddedServer(data_dir) as dsn:
        subprocess.run(["cp", "-a", str(data_dir), str(tmp_path / "copy")], check=True)
        with pytest.raises(StoreUnavailableError, match=r"is a copy of .* made while its server ran"):
            EmbeddedServer(tmp_path / "copy").start()
        assert value(dsn, "SELECT 1") == 1
    assert postmaster(tmp_path / "copy") is None


def test_locks_of_another_stores_socket_are_no_hindrance(data_dir, tmp_path):
    with EmbeddedServer(data_dir):
        subprocess.run(["cp", "-a", str(data_dir), str(tmp_path / "copy")], check=True)
        (tmp_path / "copy" / "pg" / "postmaster.pid").unlink()
        with EmbeddedServer(tmp_path / "copy") as dsn:
            assert value(dsn, "SHOW data_directory") == str(tmp_path / "copy" / "pg")
