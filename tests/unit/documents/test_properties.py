"""Whatever the bytes and the name: a sound document or a ParseError."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.documents import read_bytes
from recollect.errors import ParseError

from .made_files import docx, epub, odt, pdf, pptx, xlsx

EXTENSIONS = [
    "pdf",
    "docx",
    "doc",
    "pptx",
    "ppt",
    "xlsx",
    "xls",
    "odt",
    "ods",
    "rtf",
    "epub",
    "html",
    "md",
    "txt",
    "rst",
    "org",
    "csv",
    "tsv",
    "json",
    "eml",
    "msg",
    "py",
    "xml",
    "png",
    "zip",
]
WHOLE = [
    pdf([["LEAVE POLICY", "Some text on a page."], ["More text."]]),
    docx([("Heading1", "Title"), ("", "Some text."), [["a", "b"], ["c", "d"]]]),
    xlsx({"Sheet": [["A", "B", "C"], ["1", "2", "3"]]}),
    pptx([("Title", ["text"])]),
    odt([(1, "Title"), (0, "text")]),
    epub(["<h1>A</h1><p>b"]),
    b"{\\rtf1\\ansi Some text\\par}",
    b"From: a@x.example\nSubject: =?utf-8?q?x?=\nContent-Type: text/plain; charset=utf-7\n\nbody",
    "# Title\n\ntext\n\nSetext\n---\n".encode("utf-16"),
]


def check(data, name):
    try:
        document = read_bytes(data, name=name)
    except ParseError as error:
        assert error.path == name
        assert error.reason
        return
    content = document.content
    assert content.strip()
    assert "\0" not in content
    assert "\r" not in content
    content.encode("utf-8")
    document.title.encode("utf-8")
    assert document.title
    assert "\0" not in json.dumps(dict(document.metadata), ensure_ascii=False)
    end = 0
    for heading in document.headings:
        assert end <= heading.start_offset < heading.end_offset <= len(content)
        assert heading.title.strip()
        end = heading.end_offset
    end = 0
    for page in document.pages:
        assert end <= page.start_offset < page.end_offset <= len(content)
        end = page.end_offset
    assert document.event_time is None or document.event_time.tzinfo is not None


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(EXTENSIONS))
def test_arbitrary_bytes(data, extension):
    check(data, f"file.{extension}")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.sampled_from(EXTENSIONS), st.sampled_from(["utf-8", "utf-16", "cp1252"]))
def test_arbitrary_text(text, extension, encoding):
    check(text.encode(encoding, "replace"), f"file.{extension}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(WHOLE), st.sampled_from(EXTENSIONS), st.data())
def test_damaged_files(whole, extension, data):
    at = data.draw(st.integers(0, len(whole)))
    garbage = data.draw(st.binary(max_size=8))
    cut = data.draw(st.integers(0, 64))
    check(whole[:at] + garbage + whole[at + cut :], f"file.{extension}")


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("<!--", "a.html"),
        ("<a ", "a.html"),
        ("</a ", "a.html"),
        ("<![CDATA[", "a.html"),
        ("# ", "a.md"),
        ("a\n---\n", "a.md"),
        ("1" * 80 + "x\n", "a.txt"),
        (" :", "a.org"),
        ("a,", "a.eml"),
        ('"', "a.csv"),
        ("[", "a.json"),
    ],
)
def test_repetition_does_not_hang(unit, name):
    """What once took quadratic or exponential time would run into the suite's time limit."""
    start = {"a.eml": "To: ", "a.org": "* ", "a.md": "# "}.get(name, "")
    check((start + unit * (900_000 // len(unit))).encode(), name)
