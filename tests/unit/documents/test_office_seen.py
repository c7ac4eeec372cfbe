"""Office files as their readers see them: what is hidden, moved, merged, framed, drawn or calculated."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest

from recollect.documents._sheets import read_chart, with_merged_cells
from recollect.documents.reader import read_bytes
from recollect.errors import ParseError

from .made_files import docx, pptx, xlsx, zipped
from .test_office_details import changed

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"


def word(body: str) -> str:
    """The text of a Word document of that XML."""
    data = docx([("", "MARK")])
    old = b'<w:p><w:r><w:t xml:space="preserve">MARK</w:t></w:r></w:p>'
    named = body.encode()
    return read_bytes(changed(data, {}, replaced={"word/document.xml": (old, named)}), name="a.docx").content


def line(text: str) -> str:
    return f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def grid(*rows: list[str]) -> str:
    cells = ["".join(f"<w:tc>{cell if cell.startswith('<') else line(cell)}</w:tc>" for cell in row) for row in rows]
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def test_a_tab_and_a_hyphen_that_never_breaks_stay_between_words():
    runs = (
        "<w:r><w:t>Name:</w:t><w:tab/><w:t>Ann R&amp;D</w:t></w:r>"
        "<w:r><w:t xml:space='preserve"
        "'> well</w:t><w:noBreakHyphen/><w:t>known co</w:t><w:softHyphen/><w:t>operation</w:t></w:r>"
    )
    tabs = '<w:pPr><w:tabs><w:tab w:val="left" w:pos="720"/></w:tabs></w:pPr>'
    assert word(f"<w:p>{tabs}{runs}</w:p>") == "Name: Ann R&D well-known cooperation"


def test_what_was_moved_away_deleted_or_hidden_is_not_read():
    hidden = "<w:r><w:rPr><w:vanish/></w:rPr><w:t>HIDDEN</w:t></w:r>"
    shown = '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>shown</w:t></w:r>'
    moved = "<w:moveFrom><w:r><w:t>FROM</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>to </w:t></w:r></w:moveTo>"
    cells = f"<w:tc>{line('A')}</w:tc><w:tc>{line('1')}</w:tc>"
    gone = f"<w:tr><w:trPr><w:del/></w:trPr>{cells.replace('A', 'GONE')}</w:tr>"
    content = word(f"<w:p>{moved}{hidden}{shown}</w:p><w:tbl><w:tr>{cells}</w:tr>{gone}</w:tbl>")
    assert content == "to shown\n\nA | 1"


def test_a_text_box_stands_behind_its_paragraph_once():
    box = "<w:txbxContent>" + line("In the box") + line("and below") + "</w:txbxContent>"
    either = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
        "</mc:AlternateContent>"
    )
    assert word(f"<w:p><w:r><w:t>Before.</w:t></w:r><w:r>{either}</w:r></w:p>" + line("After.")) == (
        "Before.\n\nIn the box\n\nand below\n\nAfter."
    )


def test_a_table_within_a_cell_follows_its_table_and_a_frame_gives_way():
    inner = grid(["Kind", "2023", "2024"], ["Steel", "1", "2"])
    outer = grid(["Role", "2023", "2024"], ["Chair", "10", line("12") + inner], ["Member", "5", "6"])
    assert word(outer) == (
        "| Role | 2023 | 2024 |\n|---|---|---|\n| Chair | 10 | 12 |\n| Member | 5 | 6 |\n\n"
        "| Kind | 2023 | 2024 |\n|---|---|---|\n| Steel | 1 | 2 |"
    )
    assert word(grid([line("First words.") + inner + line("Last words.")])) == (
        "First words.\n\n| Kind | 2023 | 2024 |\n|---|---|---|\n| Steel | 1 | 2 |\n\nLast words."
    )


@pytest.mark.parametrize("depth", [60, 400])
def test_tables_nested_deeply_lose_nothing_that_can_be_told(depth: int):
    nested = line("innermost")
    for at in range(depth):
        nested = grid([line(f"level {at}") + nested, "beside"])
    try:
        content = word(nested)
    except ParseError as refused:
        assert "damaged" in refused.reason
    else:
        assert "innermost" in content
        assert "level 0" in content


def chart(*, title: str = "Sales by region") -> str:
    def points(kind: str, values: list[str]) -> str:
        held = "".join(f'<c:pt idx="{at}"><c:v>{escape(value)}</c:v></c:pt>' for at, value in enumerate(values))
        return f"<c:{kind}Ref><c:{kind}Cache><c:formatCode>0.0</c:formatCode>{held}</c:{kind}Cache></c:{kind}Ref>"

    series = "".join(
        f"<c:ser><c:tx>{points('str', [name])}</c:tx><c:cat>{points('str', ['East', 'R&D'])}</c:cat>"
        f"<c:val>{points('num', values)}</c:val></c:ser>"
        for name, values in (("Sales 2024", ["19.200000000000003", "21"]), ("Sales 2025", ["29.5", "3"]))
    )
    shown = f"<c:title><a:p><a:r><a:t>{title}</a:t></a:r></a:p></c:title>" if title else ""
    return (
        f'<c:chartSpace xmlns:c="{_CHART}" xmlns:a="{_DRAWING}"><c:chart>{shown}<c:plotArea><c:barChart>{series}'
        "</c:barChart></c:plotArea></c:chart></c:chartSpace>"
    )


def related(kind: str, target: str) -> bytes:
    one = f'<Relationship Id="rId7" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_RELATIONS}">{one}</Relationships>'.encode()


_AS_TABLE = (
    "Sales by region\n\n|  | Sales 2024 | Sales 2025 |\n|---|---|---|\n| East | 19.2 | 29.5 |\n| R&D | 21.0 | 3.0 |"
)


def test_the_numbers_of_a_chart_on_a_slide_are_a_table():
    frame = (
        "<p:graphicFrame><p:xfrm><a:off x='1' y='9000000'/><a:ext cx='1' cy='1'/></p:xfrm><a:graphic><a:graphicData>"
        f'<c:chart xmlns:c="{_CHART}" r:id="rId7"/></a:graphicData></a:graphic></p:graphicFrame></p:spTree>'
    )
    parts = {
        "ppt/charts/chart1.xml": chart().encode(),
        "ppt/slides/_rels/slide1.xml.rels": related("chart", "../charts/chart1.xml"),
    }
    slide = {"ppt/slides/slide1.xml": (b"</p:spTree>", frame.encode())}
    read = read_bytes(changed(pptx([("Plan", ["First line"])]), parts, replaced=slide), name="a.pptx")
    assert read.content == f"## Plan\n\nFirst line\n\n{_AS_TABLE}"


def test_the_numbers_of_a_chart_in_a_text_stand_behind_its_paragraph():
    data = docx([("", "Before."), ("", "MARK"), ("", "After.")])
    drawing = (
        f'<w:p><w:r><w:drawing><c:chart xmlns:c="{_CHART}" xmlns:r="{_OFFICE}" r:id="rId7"/></w:drawing></w:r></w:p>'
    )
    rels = related("chart", "charts/chart1.xml").split(b"<Relationship ", 1)[1]
    made = changed(
        data,
        {"word/charts/chart1.xml": chart().encode()},
        replaced={
            "word/document.xml": (b'<w:p><w:r><w:t xml:space="preserve">MARK</w:t></w:r></w:p>', drawing.encode()),
            "word/_rels/document.xml.rels": (b"</Relationships>", b"<Relationship " + rels),
        },
    )
    assert read_bytes(made, name="a.docx").content == f"Before.\n\n{_AS_TABLE}\n\nAfter."


@pytest.mark.parametrize("part", [b"", b"<x/>", b"<c:chartSpace", chart().replace("<c:v>", "<c:w>").encode()])
def test_a_chart_without_numbers_is_none(part: bytes):
    assert read_chart(part) is None


def test_a_cell_of_a_slide_counts_for_every_row_that_it_reaches_over():
    def cell(text: str, marks: str = "") -> str:
        return f"<a:tc{marks}><a:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = [
        cell("Dept") + cell("Product") + cell("2024"),
        cell("Metals", ' rowSpan="2"') + cell("Steel") + cell("11"),
        cell("", ' vMerge="1"') + cell("Copper") + cell("13"),
    ]
    table = "".join(f"<a:tr>{row}</a:tr>" for row in rows)
    frame = (
        "<p:graphicFrame><p:xfrm><a:off x='1' y='9000000'/><a:ext cx='1' cy='1'/></p:xfrm><a:graphic><a:graphicData "
        f'uri="http://schemas.openxmlformats.org/drawingml/2006/table"><a:tbl>{table}</a:tbl></a:graphicData></a:graphic>'
        "</p:graphicFrame></p:spTree>"
    )
    slide = {"ppt/slides/slide1.xml": (b"</p:spTree>", frame.encode())}
    read = read_bytes(changed(pptx([("Plan", [])]), {}, replaced=slide), name="a.pptx").content
    assert read.endswith("| Metals | Steel | 11 |\n| Metals | Copper | 13 |")


def test_a_cell_of_a_sheet_counts_for_every_row_that_it_reaches_over():
    rows = [
        ["Dept", "Product", "2023", "2024"],
        ["Metals", "Steel", 10, 20],
        ["", "Copper", 30, 40],
        ["Food", "Bread", 1, 2],
    ]
    merged = (b"</sheetData>", b'</sheetData><mergeCells><mergeCell ref="A2:A3"/><mergeCell ref="B4:C6"/></mergeCells>')
    data = changed(xlsx({"Plan": rows}), {}, replaced={"xl/worksheets/sheet1.xml": merged})
    assert read_bytes(data, name="plan.xlsx").content.endswith(
        "| Metals | Steel | 10 | 20 |\n| Metals | Copper | 30 | 40 |\n| Food | Bread | 1 | 2 |"
    )


@pytest.mark.parametrize(
    "sheet",
    [
        b'<row r="2"><c r="A2"><v>1</v></c></row><row r="3"><c><v>2</v></c></row><mergeCell ref="A2:A3"/>',
        b'<row r="2"><c r="A2"><v>1</v></c></row><row r="3"><c r="A3"/></row><mergeCell ref="A2:A3"/>',
        b'<row r="2"><c r="A2"><v>1</v></c></row><row r="3"/><mergeCell ref="A2:A3"/>',
        b'<mergeCell ref="A1:A9999999"/><row r="2"><c r="A2"><v>1</v></c></row>',
        b"<row" * 1000 + b'<mergeCell ref="A2:A3"/>',
        b'<row r="1">' * 20_000 + b'<c r="A1">' * 20_000 + b'<mergeCell ref="A1:A3"/></row>',
    ],
)
def test_a_sheet_that_cannot_be_filled_stays(sheet: bytes):
    assert with_merged_cells(sheet) == sheet


def test_errors_and_formulas_that_nobody_has_calculated_are_told():
    data = xlsx({"Plan": [["Name", "Value"], ["share", 1], ["sum", 2], ["empty", 3], ["kept", 4]]})
    for old, new in (
        (b'<c r="B2"><v>1</v></c>', b'<c r="B2" t="e"><v>#DIV/0!</v></c>'),
        (b'<c r="B3"><v>2</v></c>', b'<c r="B3"><f>SUM(B1:B2)&amp;"x"</f><v></v></c>'),
        (b'<c r="B4"><v>3</v></c>', b'<c r="B4" t="str"><f>IF(1,"")</f><v></v></c>'),
        (b'<c r="B5"><v>4</v></c>', b'<c r="B5"><f>2*2</f><v>4</v></c>'),
    ):
        data = changed(data, {}, replaced={"xl/worksheets/sheet1.xml": (old, new)})
    assert read_bytes(data, name="a.xlsx").content == (
        "## Plan\n\n| Name | Value |\n|---|---|\n| share | #DIV/0! |\n"
        '| sum | =SUM(B1:B2)&"x" |\n| empty |  |\n| kept | 4 |'
    )


def ods(*rows: str, meta: str = "") -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text", "meta")
    )
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>"
        f'<table:table table:name="Plan">{"".join(rows)}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>",
    }
    if meta:
        space = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
        parts["meta.xml"] = f"<office:document-meta {spaces} {space}>{meta}</office:document-meta>"
    return zipped(parts)


def row(*cells: str, marks: str = "") -> str:
    held = "".join(
        one if one.startswith("<") else f"<table:table-cell><text:p>{one}</text:p></table:table-cell>" for one in cells
    )
    return f"<table:table-row {marks}>{held}</table:table-row>"


def test_repeated_merged_and_untyped_cells_of_an_opendocument_sheet():
    edge = '<table:table-cell table:number-columns-repeated="16384"/>'
    over_rows = '<table:table-cell table:number-rows-spanned="2"><text:p>Metals</text:p></table:table-cell>'
    covered = "<table:covered-table-cell/>"
    twice = (
        '<table:table-cell table:number-columns-repeated="2"><text:p>7<text:s text:c="3"/>x</text:p></table:table-cell>'
    )
    noted = (
        "<table:table-cell><office:annotation><text:p>A NOTE</text:p></office:annotation><text:p>Steel</text:p>"
        "</table:table-cell>"
    )
    stored = '<table:table-cell office:value-type="boolean" office:boolean-value="true"/>'
    read = read_bytes(
        ods(
            row("Group", "Item", "2023", "2024", edge),
            row(over_rows, noted, twice),
            row(covered, "Copper", "1", stored),
            row("Food", "Bread", "3", "4", marks='table:number-rows-repeated="2"'),
            row(edge, marks='table:number-rows-repeated="1000000"'),
            row("Far", "below"),
            meta="<dc:title>A plan</dc:title><dc:creator>Ann</dc:creator><dc:date>2024-05-06T07:08:09Z</dc:date>",
        ),
        name="plan.ods",
    )
    assert read.content == (
        "## Plan\n\n| Group | Item | 2023 | 2024 |\n|---|---|---|---|\n| Metals | Steel | 7 x | 7 x |\n"
        "| Metals | Copper | 1 | true |\n| Food | Bread | 3 | 4 |\n| Food | Bread | 3 | 4 |\n\nFar | below"
    )
    assert (read.title, read.metadata["author"], read.metadata["sheets"]) == ("A plan", "Ann", 1)
    assert read.event_time is not None


def test_an_empty_or_damaged_opendocument_sheet_says_so():
    with pytest.raises(ParseError, match="has no text in it"):
        read_bytes(ods(row("")), name="a.ods")
    with pytest.raises(ParseError, match="is damaged"):
        read_bytes(zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}), name="a.ods")
