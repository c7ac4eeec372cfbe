"""Tables of formats that know cells alone: which rows name the columns, merged cells, several tables in a sheet."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.chunking.chunkers import RecursiveChunker
from recollect.documents import read_bytes
from recollect.documents._html import parse_markup
from recollect.documents._parsed import pipe_table, table_lines, tables_of_sheet


def test_names_over_several_rows_are_joined_to_one_a_column():
    rows = [
        ["", "Year ended December 31", "Year ended December 31", "Level"],
        ["", "2024", "2023", "1"],
        ["Cash", "2,853", "", "12"],
        ["Debt", "", "5", ""],
    ]
    assert table_lines(rows) == [
        "Cash; Year ended December 31 › 2024: 2,853; Level › 1: 12",
        "Debt; Year ended December 31 › 2023: 5",
    ]


def test_a_merged_name_reaches_over_the_names_below_it():
    rows = [
        ["Department", "2023", "", "2024"],
        ["", "Plan", "Actual", "Plan"],
        ["Sales", "10", "12", "14"],
        ["IT", "7", "", "9"],
    ]
    assert table_lines(rows) == [
        "Department: Sales; 2023 › Plan: 10; 2023 › Actual: 12; 2024 › Plan: 14",
        "Department: IT; 2023 › Plan: 7; 2024 › Plan: 9",
    ]


def test_years_alone_name_columns():
    rows = [["", "2024", "2023"], ["Cash", "", "3,053"], ["Debt", "5", "1,998"]]
    assert table_lines(rows) == ["Cash; 2023: 3,053", "Debt; 2024: 5; 2023: 1,998"]
    # Values under years, but no names before them: the years may be values too.
    assert table_lines([["2024", "2023"], ["2022", "2021"]]) == ["2024 | 2023", "2022 | 2021"]


def test_titles_and_units_above_the_names_stay_lines():
    rows = [["Budget", "Budget", "Budget"], ["in EUR", "", ""], ["Department", "2023", "2024"], ["Sales", "10", "12"]]
    assert table_lines(rows) == ["Budget", "in EUR", "Department: Sales; 2023: 10; 2024: 12"]


def test_where_nothing_names_the_columns_an_empty_cell_keeps_its_place():
    assert table_lines([["Cash", "", "3"], ["Debt", "5", ""]]) == ["Cash |  | 3", "Debt | 5"]


def test_a_sheet_is_parted_into_its_tables():
    grid = [
        ["Budget (in EUR)", "", "", "", ""],
        ["", "", "", "", ""],
        ["Department", "2024", "", "City", "Rent"],
        ["Sales", "14", "", "Bremen", "1200.5"],
        ["IT", "9", "", "Köln", "90"],
        ["", "", "", "", ""],
        ["Sum", "23", "", "", ""],
        ["", "", "", "", ""],
        ["Name", "Start", "", "", ""],
        ["Ann", "2024-05-06 00:00:00", "", "", ""],
    ]
    tables = [[[cell for cell in row if cell] for row in one] for one in tables_of_sheet(grid)]
    assert tables == [
        [["Budget (in EUR)"]],
        [["Department", "2024"], ["Sales", "14"], ["IT", "9"], ["Sum", "23"]],
        [["City", "Rent"], ["Bremen", "1200.5"], ["Köln", "90"]],
        [["Name", "Start"], ["Ann", "2024-05-06"]],
    ]


def test_an_empty_column_between_values_parts_nothing():
    grid = [["", "2024", "", "2023"], ["Cash", "1", "", "2"], ["Debt", "3", "", "4"]]
    (table,) = tables_of_sheet(grid)
    assert table_lines(table) == ["Cash; 2024: 1; 2023: 2", "Debt; 2024: 3; 2023: 4"]


CELLS = st.lists(st.lists(st.sampled_from(["", "a", "b", "Plan", "2024", "12", "3,053"]), max_size=5), max_size=7)


@given(CELLS, st.sampled_from([None, True, False]))
def test_the_last_row_is_never_taken_for_names(rows, header):
    text = "\n".join(table_lines(rows, header=header))
    last = next((row for row in reversed(rows) if any(row)), [])
    assert all(cell in text for cell in last)


@given(CELLS)
def test_the_tables_of_a_sheet_hold_every_cell_once(rows):
    given_cells = sorted(cell for row in rows for cell in row if cell)
    assert sorted(cell for table in tables_of_sheet(rows) for row in table for cell in row if cell) == given_cells


def test_a_table_is_written_with_pipes_where_its_cells_are_values():
    rows = [["Fees", "", ""], ["Office", "2024", "2023"], ["A | B", "1", ""], ["Köln", "", "7"]]
    assert pipe_table(rows) == "Fees\n\n| Office | 2024 | 2023 |\n|---|---|---|\n| A / B | 1 |  |\n| Köln |  | 7 |"
    assert pipe_table([["Cash", "", "3"], ["Debt", "5", ""]]) == "Cash |  | 3\nDebt | 5"
    text = "A paragraph about it. " * 20
    assert pipe_table([["Topic", "What to do"], ["Leave", text]], header=True).startswith(
        "Topic: Leave; What to do: A par"
    )
    assert pipe_table([]) == ""


def test_a_piece_of_a_sheet_is_indexed_with_the_names_of_its_columns():
    rows = [["Office", "2023", "2024"], *([f"Office {number}", number, number * 2] for number in range(100))]
    document = read_bytes(_workbook(rows), name="plan.xlsx")
    pieces = RecursiveChunker().chunk(document)[1:]
    assert len(pieces) > 3
    assert {one.metadata["table_header"] for one in pieces} == {"| Office | 2023 | 2024 |"}
    assert all(line.startswith("| Office ") and line.endswith(" |") for one in pieces for line in one.text.split("\n"))


@given(CELLS, st.sampled_from([None, True, False]))
def test_a_table_with_pipes_holds_every_cell_of_its_rows(rows, header):
    text = pipe_table(rows, header=header)
    assert all(cell in text for row in rows for cell in row)


def test_merged_cells_of_a_web_page():
    page = """<table><caption>Fees in EUR</caption>
    <tr><th rowspan=2>Office<th colspan=2>2024<th>2023</tr><tr><th>Plan<th>Actual<th>Plan</tr>
    <tr><th>Bremen<td>1<td>2<td>3<tr><th rowspan=2>Köln<td>5<td><td>7<tr><td>9<td>10<td></table>"""
    assert parse_markup(page).content == (
        "Fees in EUR\n\n"
        "| Office | 2024 › Plan | 2024 › Actual | 2023 › Plan |\n|---|---|---|---|\n"
        "| Bremen | 1 | 2 | 3 |\n| Köln | 5 |  | 7 |\n| Köln | 9 | 10 |  |"
    )


@pytest.mark.parametrize("span", ["0", "-1", "x", "", "9" * 5000, "²"])
def test_nonsense_of_spans_is_one(span):
    rows = "".join(f"<tr><td>Row {at}<td>{at}" for at in range(3))
    page = f"<table><tr><th>Name<th colspan='{span}' rowspan='{span}'>Count{rows}</table>"
    assert "Row 2" in parse_markup(page).content


def test_a_table_that_is_never_closed_is_read():
    assert parse_markup("<table><tr>text").content == "text"
    assert parse_markup("<p>Before<table><tr><td>a<td>b").content == "Before\n\na | b"


def _workbook(rows):
    cells = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{relations}"><sheets>'
        '<sheet name="Plan" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def _cell(value):
    if isinstance(value, tuple):
        return f"<c><f>{value[0]}</f><v>{value[1]}</v></c>"
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if value else "<c/>"
    return f"<c><v>{value}</v></c>"


def test_a_workbook_is_read_with_the_values_of_its_formulas():
    document = read_bytes(
        _workbook(
            [
                ["Budget 2024 (in EUR thousand)"],
                [],
                ["Department", "2023", "", "2024"],
                ["", "Plan", "Actual", "Plan"],
                ["Sales", 10, 12, 14],
                ["Sum", ("SUM(B5:B6)", 17), "", ("D5+9", 23)],
            ]
        ),
        name="plan.xlsx",
    )
    assert document.content == (
        "## Plan\n\nBudget 2024 (in EUR thousand)\n\n"
        "| Department | 2023 › Plan | 2023 › Actual | 2024 › Plan |\n|---|---|---|---|\n"
        "| Sales | 10 | 12 | 14 |\n| Sum | 17 |  | 23 |"
    )
