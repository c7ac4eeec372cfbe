"""Small files of many formats, written byte by byte, so that the tests need nothing from outside."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

Line = str | tuple[int, str]


def pdf(pages: Sequence[Sequence[Line]], *, info: Mapping[str, str] | None = None, notes: Sequence[str] = ()) -> bytes:
    """A PDF with one line of text per entry; ``(size, text)`` sets a line in another size than 11 points.

    ``notes`` are the entries of annotations on its first page, those of a form's fields among them.
    """
    first_note = 4 + 2 * len(pages)
    noted = b" ".join(b"%d 0 R" % (first_note + at) for at in range(len(notes)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [%s] >> >>" % noted,
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    kids = []
    for lines in pages:
        stream = _text_stream(lines)
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Annots [%s] /Contents %d 0 R >>" % (b"" if len(kids) > 1 else noted, len(objects) + 2)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    objects += [f"<< /Type /Annot /Rect [0 0 90 20] /P 4 0 R {note} >>".encode("latin-1") for note in notes]
    entries = " ".join(f"/{key} ({value})" for key, value in (info or {}).items())
    objects.append(f"<< {entries} >>".encode("latin-1"))
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for offset in offsets:
        out.write(b"%010d 00000 n \n" % offset)
    out.write(
        b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, len(objects), start)
    )
    return out.getvalue()


def _text_stream(lines: Sequence[Line]) -> bytes:
    parts, y = [], 800
    for line in lines:
        size, text = line if isinstance(line, tuple) else (11, line)
        y -= size + 5
        text = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        parts.append(f"BT /F1 {size} Tf 1 0 0 1 60 {y} Tm ({text}) Tj ET")
    return "\n".join(parts).encode("cp1252")


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


_RELS = '<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_OFFICE_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = (
    '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>{}</Types>'
)
_CORE = (
    '<?xml version="1.0"?><cp:coreProperties '
    'xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>{title}</dc:title><dc:creator>{author}</dc:creator>'
    '<dcterms:created xsi:type="dcterms:W3CDTF">{created}</dcterms:created>'
    '<dcterms:modified xsi:type="dcterms:W3CDTF">{modified}</dcterms:modified></cp:coreProperties>'
)


def docx(
    body: Sequence[tuple[str, str] | Sequence[Sequence[str]]],
    *,
    title: str = "",
    author: str = "Ann Author",
    created: str = "2024-01-02T03:04:05Z",
    modified: str = "2024-02-03T04:05:06Z",
) -> bytes:
    """A Word document of ``(style, text)`` paragraphs, style "" for body text, and of tables as lists of rows."""
    xml = "".join(_docx_block(block) for block in body)
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/>'
        f'<w:pPr><w:outlineLvl w:val="{n - 1}"/></w:pPr></w:style>'
        for n in range(1, 7)
    )
    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    return zipped(
        {
            "[Content_Types].xml": _TYPES.format(
                f'<Override PartName="/word/document.xml" ContentType="{main}.document.main+xml"/>'
                f'<Override PartName="/word/styles.xml" ContentType="{main}.styles+xml"/>'
            ),
            "_rels/.rels": _RELS.format(
                f'<Relationship Id="rId1" Type="{_OFFICE_REL}/officeDocument" Target="word/document.xml"/>'
                '<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/'
                'core-properties" Target="docProps/core.xml"/>'
            ),
            "word/_rels/document.xml.rels": _RELS.format(
                f'<Relationship Id="rId1" Type="{_OFFICE_REL}/styles" Target="styles.xml"/>'
            ),
            "word/document.xml": f'<?xml version="1.0"?><w:document {word}><w:body>{xml}</w:body></w:document>',
            "word/styles.xml": f'<?xml version="1.0"?><w:styles {word}>{styles}</w:styles>',
            "docProps/core.xml": _CORE.format(title=title, author=author, created=created, modified=modified),
        }
    )


def _docx_block(block: tuple[str, str] | Sequence[Sequence[str]]) -> str:
    if isinstance(block, tuple):
        style = f'<w:pPr><w:pStyle w:val="{block[0]}"/></w:pPr>' if block[0] else ""
        return f'<w:p>{style}<w:r><w:t xml:space="preserve">{escape(block[1])}</w:t></w:r></w:p>'
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:p><w:r><w:t>{escape(cell)}</w:t></w:r></w:p></w:tc>" for cell in row) + "</w:tr>"
        for row in block
    )
    return f"<w:tbl>{rows}</w:tbl>"


def xlsx(sheets: Mapping[str, Sequence[Sequence[str | int | float]]]) -> bytes:
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts: dict[str, str | bytes] = {}
    overrides = f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
    entries, rels = "", ""
    for number, (name, rows) in enumerate(sheets.items(), 1):
        overrides += f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{kind}.worksheet+xml"/>'
        entries += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>'
        rels += f'<Relationship Id="rId{number}" Type="{_OFFICE_REL}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        data = "".join(
            f'<row r="{y}">'
            + "".join(_xlsx_cell(f"{chr(64 + x)}{y}", cell) for x, cell in enumerate(row, 1))
            + "</row>"
            for y, row in enumerate(rows, 1)
        )
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<?xml version="1.0"?><worksheet xmlns="{main}"><sheetData>{data}</sheetData></worksheet>'
        )
    return zipped(
        {
            "[Content_Types].xml": _TYPES.format(overrides),
            "_rels/.rels": _RELS.format(
                f'<Relationship Id="rId1" Type="{_OFFICE_REL}/officeDocument" Target="xl/workbook.xml"/>'
            ),
            "xl/workbook.xml": f'<?xml version="1.0"?><workbook xmlns="{main}" xmlns:r="{_OFFICE_REL}">'
            f"<sheets>{entries}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": _RELS.format(rels),
            **parts,
        }
    )


def _xlsx_cell(place: str, value: str | float) -> str:
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def pptx(slides: Sequence[tuple[str, Sequence[str]]]) -> bytes:
    """A presentation of slides with a title and lines of text."""
    space = (
        'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        f'xmlns:r="{_OFFICE_REL}"'
    )
    kind = "application/vnd.openxmlformats-officedocument.presentationml"
    overrides = f'<Override PartName="/ppt/presentation.xml" ContentType="{kind}.presentation.main+xml"/>'
    ids, rels = "", ""
    parts: dict[str, str | bytes] = {}
    for number, (title, lines) in enumerate(slides, 1):
        overrides += f'<Override PartName="/ppt/slides/slide{number}.xml" ContentType="{kind}.slide+xml"/>'
        ids += f'<p:sldId id="{255 + number}" r:id="rId{number}"/>'
        rels += f'<Relationship Id="rId{number}" Type="{_OFFICE_REL}/slide" Target="slides/slide{number}.xml"/>'
        shapes = _pptx_shape(2, 'type="title"', [title]) + _pptx_shape(3, 'idx="1"', lines)
        parts[f"ppt/slides/slide{number}.xml"] = (
            f'<?xml version="1.0"?><p:sld {space}><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/>'
            f"<p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    return zipped(
        {
            "[Content_Types].xml": _TYPES.format(overrides),
            "_rels/.rels": _RELS.format(
                f'<Relationship Id="rId1" Type="{_OFFICE_REL}/officeDocument" Target="ppt/presentation.xml"/>'
            ),
            "ppt/presentation.xml": f'<?xml version="1.0"?><p:presentation {space}><p:sldIdLst>{ids}</p:sldIdLst>'
            "</p:presentation>",
            "ppt/_rels/presentation.xml.rels": _RELS.format(rels),
            **parts,
        }
    )


def _pptx_shape(number: int, placeholder: str, lines: Sequence[str]) -> str:
    paragraphs = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in lines)
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="x{number}"/><p:cNvSpPr/><p:nvPr><p:ph {placeholder}/></p:nvPr>'
        f"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"
    )


def odt(blocks: Sequence[tuple[int, str]], *, encrypted: bool = False) -> bytes:
    """An OpenDocument text of ``(level, text)``, level 0 for paragraphs."""
    text = "".join(
        f'<text:h text:outline-level="{level}">{escape(line)}</text:h>' if level else f"<text:p>{escape(line)}</text:p>"
        for level, line in blocks
    )
    lock = "<manifest:encryption-data/>" if encrypted else ""
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": '<?xml version="1.0"?><office:document-content '
            'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
            'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
            f"<office:body><office:text>{text}</office:text></office:body></office:document-content>",
            "META-INF/manifest.xml": '<?xml version="1.0"?><manifest:manifest '
            f'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">{lock}</manifest:manifest>',
        }
    )


def epub(chapters: Sequence[str], *, title: str = "A Small Book", date: str = "2020-05-06") -> bytes:
    """A book of XHTML bodies."""
    items = "".join(f'<item id="c{n}" href="text/c%20{n}.xhtml"/>' for n in range(len(chapters)))
    # The spine runs against the order of the manifest: it is the spine that counts.
    spine = "".join(f'<itemref idref="c{n}"/>' for n in reversed(range(len(chapters))))
    parts: dict[str, str | bytes] = {
        f"OPS/text/c {n}.xhtml": f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
        for n, body in enumerate(chapters)
    }
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
            '<rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
            "OPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>'
            f"<dc:creator>Bo Writer</dc:creator><dc:date>{date}</dc:date></metadata>"
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
            **parts,
        }
    )
