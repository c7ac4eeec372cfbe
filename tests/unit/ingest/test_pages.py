"""Pages become documents by what their servers, names and bytes say; what holds no text is refused for good."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from recollect.errors import FetchError
from recollect.fetching.client import Fetched
from recollect.fetching.urls import parse_url
from recollect.ingest.pages import charset_of, in_unicode, page_document
from recollect.model import Document


def read(
    body: bytes | str, content_type: str = "", url: str = "http://example.com/a/page", name: str | None = None
) -> Document:
    data = body.encode() if isinstance(body, str) else body
    fetched = Fetched(url=parse_url(url), status=200, body=data, content_type=content_type, file_name=name)
    return page_document(fetched, uri=url)


PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
LETTER = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
    f'Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>Words of a letter</w:t></w:r></w:p>'
    "</w:body></w:document>",
}


def docx() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in LETTER.items():
            archive.writestr(name, text)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("body", "content_type", "url", "mime_type", "content"),
    [
        ("<title>T</title><p>Hello", "text/html", "/a", "text/html", "Hello"),
        ("<html><p>Hello", "application/xhtml+xml; charset=utf-8", "/a", "text/html", "Hello"),
        ("<html><p>Hello", "text/html", "/report.pdf", "text/html", "Hello"),
        ("# Head\n\nText", "text/markdown", "/a", "text/markdown", "# Head\n\nText"),
        ("# Head\n\nText", "text/plain", "/README.md", "text/markdown", "# Head\n\nText"),
        ("<p>shown", "text/plain", "/source.html", "text/plain", "<p>shown"),
        ("plain", "text/plain; charset=us-ascii", "/", "text/plain", "plain"),
        ('{"a": {"b": 1}}', "application/json", "/api", "application/json", "a:\n  b: 1"),
        ('{"a": 1}', "application/vnd.api+json", "/api", "application/json", "a: 1"),
        ('{"a": 1}\n{"a": 2}', "application/x-ndjson", "/api", "text/plain", '{"a": 1}\n{"a": 2}'),
        ("<r><a>1</a></r>", "application/xml", "/x", "text/plain", "<r><a>1</a></r>"),
        ("<r><a>1</a></r>", "application/soap+xml", "/x", "text/plain", "<r><a>1</a></r>"),
        ("a,b\n1,2", "text/csv", "/x", "text/csv", "a: 1; b: 2"),
        ("body {}", "text/css", "/x", "text/plain", "body {}"),
        ("x = 1", "text/x-python", "/x.py", "text/plain", "x = 1"),
        ("<rss><channel><title>N</title></channel></rss>", "application/rss+xml", "/f", "application/rss+xml", "# N"),
        ("<rss><channel><title>N</title></channel></rss>", "text/xml", "/f", "application/rss+xml", "# N"),
        ("words", "application/octet-stream", "/a.txt", "text/plain", "words"),
        ("words", "", "/a", "text/plain", "words"),
    ],
)  # fmt: skip
def test_types(body: str, content_type: str, url: str, mime_type: str, content: str) -> None:
    document = read(body, content_type, f"http://example.com{url}")
    assert (document.mime_type, document.content) == (mime_type, content)
    assert document.source == f"http://example.com{url}"


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "application/zip", "application/x-odd", "text/html"]
)
def test_documents_are_known_by_their_bytes(content_type: str) -> None:
    assert read(docx(), content_type).content == "Words of a letter"


@pytest.mark.parametrize(
    ("body", "content_type", "url"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png", "/a.png"),
        (b"\x89PNG\r\n\x1a\n", "text/html", "/a"),
        (b"<svg/>", "image/svg+xml", "/a.svg"),
        (b"words", "video/mp4", "/a"),
        (b"words", "audio/mpeg", "/a.txt"),
        (b"words", "application/x-odd", "/a"),
        (b"words", "font/woff2", "/a"),
        (bytes(range(256)) * 10, "application/octet-stream", "/a"),
        (bytes(range(256)) * 10, "text/plain", "/a"),
        (gzip.compress(b"x", mtime=0), "application/gzip", "/a.gz"),
        (b"", "text/html", "/a"),
        (b"<html></html>", "text/html", "/a"),
        (b"%PDF-1.7 damaged", "application/pdf", "/a.pdf"),
        (b"PK\x03\x04 damaged", "application/zip", "/a.zip"),
    ],
)  # fmt: skip
def test_what_holds_no_text_is_refused_for_good(body: bytes, content_type: str, url: str) -> None:
    with pytest.raises(FetchError) as refused:
        read(body, content_type, f"http://example.com{url}")
    assert not refused.value.retryable
    assert refused.value.reason


@pytest.mark.parametrize(
    ("body", "charset", "content"),
    [
        ("Größe".encode("iso-8859-1"), "iso-8859-1", "Größe"),
        ("Größe".encode(), "iso-8859-1", "Größe"),
        ("Größe".encode("cp1252"), "utf-8", "Größe"),
        ("Größe".encode(), None, "Größe"),
        ("Привет, мир, как дела".encode("koi8-r"), "KOI8-R", "Привет, мир, как дела"),
        ("日本語の文書です".encode("shift_jis"), '"Shift_JIS"', "日本語の文書です"),
        ("Größe und Maße".encode("utf-16"), "utf-16", "Größe und Maße"),
        ("Größe".encode("cp1252"), "no-such-charset", "Größe"),
        ("Größe".encode("cp1252"), "base64", "Größe"),
    ],
)  # fmt: skip
def test_encodings(body: bytes, charset: str | None, content: str) -> None:
    kind = "text/plain" if charset is None else f"text/plain; charset={charset}"
    assert read(body, kind).content == content


def test_the_pages_own_encoding_counts_where_the_header_has_none() -> None:
    body = '<meta charset="koi8-r"><p>Привет, мир'.encode("koi8-r")
    assert read(body, "text/html").content == "Привет, мир"


def test_charset_of() -> None:
    assert charset_of('text/html; a=b; Charset="UTF-8"') == "UTF-8"
    assert charset_of("text/html") is None
    assert in_unicode(b"\xef\xbb\xbfx", "latin-1") == b"\xef\xbb\xbfx"


@pytest.mark.parametrize(
    ("body", "url", "name", "title"),
    [
        ("<title>Own title</title><p>x", "/a/b.html", None, "Own title"),
        ("<p>x", "/a/how_to-brew.html", None, "How to brew"),
        ("<p>x", "/a/%C3%BCber-uns/", None, "Über uns"),
        ("<p>x", "/", None, "example.com"),
        ("<p>x", "/download?id=1", "yearly_report.html", "Yearly report"),
    ],
)  # fmt: skip
def test_titles(body: str, url: str, name: str | None, title: str) -> None:
    assert read(body, "text/html", f"http://example.com{url}", name).title == title


def test_a_page_does_not_say_who_may_read_it() -> None:
    matter = "---\npermissions: [user:eve]\ndepartment: hr\nttl: 1s\ntags: [a]\n---\nText"
    document = read(matter, "text/markdown")
    assert (document.permissions, document.department, document.ttl, document.tags) == (None, None, None, ("a",))
