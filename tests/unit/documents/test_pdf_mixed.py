"""Pages that mix columns and tables, run from right to left, or whose fonts do not say what they draw."""

from __future__ import annotations

import re

import pytest

from recollect.documents.formats import UnreadableError
from recollect.documents.ocr.readings import PageReading, ReadLine
from recollect.documents.pdf import parse_pages
from recollect.documents.pdf._grid import Column, Table, column_labels, understand
from recollect.documents.pdf._lines import Line
from recollect.documents.pdf._words import Segment
from recollect.documents.reader import parse

from .made_files import pdf
from .test_pdf_layout import Placed, boxes, made, page, read

PROSE = "the committee of the company has met and agreed again"


def column(name: str, x: float, top: float, lines: int) -> list[Placed]:
    return [(x, top - 12 * at, f"{name}{at} {PROSE}"[:46]) for at in range(lines)]


def row(y: float, *texts: str) -> list[Placed]:
    return [(x, y, text) for x, text in zip((50, 200, 320, 440), texts, strict=True)]


TABLE = [
    (50, 560, "Table 1. Sales by region"),
    *row(544, "Region", "2022", "2023", "2024"),
    *row(530, "North", "1,200", "1,300", "1,400"),
    *row(516, "South", "900", "950", "990"),
    *row(502, "Total", "2,100", "2,250", "2,390"),
]


def test_columns_above_and_below_a_table_over_the_whole_width_are_columns():
    columns = [*column("first", 50, 700, 8), *column("second", 320, 700, 8)]
    below = [*column("third", 50, 460, 8), *column("fourth", 320, 460, 8)]
    content = read(page(*columns, *TABLE, *below)).content
    places = [
        content.index(one) for one in ("first0", "first7", "second0", "second7", "Table 1.", "| Region", "| Total")
    ]
    assert places == sorted(places)
    assert content.index("| Total") < content.index("third0") < content.index("third7") < content.index("fourth0")
    assert "| North | 1,200 | 1,300 | 1,400 |" in content


@pytest.mark.parametrize(
    "numbers", [["i", "ii", "iii", "iv", "v"], ["- ix -", "- x -", "- xi -"], ["A-1", "A-2", "A-3"]]
)
def test_numbers_of_pages_in_other_forms_are_dropped(numbers: list[str]):
    pages = [page(*column(f"page{at} ", 50, 700, 3), (290, 30, number)) for at, number in enumerate(numbers)]
    content = read(*pages).content
    assert not set(numbers) & set(content.split("\n"))
    assert "running_lines" not in read(*pages).metadata


def test_letters_at_the_foot_of_pages_that_do_not_count_them_stay():
    pages = [page(*column("page", 50, 700, 3), (290, 30, letter)) for letter in ("x", "i", "v", "c")]
    assert {"x", "i", "v", "c"} <= set(read(*pages).content.split("\n"))


def test_a_line_that_stands_on_one_page_again_and_again_is_no_running_line():
    assert (
        read(page(*[(50, 700 - 12 * at, "Not applicable.") for at in range(6)])).content.count("Not applicable.") == 6
    )


def reading(*rows_: tuple[str, str, str], top: float = 100) -> PageReading:
    lines = [ReadLine("تقرير المبيعات السنوي للشركة العامة", 300.0, 50.0, 530.0, 62.0)]
    for at, (name, left, right) in enumerate(rows_):
        y = top + 16 * at
        lines += [
            ReadLine(name, 440.0, y, 530.0, y + 12),
            ReadLine(left, 300.0, y, 340.0, y + 12),
            ReadLine(right, 200.0, y, 240.0, y + 12),
        ]
    return PageReading(595.0, 842.0, 0, 0.0, tuple(lines))


def test_a_table_in_arabic_is_read_from_right_to_left_and_its_rows_keep_their_places():
    told = reading(("البند", "2023", "2024"), ("المبيعات", "1,200", "1,300"), ("صافي الربح", "800", "850"))
    parsed = parse_pages(1, {1: told})
    table = "| البند | 2023 | 2024 |\n|---|---|---|\n| المبيعات | 1,200 | 1,300 |\n| صافي الربح | 800 | 850 |"
    assert parsed.content.endswith(table)
    at = parsed.content.index("| صافي")
    (box,) = [one for one in parsed.pages[0].lines if one.start_offset == at]
    assert (box.left, box.right) == pytest.approx((200 / 595, 530 / 595))
    assert (box.top, box.bottom) == pytest.approx((132 / 842, 144 / 842))


def drawn_in(mapping: bytes, *texts: str) -> bytes:
    """A page in a font whose table of characters says ``mapping``."""
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def\n1 begincodespacerange\n"
        b"<00> <FF>\nendcodespacerange\n1 beginbfrange\n" + mapping + b"\nendbfrange\nendcmap end end"
    )
    held = b"90 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(cmap), cmap)
    data = pdf([texts])
    data = re.sub(rb"startxref\n\d+", b"startxref\n0", data)  # objects have moved: the table is made anew
    data = data.replace(b"/Encoding /WinAnsiEncoding", b"/ToUnicode 90 0 R")
    return data.replace(b"1 0 obj", held + b"1 0 obj", 1)


@pytest.mark.parametrize("character", [b"e021", b"0001", b"fffd"])
def test_a_page_whose_font_does_not_say_what_it_draws_counts_as_a_picture(character: bytes):
    mapping = b"<21> <7e> [" + b" <%s>" % character * 94 + b"]"
    told = parse(drawn_in(mapping, PROSE, PROSE, PROSE, PROSE), "a.pdf")
    assert (told.content, list(told.unread)) == ("", [1])


def test_a_page_whose_font_does_not_name_its_bullets_is_text():
    told = parse(drawn_in(b"<2a> <2a> <e02a>", *(f"* {PROSE}" for _ in range(4))), "a.pdf")
    assert told.content.count(PROSE) == 4
    assert not told.unread


def placed(y: float, *cells: tuple[str, float, float]) -> Line:
    return Line([Segment(text, x0, x1, y, y + 9, False, at) for at, (text, x0, x1) in enumerate(cells)])


def test_a_unit_beside_the_name_of_the_only_column_begins_another_table():
    unit = ("(Millions)", 24.0, 60.0)
    lines = [
        placed(700, unit, ("2022", 465, 478)),
        placed(689, ("Cost of sales", 24, 70), ("$", 367, 371), ("3", 566, 571)),
        placed(678, ("Research", 24, 70), ("36", 561, 571)),
        placed(667, ("Total", 29, 60), ("$", 367, 371), ("39", 561, 571)),
        placed(645, ("Restructuring actions, with their effects on cash, follow:", 24, 250)),
        placed(625, unit, ("Employee-Related", 445, 497)),
        placed(614, ("Expense incurred", 24, 90), ("41", 561, 571)),
        placed(603, ("Cash payments", 24, 80), ("(31)", 560, 574)),
        placed(592, ("Balance", 29, 60), ("$", 367, 371), ("10", 561, 571)),
    ]
    first, between, second = understand(lines, [])
    assert isinstance(first, Table)
    assert isinstance(second, Table)
    assert between is lines[4]
    assert (first.labels, second.corner, second.labels) == (["2022"], "(Millions)", ["Employee-Related"])
    assert (second.rows[0].label, second.rows[0].values) == ("Expense incurred", ["41"])


def test_values_below_a_text_of_several_lines_are_of_its_row():
    rows = [(60, 700, "Product"), (180, 700, "Class"), (430, 700, "2022"), (500, 700, "2021")]
    for at, name in enumerate(("Ibrance", "Inlyta", "Bosulif", "Sutent", "Lorbrena")):
        y = 680 - 30 * at
        rows += [(60, y, name), (180, y, f"A long class of product {at} that")]
        rows += (
            [(180, y - 11, "is wrapped"), (430, y - 11, f"{at}73"), (500, y - 11, f"{at}19")]
            if at == 3
            else [
                (430, y, f"{at}73"),
                (500, y, f"{at}19"),
            ]
        )
    assert "| Sutent | A long class of product 3 that is wrapped | 373 | 319 |" in read(page(*rows)).content


@pytest.mark.parametrize("shift", [0.0, 6.0])
def test_measures_of_a_change_stand_below_its_periods(shift: float):
    ends = [(218, 262), (270, 314), (321, 365), (372, 417), (451, 480), (486, 528), (562, 591)]
    above = placed(
        565,
        ("Year Ended December 31,", 247, 337),
        ("2022 vs. 2021", 403 + shift, 449 + shift),
        ("2021 vs. 2020", 516, 562),
    )
    places = [(232, 249), (284, 300), (335, 351), (393, 397), (448, 456), (505, 509), (559, 567)]
    names = [(text, *ends_) for text, ends_ in zip(("2022", "2021", "2020", "$", "%", "$", "%"), places, strict=True)]
    labels = column_labels([above.cells, placed(554, *names).cells], [Column(*one) for one in ends], [])
    assert labels == [
        *(f"Year Ended December 31 › {year}" for year in (2022, 2021, 2020)),
        *(f"{period} › {sign}" for period in ("2022 vs. 2021", "2021 vs. 2020") for sign in "$%"),
    ]


def test_nothing_to_read_is_no_picture():
    with pytest.raises(UnreadableError, match="has no text in it"):
        parse(made(b""), "a.pdf")


def test_a_ruled_table_in_latin_letters_is_not_mirrored():
    cells = [
        (65, 705, "Key"),
        (205, 705, "Meaning"),
        (65, 680, "timeout"),
        (205, 680, "Minutes"),
        (65, 655, "a"),
        (205, 655, "b"),
    ]
    told = read(boxes((60, 200, 400), (650, 670, 700, 720)) + page(*cells))
    assert told.content.startswith("| Key | Meaning |")
