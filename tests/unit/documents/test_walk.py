from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from recollect.documents import FoundFile, SkippedFile, walk
from recollect.documents import walk as walk_function
from recollect.errors import NotFoundError


@pytest.fixture
def tree(tmp_path):
    for name in (
        "hr/leave.md",
        "hr/deep/er/rules.txt",
        "it/a.py",
        "top.md",
        ".git/config.txt",
        ".hidden.md",
        "hr/photo.png",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", encoding="utf-8")
    return tmp_path


def found(*roots, **options):
    return [one for one in walk(roots, **options) if isinstance(one, FoundFile)]


def skipped(*roots, **options):
    return {one.source: one.kind for one in walk(roots, **options) if isinstance(one, SkippedFile)}


def test_sources_departments_and_order(tree):
    assert [(one.source, one.department) for one in found(tree)] == [
        ("top.md", None),
        ("hr/leave.md", "hr"),
        ("hr/deep/er/rules.txt", "hr"),
        ("it/a.py", "it"),
    ]
    assert found(tree)[0].size == 4
    assert found(tree)[0].mtime == (tree / "top.md").stat().st_mtime


def test_what_is_skipped_and_why(tree):
    (tree / "big.txt").write_bytes(b"x" * 100)
    assert skipped(tree, max_bytes=99) == {
        ".git": "hidden",
        ".hidden.md": "hidden",
        "hr/photo.png": "unsupported",
        "big.txt": "too_large",
    }


def test_hidden_files_on_request_but_never_git(tree):
    assert found(tree, hidden=True)[0].source == ".hidden.md"
    assert not any(".git" in one.source for one in found(tree, hidden=True))


def test_a_root_that_is_a_file(tree):
    (one,) = found(tree / "hr" / "leave.md")
    assert (one.source, one.department) == ("leave.md", None)
    assert found(tree / ".hidden.md")[0].source == ".hidden.md"


def test_a_missing_root_is_named_before_anything_is_read(tree):
    with pytest.raises(NotFoundError, match="nowhere"):
        walk([tree, tree / "nowhere"])


def test_links(tree):
    (tree / "it" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "it" / "broken.md").symlink_to(tree / "gone")
    (tree / "it" / "linked.md").symlink_to(tree / "top.md")
    assert "it/linked.md" in [one.source for one in found(tree)]
    assert skipped(tree)["it/loop"] == "link_loop"
    assert skipped(tree)["it/broken.md"] == "unreadable"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_opened(tree):
    os.mkfifo(tree / "pipe.txt")
    assert skipped(tree)["pipe.txt"] == "special"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_reported(tree):
    (tree / "top.md").chmod(0)
    (tree / "hr").chmod(0)
    try:
        assert skipped(tree)["top.md"] == "unreadable"
        assert skipped(tree)["hr"] == "unreadable"
    finally:
        (tree / "hr").chmod(0o755)


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are Unicode here")
def test_names_that_are_no_utf8(tree):
    Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9.md")).write_text("x", encoding="utf-8")
    sources = [one.source for one in found(tree)]
    assert "caf\\xe9.md" in sources
    for source in sources:
        source.encode("utf-8")


def test_files_are_given_out_as_they_are_met(tree, monkeypatch):
    opened = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: opened.append(path) or scandir(path))
    list(islice(walk_function([tree]), 1))
    assert opened == [tree]
