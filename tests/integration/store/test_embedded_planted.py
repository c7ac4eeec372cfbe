"""As root, recollect works in folders of other accounts, who may put links in place of every file it touches."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from conftest import value
from recollect.errors import RecollectError, StoreUnavailableError
from recollect.store import _server_files
from recollect.store import backup as backup_module
from recollect.store._folder import Folder, Owner
from recollect.store._server_control import ServerControl
from recollect.store._server_files import exclusive
from recollect.store.embedded import EmbeddedServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root works in folders of other accounts")
SOMEBODY = Owner(65534, 65534)


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file of root's that must stay as it is."""
    file = tmp_path / "precious"
    file.write_text("root's own", encoding="ascii")
    file.chmod(0o600)
    before = file.stat()
    yield file
    after = file.stat()
    assert file.read_text(encoding="ascii") == "root's own"
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


@pytest.fixture
def precious_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of root's that must stay as it is."""
    folder = tmp_path / "precious.d"
    folder.mkdir(mode=0o755)
    (folder / "postmaster.pid").write_text("1\n", encoding="ascii")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["postmaster.pid"]
    assert folder.stat().st_uid == 0


@pytest.fixture
def theirs(data_dir: Path) -> Path:
    """A store that is somebody else's altogether."""
    subprocess.run(["chown", "-R", f"{SOMEBODY.uid}:{SOMEBODY.gid}", str(data_dir)], check=True)
    return data_dir


def plant(link: Path, target: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    os.lchown(link, SOMEBODY.uid, SOMEBODY.gid)


def try_to_use(folder: Path) -> None:
    """Whether it works or is refused is all the same: what matters is what became of root's files."""
    try:
        with EmbeddedServer(folder, start_timeout_seconds=5):
            pass
    except StoreUnavailableError:
        pass


CLUSTER_FILES = [
    "recollect.conf",
    "recollect.conf.tmp",
    "recollect.tmp",
    "postmaster.pid",
    "PG_VERSION",
    "postgresql.conf",
]
STORE_FILES = [".lock", ".users", "server.log", "server.log.old", "run/.s.PGSQL.5432.lock"]


@pytest.mark.parametrize("name", CLUSTER_FILES)
def test_links_inside_the_cluster(data_dir, precious, name):
    plant(data_dir / "pg" / name, precious)
    try_to_use(data_dir)


@pytest.mark.parametrize("name", STORE_FILES)
def test_links_in_somebodys_store(theirs, precious, name):
    plant(theirs / name, precious)
    try_to_use(theirs)


@pytest.mark.parametrize("name", [".lock", ".users", "server.log", "pg/recollect.conf", "pg/PG_VERSION"])
def test_hard_links_give_nothing_away(theirs, precious, name):
    (theirs / name).unlink(missing_ok=True)
    (theirs / name).hardlink_to(precious)
    try_to_use(theirs)


@pytest.mark.parametrize("name", ["pg", "run", ".pg-init-x"])
def test_links_in_place_of_folders(theirs, precious_folder, name):
    if (theirs / name).exists():
        (theirs / name).rename(theirs / "aside")
    plant(theirs / name, precious_folder)
    try_to_use(theirs)


def test_a_pipe_in_place_of_a_file_holds_nobody_up(data_dir):
    (data_dir / "pg" / "postmaster.pid").unlink(missing_ok=True)
    os.mkfifo(data_dir / "pg" / "postmaster.pid")
    with pytest.raises(StoreUnavailableError, match="no ordinary file"):
        EmbeddedServer(data_dir).start()


def test_a_link_is_named(theirs, precious):
    plant(theirs / ".lock", precious)
    with pytest.raises(StoreUnavailableError, match=r"\.lock'.*symbolic link"):
        EmbeddedServer(theirs).start()


def test_a_note_of_the_servers_account_names_no_process_of_roots(data_dir):
    sleeper = subprocess.Popen(["sleep", "60"], cwd=data_dir / "pg")
    try:
        note = f"{sleeper.pid}\n{data_dir / 'pg'}\n1700000000\n5432\n../run\n\n  1 2\nready\n"
        (data_dir / "pg" / "postmaster.pid").write_text(note, encoding="ascii")
        os.chown(data_dir / "pg" / "postmaster.pid", *owner_of(data_dir / "pg"))
        with EmbeddedServer(data_dir) as dsn:
            assert value(dsn, "SELECT 1") == 1
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def owner_of(path: Path) -> Owner:
    return Owner(path.stat().st_uid, path.stat().st_gid)


def test_links_planted_again_and_again_while_the_settings_are_written(data_dir, precious):
    ended = threading.Event()

    def plant_for_ever() -> None:
        while not ended.is_set():
            for name in ("recollect.conf.tmp", "recollect.conf"):
                try:
                    plant(data_dir / "pg" / name, precious)
                except OSError:
                    continue

    planter = threading.Thread(target=plant_for_ever)
    with Folder.open(data_dir) as folder, exclusive(folder, timeout_seconds=5):
        control = ServerControl.of(folder)
        planter.start()
        try:
            for _ in range(300):
                try:
                    control._write_settings()
                except OSError:
                    continue
        finally:
            ended.set()
            planter.join()


def test_folders_exchanged_again_and_again_while_they_are_used(theirs, precious_folder):
    ended = threading.Event()
    pg, aside = theirs / "pg", theirs / "aside"

    def exchange_for_ever() -> None:
        while not ended.is_set():
            pg.rename(aside)
            pg.symlink_to(precious_folder)
            pg.unlink()
            aside.rename(pg)

    exchanger = threading.Thread(target=exchange_for_ever)
    exchanger.start()
    try:
        with Folder.open(theirs) as folder:
            for _ in range(100):
                try:
                    control = ServerControl.of(folder)
                    control.process.remove_stale_note()
                    control._write_settings()
                except (OSError, RecollectError):
                    continue
    finally:
        ended.set()
        exchanger.join()


def test_the_short_name_lies_where_nobody_else_can_rename_it(data_dir, tmp_path, monkeypatch):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, *SOMEBODY)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(_server_files, "_LONGEST_SOCKET_PATH", len(str(data_dir)))
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as short:
        monkeypatch.setattr("tempfile.gettempdir", lambda: short)
        monkeypatch.setattr(_server_files, "_LONGEST_SOCKET_PATH", len(short) + 50)
        renamed = tmp_path / ("long" * 30)
        data_dir.rename(renamed)
        with EmbeddedServer(renamed) as dsn:
            assert str(runtime) not in dsn
    assert list(runtime.iterdir()) == []


def test_a_backup_into_somebodys_folder_follows_no_link(dsn, tmp_path, precious, monkeypatch):
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, *SOMEBODY)
    planted, ended = threading.Event(), threading.Event()
    write = backup_module._write

    def write_behind_the_link(*arguments) -> None:
        assert planted.wait(60)
        write(*arguments)

    monkeypatch.setattr(backup_module, "_write", write_behind_the_link)

    def replace_drafts() -> None:
        while not ended.is_set():
            for draft in folder.glob(".*.part"):
                # The program may have renamed or removed it, or the link in its place, at any moment.
                with suppress(FileNotFoundError):
                    plant(draft, precious)
                    planted.set()

    planter = threading.Thread(target=replace_drafts)
    planter.start()
    try:
        backup_module.backup(dsn, folder / "store.backup", overwrite=True)
    except RecollectError:
        pass
    finally:
        ended.set()
        planter.join()


def test_a_new_cluster_takes_its_settings_from_no_link(tmp_path, precious, monkeypatch):
    original = ServerControl._run

    def plant_after(self: ServerControl, name: str, arguments: list[str]):
        done = original(self, name, arguments)
        if name == "initdb":
            draft = next(path for path in self.folder.path.iterdir() if path.name.startswith(".pg-init-"))
            plant(draft / "postgresql.conf", precious)
        return done

    monkeypatch.setattr(ServerControl, "_run", plant_after)
    with pytest.raises(StoreUnavailableError):
        EmbeddedServer(tmp_path / "data").start()
    assert not (tmp_path / "data" / "pg").exists()


def test_what_root_makes_in_somebodys_store_is_theirs(theirs):
    for name in (".lock", ".users", "server.log"):
        (theirs / name).unlink(missing_ok=True)
    with EmbeddedServer(theirs) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1")
    assert {owner_of(path).uid for path in (theirs, *theirs.rglob("*"))} == {SOMEBODY.uid}
