from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.documents import SkippedFile, read_bytes, read_file, walk
from recollect.errors import ParseError

from .made_files import docx, epub, pdf, xlsx

HANDBOOK = Path(__file__).resolve().parents[3] / "examples" / "handbook"


def test_markdown_is_kept_as_it_is(tmp_path):
    text = (
        "---\ntitle: Leave Rules\nauthor: Ann\ndate: 2024-05-06\n---\n# Leave\r\n\r\nSee `a_b`.\x00\n\n## Carry-over\n"
    )
    path = tmp_path / "leave.md"
    path.write_bytes(text.encode())
    document = read_file(path, source="hr/leave.md", department="hr")
    assert document.content == text.replace("\r\n", "\n").replace("\0", "")
    assert document.title == "Leave Rules"
    assert document.event_time == datetime(2024, 5, 6, tzinfo=UTC)
    assert document.metadata == {"format": "markdown", "author": "Ann"}
    assert (document.source, document.department, document.mime_type) == ("hr/leave.md", "hr", "text/markdown")
    assert document.language is None
    assert document.file_hash == hashlib.sha256(text.encode()).digest()
    assert document.section_path(len(document.content) - 1) == ("Leave", "Carry-over")


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("leave_policy-2024.txt", "nothing but text, in one line", "Leave policy 2024"),
        ("x.md", "text\n\n# The Heading\n", "The Heading"),
        ("x.org", "#+TITLE: Org Title\n* One\n", "Org Title"),
        ("x.rst", "Report\n======\n\ntext\n", "Report"),
        ("x.txt", "LEAVE POLICY\n\nEmployees receive thirty days of leave in a year.\n", "LEAVE POLICY"),
        ("main.py", "# not a heading\nimport os\n", "Main"),
    ],
)
def test_titles(name, text, title):
    assert read_bytes(text.encode(), name=name).title == title


def test_source_code_has_no_headings():
    assert read_bytes(b"# LEAVE POLICY\n\nx = 1\n", name="a.py").headings == ()


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"", "a.md", "is empty"),
        (b" \n\t\n", "a.md", "no text"),
        (b"\xef\xbb\xbf", "a.txt", "no text"),
        (bytes(range(256)) * 10, "a.txt", "binary"),
        (b"GIF89a\1\0\0", "a.md", "GIF image"),
        (docx([]), "a.docx", "no text"),
        (b"<html><script>x</script></html>", "a.html", "no text"),
        (b"x" * 11, "a.txt", "larger than the limit"),
    ],
)
def test_reasons(data, name, reason):
    with pytest.raises(ParseError, match=reason) as caught:
        read_bytes(data, name=name, max_bytes=10 if b"xxx" in data else None)
    assert caught.value.path == name


def test_files_that_cannot_be_opened(tmp_path):
    for path, reason in ((tmp_path / "none.md", "does not exist"), (tmp_path, "not a regular file")):
        with pytest.raises(ParseError, match=reason) as caught:
            read_file(path, source="x")
        assert caught.value.path == str(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.txt")
        with pytest.raises(ParseError, match="not a regular file"):
            read_file(tmp_path / "pipe.txt", source="x")


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    read_bytes(docx([("", "some text")]), name="a.docx")
    read_bytes(pdf([["some text"]]), name="a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_many_threads_read_the_same():
    files = {
        "a.pdf": pdf([["Some text on a page."]] * 3),
        "b.docx": docx([("Heading1", "Title"), ("", "Some text.")]),
        "c.xlsx": xlsx({"Sheet": [["A", "B", "C"], ["1", "2", "3"]]}),
        "d.epub": epub(["<h1>A</h1><p>b"]),
        "e.md": b"# A\n\ntext",
    }
    alone = {name: read_bytes(data, name=name) for name, data in files.items()}
    with ThreadPoolExecutor(8) as pool:
        jobs = [(name, pool.submit(read_bytes, data, name=name)) for _ in range(20) for name, data in files.items()]
        assert all(job.result() == alone[name] for name, job in jobs)


@pytest.mark.skipif(not any(HANDBOOK.glob("*/*")), reason="the handbook is absent")
def test_the_handbook_reads_whole():
    skipped = []
    for one in walk([HANDBOOK]):
        if isinstance(one, SkippedFile):
            skipped.append(one)
            continue
        document = read_file(one.path, source=one.source)
        assert document.headings, one.source
        assert len(document.title) > 3
        json.dumps(dict(document.metadata))
        assert "\\_" not in document.content
        assert "| --- |" not in document.content or one.path.suffix == ".md"
        if one.path.suffix == ".pdf":
            assert document.pages
    assert {one.kind for one in skipped} == {"hidden", "ignored"}
    assert {one.source for one in skipped} == {".recollectignore", "rag-tests.yaml"}
