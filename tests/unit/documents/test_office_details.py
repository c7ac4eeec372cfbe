"""What office files say beside their text: formats of numbers, notes of speakers, footnotes, comments."""

from __future__ import annotations

import io
import zipfile

import pytest

from recollect.documents._sheets import shown
from recollect.documents.reader import read_bytes

from .made_files import docx, pptx, xlsx, zipped

_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def changed(data: bytes, parts: dict[str, bytes], *, replaced: dict[str, tuple[bytes, bytes]] | None = None) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        every = {name: archive.read(name) for name in archive.namelist()} | parts
    for name, (old, new) in (replaced or {}).items():
        assert old in every[name]
        every[name] = every[name].replace(old, new)
    return zipped(every)


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        ("0.125", "0.0%", "12.5%"),
        ("0.125", "0%", "13%"),
        ("1234567.891", "#,##0.00", "1,234,567.89"),
        ("1234567.891", "#,##0", "1,234,568"),
        ("-1234.5", "#,##0.00;(#,##0.00)", "(1,234.50)"),
        ("-1234.5", "#,##0.00", "-1,234.50"),
        ("-0.001", "0.0", "0.0"),
        ("2000000", '"€"#,##0', "€2,000,000"),
        ("2000000", "[$€-407]#,##0.00", "€2,000,000.00"),
        ("19.9", "#,##0.00\\ [$€-407]", "19.90 €"),
        ("19.9", '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', "$19.90"),
        ("0", '_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', "$-"),
        ("2500000", '#,##0.0,,"M"', "2.5M"),
        ("1500", '#,##0,"k"', "2k"),
        ("7", "000", "007"),
        ("0.5", "#.##", ".5"),
        ("3", "0.##", "3"),
        ("4215551234", "000\\-000\\-0000", "421-555-1234"),
        ("12", '0" days"', "12 days"),
        ("5", "[Red]0.00", "5.00"),
        ("45352", "mmm-yy", "March 2024"),
        ("45352", "mm/yyyy", "2024-03"),
        ("45352", "yyyy", "2024"),
        ("0.5625", "h:mm", "13:30"),
        ("1.5", "[h]:mm:ss", "36:00:00"),
    ],
)
def test_numbers_are_written_as_a_sheet_shows_them(value: str, code: str, text: str):
    assert shown(value, code) == text


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("45352", "dd.mm.yyyy"),
        ("45352.5", "m/d/yy h:mm"),
        ("0.333", "# ?/?"),
        ("12345", "0.00E+00"),
        ("1", "General"),
        ("1", "[>100]0;0.0"),
        ("abc", "0"),
        ("1e400", "0"),
        ("nan", "0"),
        ("1", "0" * 201),
        ("1e29", "yyyy"),
        ("1", ""),
        ("1", ";;;;;;"),
    ],
)
def test_what_is_better_left_as_it_is_stored(value: str, code: str):
    assert shown(value, code) is None


def test_cells_of_a_workbook_are_what_they_show():
    data = xlsx({"Plan": [["Office", "Share", "Budget", "Since", "Note"], ["Bremen", 0.125, 1234567, 45352, 7]]})
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    formats = (
        '<numFmt numFmtId="164" formatCode="&quot;EUR&quot;\\ #,##0"/><numFmt numFmtId="165" formatCode="dd/mm/yyyy"/>'
    )
    xfs = "".join(f'<xf numFmtId="{number}" applyNumberFormat="1"/>' for number in (0, 10, 164, 165))
    groups = f'<numFmts count="2">{formats}</numFmts><cellXfs count="4">{xfs}</cellXfs>'
    styles = f'<styleSheet xmlns="{main}">{groups}</styleSheet>'
    sheet = "xl/worksheets/sheet1.xml"
    with_styles = changed(
        data,
        {"xl/styles.xml": styles.encode()},
        replaced={
            "[Content_Types].xml": (
                b"</Types>",
                b'<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.'
                b'spreadsheetml.styles+xml"/></Types>',
            ),
            "xl/_rels/workbook.xml.rels": (
                b"</Relationships>",
                f'<Relationship Id="rId99" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>'.encode(),
            ),
            sheet: (b'<c r="B2">', b'<c r="B2" s="1" t="n">'),
        },
    )
    numbered = changed(
        with_styles,
        {},
        replaced={sheet: (b'<c r="C2"><v>', b'<c r="C2" s="2"><f>SUM(A1:A2)</f><v>')},
    )
    dated = changed(numbered, {}, replaced={sheet: (b'<c r="D2">', b'<c r="D2" s="3">')})
    assert read_bytes(dated, name="plan.xlsx").content.endswith("| Bremen | 12.50% | EUR 1,234,567 | 2024-03-01 | 7 |")


def test_an_opendocument_sheet_says_what_its_cells_show():
    cells = (
        '<table:table-cell office:value-type="string"><text:p>Share</text:p></table:table-cell>'
        '<table:table-cell office:value-type="string"><text:p>Budget</text:p></table:table-cell>'
    )
    values = (
        '<table:table-cell office:value-type="percentage" office:value="0.125"><text:p>12.5%</text:p>'
        '</table:table-cell><table:table-cell office:value-type="currency" office:currency="EUR" '
        'office:value="1234567">'
        "<text:p>1,234,567 €</text:p></table:table-cell>"
    )
    row = "<table:table-row>{}</table:table-row>"
    content = (
        '<?xml version="1.0"?><office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
        f'<table:table table:name="Plan">{row.format(cells)}{row.format(values)}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    data = zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "content.xml": content,
            "META-INF/manifest.xml": manifest,
        }
    )
    assert "| 12.5% | 1,234,567 € |" in read_bytes(data, name="plan.ods").content


def presentation(lines: list[str]) -> bytes:
    notes = (
        '<p:notes xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><p:cSld><p:spTree>'
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="sldNum"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:fld><a:t>17</a:t></a:fld>'
        '</a:p></p:txBody></p:sp><p:sp><p:nvSpPr><p:nvPr><p:ph type="body" idx="1"/></p:nvPr></p:nvSpPr><p:txBody>'
        + "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        + "</p:txBody></p:sp></p:spTree></p:cSld></p:notes>"
    )
    relation = f'<Relationship Id="rId1" Type="{_OFFICE}/notesSlide" Target="../notesSlides/notesSlide1.xml"/>'
    relations = f'<Relationships xmlns="{_RELATIONS}">{relation}</Relationships>'
    return changed(
        pptx([("Plan", ["First line", "Second line"]), ("Next", ["Third line"])]),
        {
            "ppt/slides/_rels/slide1.xml.rels": relations.encode(),
            "ppt/notesSlides/notesSlide1.xml": notes.encode(),
        },
    )


def test_notes_of_a_speaker_follow_their_slide():
    content = read_bytes(presentation(["Greet the R&amp;D team.", "Then begin."]), name="plan.pptx").content
    assert content == (
        "## Plan\n\nFirst line\n\nSecond line\n\nNotes: Greet the R&D team.\n\nThen begin.\n\n## Next\n\nThird line"
    )
    assert "Notes" not in read_bytes(presentation([]), name="plan.pptx").content


def report() -> bytes:
    marked = (
        '<w:commentRangeStart w:id="0"/><w:r><w:t>thirty days</w:t></w:r><w:commentRangeEnd w:id="0"/><w:r>'
        '<w:commentReference w:id="0"/></w:r><w:r><w:footnoteReference w:id="2"/></w:r>'
    )
    footnotes = (
        f'<w:footnotes xmlns:w="{_WORD}"><w:footnote w:type="separator" w:id="0"><w:p/></w:footnote>'
        '<w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r><w:r><w:t>Except in probation.'
        "</w:t></w:r></w:p></w:footnote></w:footnotes>"
    )
    comments = (
        f'<w:comments xmlns:w="{_WORD}"><w:comment w:id="0" w:author="Bo &amp; Co"><w:p><w:r><w:t>Is that so?'
        "</w:t></w:r></w:p></w:comment></w:comments>"
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    relations = "".join(
        f'<Relationship Id="rId{at}" Type="{_OFFICE}/{name}" Target="{name}.xml"/>'
        for at, name in enumerate(("footnotes", "comments"), 8)
    )
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{kind}.{name}+xml"/>' for name in ("footnotes", "comments")
    )
    return changed(
        docx([("", "Leave is MARKED for all."), ("", "Another paragraph.")]),
        {"word/footnotes.xml": footnotes.encode(), "word/comments.xml": comments.encode()},
        replaced={
            "word/document.xml": (
                b'<w:t xml:space="preserve">Leave is MARKED for all.</w:t></w:r>',
                b'<w:t xml:space="preserve">Leave is </w:t></w:r>'
                + marked.encode()
                + b'<w:r><w:t xml:space="preserve"> for all.</w:t></w:r>',
            ),
            "word/_rels/document.xml.rels": (b"</Relationships>", relations.encode() + b"</Relationships>"),
            "[Content_Types].xml": (b"</Types>", overrides.encode() + b"</Types>"),
        },
    )


def test_footnotes_follow_their_paragraph_and_comments_the_text():
    assert read_bytes(report(), name="report.docx").content == (
        "Leave is thirty days[^2] for all.\n\n[^2]: Except in probation.\n\nAnother paragraph.\n\n"
        "Comment by Bo & Co on “thirty days”: Is that so?"
    )


def test_drawings_that_nothing_reads_are_counted():
    drawing = b"\x01\0\0\0" + b"\0" * 36 + b" EMF" + b"\0" * 5_000
    parts = {"word/media/image1.emf": drawing, "word/media/IMAGE2.EMF": drawing, "word/media/image3.wmf": drawing}
    told = read_bytes(changed(docx([("Normal", "Our own words.")]), parts), name="a.docx")
    assert told.metadata["drawings_not_read"] == "2 EMF, 1 WMF"
    assert "Our own words." in told.content
    # Bullets are none, nor is what another folder holds, and most files have none at all.
    small = {"word/media/image1.emf": b"EMF", "custom/image2.emf": drawing}
    for data in (docx([("Normal", "Our own words.")]), changed(docx([("Normal", "Our own words.")]), small)):
        assert "drawings_not_read" not in read_bytes(data, name="a.docx").metadata
