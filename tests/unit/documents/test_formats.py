from __future__ import annotations

import pytest

from recollect.documents import formats
from recollect.documents.formats import UnreadableError, detect, format_of_name

from .made_files import docx, odt, pdf, xlsx, zipped

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.PDF", formats.PDF), ("a.tar.md", formats.MARKDOWN), ("README", formats.TEXT), ("Makefile", formats.CODE)],
)
def test_names(name, expected):
    assert format_of_name(name) == expected


@pytest.mark.parametrize("name", ["a.png", "a.zip", "a.exe", "noextension", ".bashrc", "a."])
def test_names_that_promise_nothing(name):
    assert format_of_name(name) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (pdf([["x"]]), formats.PDF),
        (docx([("", "x")]), formats.DOCX),
        (xlsx({"s": [["x"]]}), formats.XLSX),
        (odt([(0, "x")]), formats.ODT),
        (b"{\\rtf1 x}", formats.RTF),
        (OLE + "WordDocument".encode("utf-16-le"), formats.DOC),
        (OLE + "Workbook".encode("utf-16-le"), formats.XLS),
    ],
)
@pytest.mark.parametrize("name", ["x.txt", "x.pdf", "x.docx", "x.unknown", "x"])
def test_content_wins_over_the_name(data, expected, name):
    assert detect(data, name=name) == expected


def test_web_pages_and_texts_under_office_names():
    assert detect(b"<html><body>x", name="report.xls") == formats.HTML
    assert detect(b"just text", name="report.doc") == formats.TEXT


def test_mime_types():
    assert detect(b"a,b", name="upload", mime_type="text/csv; charset=utf-8").kind == "table"
    assert detect(b"# x", name="a.md", mime_type="application/octet-stream") == formats.MARKDOWN
    assert detect(b"x", name="upload", mime_type="text/plain") == formats.TEXT


@pytest.mark.parametrize(
    ("data", "name", "reason"),
    [
        (b"GIF89a\1\0", "a.txt", "GIF image"),
        (b"\x7fELF\x02\x01\0", "a.md", "a program"),
        (zipped({"a.txt": "x"}), "a.docx", "ZIP archive"),
        (docx([("", "x")])[:200], "a.docx", "damaged"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx", "password"),
        (odt([(0, "x")], encrypted=True), "a.odt", "password"),
        (b"not a pdf", "a.pdf", "not a PDF file"),
        (b"not a zip", "a.docx", "not a Word document"),
    ],
)
def test_reasons(data, name, reason):
    with pytest.raises(UnreadableError, match=reason):
        detect(data, name=name)


def test_a_decompression_bomb_is_refused_unopened(monkeypatch):
    monkeypatch.setattr(formats, "_MAX_UNPACKED", 10_000)
    with pytest.raises(UnreadableError, match="unpacks to more"):
        detect(zipped({"word/document.xml": b"0" * 20_000}), name="a.docx")
