from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from recollect.documents import FoundFile, SkippedFile, read_file, walk
from recollect.documents import walk as walk_function
from recollect.errors import NotFoundError, ParseError


@pytest.fixture
def tree(tmp_path):
    for name in (
        "hr/leave.md",
        "hr/deep/er/rules.txt",
        "it/a.py",
        "top.md",
        ".git/config.txt",
        ".hidden.md",
        "hr/photo.gif",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", encoding="utf-8")
    return tmp_path


def found(*roots, **options):
    return [one for one in walk(roots, **options) if isinstance(one, FoundFile)]


def skipped(*roots, **options):
    return {one.source: one.kind for one in walk(roots, **options) if isinstance(one, SkippedFile)}


def test_sources_and_order(tree):
    assert [one.source for one in found(tree)] == ["top.md", "hr/leave.md", "hr/deep/er/rules.txt", "it/a.py"]
    assert found(tree)[0].size == 4


def test_what_is_skipped_and_why(tree):
    (tree / "big.txt").write_bytes(b"x" * 100)
    assert skipped(tree, max_bytes=99) == {
        ".git": "hidden",
        ".hidden.md": "hidden",
        "hr/photo.gif": "unsupported",
        "big.txt": "too_large",
    }


def test_hidden_files_on_request_but_never_git(tree):
    assert found(tree, hidden=True)[0].source == ".hidden.md"
    assert not any(".git" in one.source for one in found(tree, hidden=True))


def test_a_root_that_is_a_file(tree):
    (one,) = found(tree / "hr" / "leave.md")
    assert one.source == "leave.md"
    assert found(tree / ".hidden.md")[0].source == ".hidden.md"


def test_a_missing_root_is_named_before_anything_is_read(tree):
    with pytest.raises(NotFoundError, match="nowhere"):
        walk([tree, tree / "nowhere"])


def test_links(tree):
    (tree / "it" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "it" / "broken.md").symlink_to(tree / "gone")
    (tree / "it" / "linked.md").symlink_to(tree / "top.md")
    links = ("it/loop", "it/broken.md", "it/linked.md")
    assert [skipped(tree).get(one) for one in links] == ["link"] * 3
    assert "it/linked.md" in [one.source for one in found(tree, follow_links=True)]
    assert skipped(tree, follow_links=True)["it/loop"] == "link_loop"
    assert skipped(tree, follow_links=True)["it/broken.md"] == "unreadable"


def test_a_root_may_be_a_link(tree, tmp_path_factory):
    given = tmp_path_factory.mktemp("elsewhere") / "docs"
    given.symlink_to(tree, target_is_directory=True)
    (one,) = found(given / "top.md")
    assert [f.source for f in found(given)] == [f.source for f in found(tree)]
    assert read_file(one.path, source="x", below=one.below).content == "text"


@pytest.mark.parametrize("changed", ["hr/deep", "hr/deep/er", "hr/deep/er/rules.txt"])
def test_what_becomes_a_link_after_it_was_found_is_not_followed(tree, tmp_path_factory, changed):
    (one,) = [file for file in found(tree) if file.source == "hr/deep/er/rules.txt"]
    secret = tmp_path_factory.mktemp("secret")
    (tree / changed).rename(secret / "moved")
    (tree / changed).symlink_to(secret / "moved")
    assert one.path.read_text(encoding="utf-8") == "text"
    with pytest.raises(ParseError, match="links are not followed"):
        read_file(one.path, source="x", below=one.below)


def test_a_list_of_what_to_ignore_is_not_read_through_a_link(tree, tmp_path_factory):
    rules = tmp_path_factory.mktemp("rules") / "mine"
    rules.write_text("*.md", encoding="utf-8")
    (tree / ".recollectignore").symlink_to(rules)
    assert "top.md" in [one.source for one in found(tree)]
    assert "top.md" not in [one.source for one in found(tree, follow_links=True)]


@pytest.mark.parametrize("below", [True, False])
def test_a_file_that_became_a_pipe_or_grew_is_refused(tree, below):
    (top,) = [file for file in found(tree) if file.source == "top.md"]
    folder = tree if below else None
    top.path.write_bytes(b"x" * 200)
    with pytest.raises(ParseError, match="larger than the limit"):
        read_file(top.path, source="x", max_bytes=100, below=folder)
    top.path.unlink()
    os.mkfifo(top.path)
    with pytest.raises(ParseError, match="is not a regular file"):
        read_file(top.path, source="x", below=folder)


def test_what_is_no_file_is_never_read(tree):
    for name, target in (("zero.txt", "/dev/zero"), ("me", "/proc/self"), ("root", "/")):
        (tree / name).symlink_to(target)
    assert [skipped(tree)[name] for name in ("zero.txt", "me", "root")] == ["link"] * 3
    with pytest.raises(ParseError, match="is not a regular file"):
        read_file(tree / "zero.txt", source="x")


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
    assert len(opened) == 1
