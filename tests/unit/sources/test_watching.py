"""What changes in folders is told once it has settled, and nothing is missed."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import watchfiles
from hypothesis import given
from hypothesis import strategies as st

from recollect.sources import watching
from recollect.sources.watching import FolderChanges, FolderWatch, Settling, identity_of, on_network, told_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    return made


@pytest.fixture
def changes(folder: Path) -> Iterator[Iterator[FolderChanges]]:
    stop = threading.Event()
    told = FolderWatch([folder], stop=stop).changes()
    assert next(told) == FolderChanges(folder, whole=True)
    yield told
    stop.set()
    assert list(told) == []


def test_a_file_is_told_once_it_is_settled_and_only_then():
    settling = Settling(settle_seconds=0.2)
    settling.note(Path("a.md"), 1.0)
    settling.note(Path("a.md"), 1.15)
    assert settling.take(1.3) == []
    assert settling.take(1.36) == [Path("a.md")]
    assert settling.take(9.0) == []


def test_what_happens_at_once_is_told_at_once():
    settling = Settling(settle_seconds=0.2)
    # As fast as a busy machine writes them.
    for number in range(1_000):
        settling.note(Path(f"{number}.md"), number / 300)
        if number % 30 == 0:
            assert settling.take(number / 300) == []
    assert len(settling.take(3.6)) == 1_000


def test_what_is_settled_does_not_wait_for_ever_for_what_is_not():
    settling = Settling(settle_seconds=0.2)
    settling.note(Path("saved.md"), 0.0)
    now = 0.0
    while not (taken := settling.take(now)):
        settling.note(Path("log.txt"), now)
        now += 0.1
    assert taken == [Path("saved.md")]
    assert now < 1.2


def test_what_never_settles_is_told_now_and_then():
    settling = Settling(settle_seconds=0.2)
    told = []
    for tick in range(300):
        settling.note(Path("log.txt"), tick / 10)
        told += settling.take(tick / 10)
    assert told == [Path("log.txt")] * 2


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 3)), max_size=40))
def test_every_change_is_told_after_it_was_made(events):
    settling, now, waiting = Settling(settle_seconds=0.2), 0.0, set()
    for name, pause in events:
        now += pause
        settling.note(Path(name), now)
        waiting.add(Path(name))
        waiting -= set(settling.take(now + 0.01))
    taken = settling.take(now + 20)
    assert set(taken) == waiting and len(taken) == len(set(taken))


def test_what_is_saved_by_renaming_and_temporary_files_is_one_change(folder: Path, changes):
    (folder / ".page.md.swp").write_text("half", encoding="utf-8")
    (folder / ".page.md.swp").rename(folder / "page.md")
    (folder / ".git").mkdir()
    (folder / ".git" / "index").write_text("x", encoding="utf-8")
    assert next(changes).paths == (folder / "page.md",)


def test_files_of_a_folder_that_comes_as_a_whole_are_not_missed(folder: Path, tmp_path: Path, changes):
    made = tmp_path / "elsewhere"
    (made / "deep").mkdir(parents=True)
    (made / "deep" / "page.md").write_text("deep", encoding="utf-8")
    made.rename(folder / "moved")
    # The system tells of the folder; whoever looks at it finds what is in it.
    assert folder / "moved" in next(changes).paths
    (folder / "moved" / "deep" / "page.md").write_text("changed", encoding="utf-8")
    assert next(changes).paths == (folder / "moved" / "deep" / "page.md",)


def test_a_folder_that_is_made_anew_is_looked_through(folder: Path, changes):
    shutil.rmtree(folder)
    told = next(changes)
    while told.paths:
        told = next(changes)
    assert told == FolderChanges(folder, gone=True)
    folder.mkdir()
    (folder / "back.md").write_text("back", encoding="utf-8")
    assert next(changes) == FolderChanges(folder, whole=True)
    (folder / "more.md").write_text("more", encoding="utf-8")
    assert next(changes).paths == (folder / "more.md",)


def test_too_many_changes_are_a_reason_to_look_through_the_folder(folder: Path, changes, monkeypatch):
    monkeypatch.setattr(watching, "_WHOLE_ABOVE", 3)
    for number in range(5):
        (folder / f"{number}.md").write_text("x", encoding="utf-8")
    assert next(changes) == FolderChanges(folder, whole=True)


def test_where_the_kernels_queue_is_short_fewer_changes_are_a_reason(folder: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(watching, "_QUEUE_LENGTH", tmp_path / "max_queued_events")
    assert watching.queue_length() == 16_000, "where the system does not say, what it has by default"
    (tmp_path / "max_queued_events").write_text("16\n", encoding="ascii")
    stop = threading.Event()
    told = FolderWatch([folder], stop=stop).changes()
    assert next(told).whole
    for number in range(4):
        (folder / f"{number}.md").write_text("x", encoding="utf-8")
    assert next(told) == FolderChanges(folder, whole=True)
    stop.set()


def test_a_name_that_is_no_text_ends_nothing(folder: Path, changes):
    (folder.joinpath("plain.md")).write_text("x", encoding="utf-8")
    (folder / os.fsdecode(b"bad\xff.md")).write_text("x", encoding="utf-8")
    (folder / "after.md").write_text("x", encoding="utf-8")
    told = next(changes)
    while not told.whole and folder / "after.md" not in told.paths:
        told = next(changes)
    (folder / "last.md").write_text("x", encoding="utf-8")
    told = next(changes)
    while not told.whole and folder / "last.md" not in told.paths:
        told = next(changes)


def test_where_the_system_has_no_room_for_watches_files_are_compared(folder: Path, monkeypatch):
    watch = watchfiles.watch

    def without_room(*paths, force_polling, **how):
        if not force_polling:
            raise RuntimeError("OS file watch limit reached.")
        yield from watch(*paths, force_polling=force_polling, **how)

    monkeypatch.setattr(watchfiles, "watch", without_room)
    stop = threading.Event()
    told = FolderWatch([folder], stop=stop).changes()
    assert next(told).whole
    (folder / "new.md").write_text("new", encoding="utf-8")
    assert next(told).paths == (folder / "new.md",)
    stop.set()


def test_what_could_not_be_taken_up_is_told_again(folder: Path):
    stop = threading.Event()
    watch = FolderWatch([folder], stop=stop)
    told = watch.changes()
    next(told)
    watch.again(folder, after_seconds=0)
    assert next(told) == FolderChanges(folder, whole=True)
    stop.set()


def test_polling_sees_the_same(folder: Path):
    stop = threading.Event()
    told = FolderWatch([folder], stop=stop, polling=True).changes()
    assert next(told).whole
    (folder / "new.md").write_text("new", encoding="utf-8")
    assert next(told).paths == (folder / "new.md",)
    stop.set()
    assert list(told) == []


def test_an_empty_place_where_a_file_system_was_mounted_is_no_folder(folder: Path):
    device, number = identity_of(folder, before=None)
    assert identity_of(folder, before=(device + 1, number)) is None
    (folder / "page.md").write_text("x", encoding="utf-8")
    assert identity_of(folder, before=(device + 1, number)) == (device, number)
    assert identity_of(folder / "page.md", before=None) is None


@pytest.mark.parametrize(
    ("path", "told"),
    [("a.md", True), ("b/a.md", True), (".a.md", False), (".git/a.md", False), ("b/.recollectignore", True)],
)
def test_hidden_files_are_not_told_of(path: str, told: bool):
    assert told_of(Path(path)) is told


def test_a_folder_of_this_machine_is_told_of_by_its_system(folder: Path):
    assert not on_network(folder)
