"""Small files that unpack, repeat or nest themselves to something large."""

from __future__ import annotations

import io
import zipfile
import zlib

from .made_files import docx, zipped


def book(times: int, text: str) -> bytes:
    """An EPUB whose spine names its only part again and again."""
    spine = '<itemref idref="c"/>' * times
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
            "b.opf": '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="c.xhtml"/></manifest>'
            f"<spine>{spine}</spine></package>",
            "c.xhtml": f"<html><body><p>{text}</p></body></html>",
        }
    )


def document(paragraphs: int) -> bytes:
    """A Word document of so many equal paragraphs."""
    return _with_body("<w:p><w:r><w:t>word</w:t></w:r></w:p>" * paragraphs)


def references(count: int) -> bytes:
    """A Word document of so many entity references."""
    return _with_body("<w:p><w:r><w:t>" + "&amp;" * count + "</w:t></w:r></w:p>")


def _with_body(body: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(docx([("", "text")]))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["word/document.xml"] = parts["word/document.xml"].replace(b"<w:body>", b"<w:body>" + body.encode())
    return zipped(parts)


def pdf_stream(text_bytes: int) -> bytes:
    """A PDF whose only page is compressed twice."""
    text = b"BT /F1 11 Tf 60 700 Td " + b"(abcdefgh) Tj " * (text_bytes // 14) + b"ET"
    packed = zlib.compress(zlib.compress(text, 9), 9)
    return _pdf(b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%s\nendstream" % (len(packed), packed))


def pdf_forms(depth: int, times: int) -> bytes:
    """A PDF whose page draws a form that draws one so many times that draws one so many times …"""
    forms = []
    for level in range(depth):
        last = level == depth - 1
        stream = b"BT /F1 11 Tf 60 700 Td (lol) Tj ET" if last else b"/X Do " * times
        forms.append(
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> "
            b"/XObject << /X %d 0 R >> >> /Length %d >>\nstream\n%s\nendstream" % (level + 7, len(stream), stream)
        )
    return _pdf(b"<< /Length 6 >>\nstream\n/X Do \nendstream", *forms)


def _pdf(*streams: bytes) -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> "
        b"/XObject << /X 6 0 R >> >> /Contents 5 0 R >>",
        *streams,
    ]
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()
