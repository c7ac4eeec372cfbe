"""Commands write regular files alone: what a careless or hostile name points at stays as it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

COMMANDS = {
    "export": ("export", "{file}", "--overwrite"),
    "audit export": ("audit", "export", "{file}", "--overwrite"),
    "original": ("documents", "original", "leave.html", "-o", "{file}", "--overwrite"),
    "cases": ("eval", "make", "--out", "{file}", "--force"),
}


@pytest.fixture
def filled(recollect):
    (recollect.folder / "leave.html").write_bytes(b"<html><body><h1>Leave</h1><p>Thirty days a year.</p></body></html>")
    recollect.environment["RECOLLECT_INGEST__KEEP_ORIGINALS"] = "always"
    recollect("ingest", "leave.html")
    return recollect


def made(kind: str, file: Path) -> Path:
    """A link to a precious file, or a pipe; a device where the account may make one."""
    if kind == "link":
        precious = file.with_name("precious")
        precious.write_text("precious", encoding="utf-8")
        file.symlink_to(precious)
    elif kind == "broken link":
        file.symlink_to(file.with_name("nothing"))
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        try:
            os.mknod(file, 0o600 | stat.S_IFCHR, os.makedev(1, 7))
        except PermissionError:
            pytest.skip("only root makes device nodes")
    return file


@pytest.mark.parametrize("kind", ["link", "broken link", "pipe", "device"])
def test_what_is_no_regular_file_is_not_replaced(filled, kind):
    for name, words in COMMANDS.items():
        file = made(kind, filled.folder / f"{name} {kind}")
        before = file.lstat()
        done = filled(*(word.format(file=file) for word in words), status=None)
        assert done.status == 2, name
        assert "Only regular files are written" in done.err, (name, done.err)
        after = file.lstat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode), name
        precious = filled.folder / "precious"
        assert not precious.exists() or precious.read_text(encoding="utf-8") == "precious", name
        precious.unlink(missing_ok=True)


def test_exports_are_private_and_keep_the_permissions_of_what_they_replace(filled):
    filled("export", "new.jsonl")
    file = filled.folder / "new.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    filled("export", "new.jsonl", "--overwrite")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [one.name for one in filled.folder.iterdir() if ".partial" in one.name] == []
