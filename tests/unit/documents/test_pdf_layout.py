"""Layouts of PDF pages: columns, tables, turned text, split words."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import pairwise

import pytest

from recollect.documents.reader import parse
from recollect.model import PageSpan

Placed = tuple[float, float, str]


def page(*texts: Placed, turned: Sequence[Placed] = ()) -> bytes:
    """A stream of texts at their places, in the given order; ``turned`` ones run upwards."""
    parts = [f"BT /F1 10 Tf 1 0 0 1 {x} {y} Tm ({_escaped(text)}) Tj ET" for x, y, text in texts]
    parts += [f"BT /F1 10 Tf 0 1 -1 0 {x} {y} Tm ({_escaped(text)}) Tj ET" for x, y, text in turned]
    return "\n".join(parts).encode("cp1252")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def made(*streams: bytes, rotate: int = 0) -> bytes:
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(streams)} /Kids [{kids}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, stream in enumerate(streams):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Rotate %d /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (rotate, 5 + 2 * number)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


def read(*streams: bytes, rotate: int = 0):
    return parse(made(*streams, rotate=rotate), "made.pdf")


def rows(first: int, last: int, *, top: int) -> list[Placed]:
    found: list[Placed] = []
    for place, number in enumerate(range(first, last)):
        y = top - 14 * place
        found += [(60, y, f"Cost of line {number}"), (350, y, f"{number},100"), (450, y, f"({number},200)")]
    return found


HEAD = [(60, 700, "(in millions)"), (362, 700, "2024"), (466, 700, "2023")]
SPANNED = [(365, 714, "Year ended December 31,")]


def test_a_table_has_one_label_a_column():
    content = read(page(*SPANNED, *HEAD, *rows(1, 6, top=686))).content
    assert content.split("\n")[:3] == [
        "| (in millions) | Year ended December 31 › 2024 | Year ended December 31 › 2023 |",
        "|---|---|---|",
        "| Cost of line 1 | 1,100 | (1,200) |",
    ]


def test_the_groups_of_rows_stand_before_their_labels():
    lines = [*HEAD, (60, 686, "Operating expenses:")]
    lines += [(70 if x == 60 else x, y, text) for x, y, text in rows(1, 4, top=672)]
    lines += [(60, 630, "Total"), (350, 630, "6,100"), (450, 630, "(6,200)")]
    content = read(page(*lines)).content
    assert "| Operating expenses › Cost of line 2 | 2,100 | (2,200) |" in content
    assert "| Total | 6,100 | (6,200) |" in content


def test_a_wrapped_label_is_one():
    lines = [*HEAD, *rows(1, 3, top=686), (60, 658, "Income of the group before interest and"), (60, 646, "taxes")]
    lines += [(350, 646, "9,100"), (450, 646, "9,200")]
    assert "| Income of the group before interest and taxes | 9,100 | 9,200 |" in read(page(*lines)).content


def test_a_table_over_two_pages_is_one_and_each_row_keeps_its_page():
    parsed = read(page(*HEAD, *rows(1, 6, top=686)), page(*rows(6, 11, top=780)))
    assert parsed.content.count("|---|---|---|") == 1
    assert parsed.content.count("\n\n") == 0
    second = parsed.pages[1]
    assert second.number == 2
    assert parsed.content[second.start_offset :].startswith("| Cost of line 6 | 6,100 | (6,200) |")


def test_signs_join_their_values():
    lines = [*HEAD]
    for y in (686, 672):
        lines += [(60, y, "Cash"), (320, y, "$"), (360, y, "1,100"), (430, y, "$"), (470, y, "1,200")]
    assert "| Cash | $1,100 | $1,200 |" in read(page(*lines)).content


def test_rows_that_are_no_table_stay_lines():
    content = read(
        page((60, 700, "Name of the one"), (350, 700, "Somebody"), (60, 686, "Another"), (350, 686, "No"))
    ).content
    assert content.split("\n") == ["Name of the one  Somebody", "Another  No"]


def test_the_names_of_columns_stand_above_a_group_too():
    lines = [(362, 714, "Games"), (466, 714, "Films"), (60, 700, "Revenues by kind"), *rows(1, 4, top=686)]
    content = read(page(*lines)).content
    assert content.startswith("|  | Games | Films |")
    assert "Cost of line 1 | 1,100 | (1,200) |" in content


def test_a_second_table_has_its_own_title_and_columns():
    second = [(60, 620, "Provision"), (60, 600, "(in millions)"), (362, 600, "2022"), (466, 600, "2021")]
    content = read(page(*HEAD, *rows(1, 4, top=686), *second, *rows(4, 7, top=586))).content
    assert content.count("|---|---|---|") == 2
    assert "\n\nProvision\n\n| (in millions) | 2022 | 2021 |\n" in content


def test_years_beside_a_title_below_a_blank_line_begin_another_table():
    second = [(90, 610, "Reconciliation"), (362, 610, "2022"), (466, 610, "2021")]
    content = read(page(*HEAD, *rows(1, 4, top=686), *second, *rows(4, 7, top=596))).content
    assert "\n\n| Reconciliation | 2022 | 2021 |\n" in content


def test_a_period_over_one_column_begins_another_table():
    second = [(400, 620, "Year ended December 31, 2021")]
    second += [(60, 606, "Retail"), (380, 606, "$"), (520, 606, "1,033"), (60, 592, "Other"), (528, 592, "505")]
    content = read(page(*HEAD, *rows(1, 4, top=686), *second)).content
    assert "|  | Year ended December 31, 2021 |\n|---|---|\n| Retail | $1,033 |\n| Other | 505 |" in content


def test_words_that_are_wrapped_in_a_cell_stay_in_its_row():
    lines = [(60, 700, "Name"), (180, 700, "Age"), (240, 700, "Position"), (420, 700, "Since")]
    for place, name in enumerate(("Ann Alder", "Bob Beech", "Cat Cedar", "Dan Doe")):
        y = 680 - 40 * place
        lines += [
            (60, y, name),
            (182, y, str(51 + place)),
            (240, y, "Vice President of the"),
            (420, y, str(2011 + place)),
        ]
        lines += [(246, y - 11, "Board of Directors")]
    content = read(page(*lines)).content
    assert content.split("\n")[0] == "| Name | Age | Position | Since |"
    assert "| Bob Beech | 52 | Vice President of the Board of Directors | 2012 |" in content


def test_a_wrapped_name_of_a_column_is_one():
    names = [(350, 714, "Defined"), (350, 703, "benefits"), (450, 703, "Hedges")]
    assert read(page(*names, *rows(1, 5, top=686))).content.startswith("|  | Defined benefits | Hedges |")


def test_a_sentence_above_a_table_keeps_its_end():
    lines = [(60, 730, "The costs of each line of business by year are shown in the table that stands below (amounts")]
    lines += [(60, 718, "in millions):"), (362, 700, "2024"), (466, 700, "2023"), *rows(1, 4, top=686)]
    content = read(page(*lines)).content
    assert "below (amounts in millions):\n\n|  | 2024 | 2023 |" in content


def test_the_second_of_two_letters_f_comes_back():
    # pdfium leaves out a letter that stands almost on its like, as in slanted type.
    lines = [(60, 700, "Any effect of the effects has an effect"), (60, 680, "Currency ef"), (114, 680, "ects of it")]
    assert "Currency effects of it" in read(page(*lines)).content


LEFT = [(50, 700 - 12 * n, f"left line {n} has words of its own here") for n in range(8)]
RIGHT = [(320, 700 - 12 * n, f"right line {n} has words of its own too") for n in range(8)]


def test_columns_are_read_one_after_the_other():
    content = read(page(*LEFT, *RIGHT)).content
    assert content.index("left line 7") < content.index("right line 0")


def test_lines_that_cross_both_columns_stand_where_they_are():
    crossing = (50, 720, "A title that runs over both of the columns of this page, and is one line")
    content = read(page(crossing, *LEFT, *RIGHT)).content
    assert content.index("A title") < content.index("left line 0") < content.index("right line 0")


def test_a_turned_page_is_read_as_it_is_seen():
    upwards = [(100 + 14 * n, 100, f"line {n} of the turned page") for n in range(4)]
    expected = " ".join(text for _, _, text in upwards)
    assert read(page(turned=upwards), rotate=90).content == expected
    assert read(page(turned=upwards)).content == expected


def test_words_that_were_split_at_the_end_of_a_line_are_joined():
    lines = [
        (60, 700, "The committee of the company has decided to introduce the regu-"),
        (60, 688, "lation that everybody has waited for, and this regulation applies"),
        (60, 676, "to all."),
    ]
    assert "introduce the regulation that everybody" in read(page(*lines)).content


def boxes(xs: Sequence[float], ys: Sequence[float], *, filled: bool = False) -> bytes:
    """A box around each cell of a grid; ``filled``: a ground for each, without sides."""
    drawn = [
        f"{x0} {y0} {x1 - x0} {y1 - y0} re {'f' if filled else 'S'}"
        for y0, y1 in pairwise(ys)
        for x0, x1 in pairwise(xs)
    ]
    return b"0.9 g\n" + "\n".join(drawn).encode() + b"\n0 g\n"


CELLS: list[Placed] = [
    *((65, 705, "Key"), (205, 705, "Meaning")),
    *((205, 686, "Minutes without activity"), (65, 680, "timeout"), (205, 674, "until sign-out")),
    *((65, 655, "alarm"), (205, 655, "Who is called first, as 2.")),
]


def test_a_ruled_table_is_read_cell_by_cell_though_it_has_no_numbers():
    text = page((60, 760, "What the keys mean:"), *CELLS, (60, 600, "Keys are set in the console."))
    told = read(boxes((60, 200, 400), (650, 670, 700, 720)) + text)
    assert told.content == (
        "What the keys mean:\n\n| Key | Meaning |\n|---|---|\n| timeout | Minutes without activity until sign-out |\n"
        "| alarm | Who is called first, as 2. |\n\nKeys are set in the console."
    )


def test_a_ruled_table_goes_on_on_the_next_page_with_its_header_or_without():
    first = boxes((60, 200, 400), (650, 670, 700, 720)) + page(*CELLS)
    bare = boxes((60, 200, 400), (760, 780, 800)) + page(
        (65, 785, "quiet"), (205, 785, "Nobody is called."), (65, 765, "loud"), (205, 765, "All.")
    )
    headed = boxes((60, 200, 400), (760, 780, 800)) + page(
        (65, 785, "Key"), (205, 785, "Meaning"), (65, 765, "quiet"), (205, 765, "Nobody is called.")
    )
    end = page((60, 700, "The end."))
    for second in (bare + end, headed + end):
        told = read(first, second)
        assert told.content.count("|---|") == 1
        assert "| alarm | Who is called first, as 2. |\n| quiet | Nobody is called. |" in told.content
        assert [span.number for span in told.pages] == [1, 2]
        page_two = told.pages[1]
        assert told.content[page_two.start_offset : page_two.end_offset].startswith("| quiet")
        assert told.content[page_two.start_offset : page_two.end_offset].endswith("The end.")


def test_a_text_that_runs_up_to_the_next_cell_is_cut_at_the_line():
    cells = [(65, 705, "Level"), (205, 705, "Support"), (65, 685, "Gold, for all that"), (146, 685, "24 hours")]
    told = read(boxes((60, 145, 400), (680, 700, 720)) + page(*cells))
    assert "| Gold, for all that | 24 hours |" in told.content


def test_grounds_behind_texts_are_no_table():
    told = read(boxes((60, 200, 400), (650, 670, 700, 720), filled=True) + page(*CELLS))
    assert "|" not in told.content


def test_one_box_around_a_text_is_no_table():
    told = read(boxes((60, 400), (600, 720)) + page(*CELLS))
    assert "|" not in told.content


def test_a_drawing_of_thousands_of_lines_is_no_table_and_costs_little():
    lines = b"\n".join(
        b"%d %d m %d %d l S" % (60 + n % 400, 100 + n // 7, 60 + n % 400, 140 + n // 7) for n in range(4_500)
    )
    assert read(lines + b"\n" + page((60, 780, "A drawing."))).content == "A drawing."


def test_a_header_below_an_empty_row_is_one():
    told = read(boxes((60, 200, 400), (650, 670, 700, 720, 740)) + page(*CELLS))
    assert told.content.startswith("| Key | Meaning |\n|---|---|\n| timeout |")


def test_a_ruled_table_that_heads_every_page_is_told_once():
    head = boxes((60, 200, 400), (780, 800, 820)) + page(
        (65, 805, "Document"), (205, 805, "DOC-7"), (65, 785, "Owner"), (205, 785, "Quality")
    )
    told = read(*(head + b"\n" + page((60, 700, f"What page {word} says.")) for word in ("one", "two", "three")))
    assert told.content == "What page one says.\n\nWhat page two says.\n\nWhat page three says."
    assert told.metadata["running_lines"] == "Document | DOC-7 | Owner | Quality"


def test_every_text_within_boxes_is_kept():
    xs, ys = (60, 150, 260, 400), (600, 640, 660, 700, 720)
    texts = [(62 + 7 * (n * 37 % 46), 604 + n * 13 % 112, f"w{n}x") for n in range(28)]
    told = read(boxes(xs, ys) + page(*texts))
    assert all(told.content.count(text) == 1 for _, _, text in texts)


def placed(parsed, text):
    """The box of the line that begins with a text."""
    (line,) = (one for page in parsed.pages for one in page.lines if parsed.content.startswith(text, one.start_offset))
    return tuple(round(edge, 2) for edge in (line.left, line.top, line.right, line.bottom))


def test_every_line_has_a_box():
    parsed = read(page((60, 700, "The first line of it."), (60, 600, "Another that stands apart from it.")))
    # Baselines at 700 and 600 of 842 points, type of 10.
    assert placed(parsed, "The first") == (0.1, 0.16, 0.23, 0.17)
    assert placed(parsed, "Another") == (0.1, 0.28, 0.35, 0.29)


def test_a_box_is_where_the_line_is_on_the_page_as_it_is_shown():
    texts = [(60, 700 - 14 * at, f"Line {at} of a page that is shown turned") for at in range(4)]
    # By a quarter to the right: what was 700 of 842 above the lower edge is so far from the left one.
    left, top, right, bottom = placed(read(page(*texts), rotate=90), "Line 0")
    assert (left, right) == (0.83, 0.84)
    assert top == 0.1
    assert bottom > 0.35
    left, top, right, bottom = placed(read(page(*texts), rotate=180), "Line 0")
    assert (right, bottom) == (0.9, 0.84)


def test_text_that_stands_upright_has_an_upright_box():
    side = [(40, 200, "Confidential until the end of the year")]
    parsed = read(page(*rows(1, 12, top=686), turned=side))
    left, top, right, bottom = placed(parsed, "Confidential")
    assert right - left < 0.03
    assert bottom - top > 0.15
    assert (left, bottom) == (0.05, 0.76)


def test_rows_of_a_table_and_its_names_of_columns_have_boxes():
    parsed = read(page(*HEAD, *rows(1, 4, top=686)))
    assert placed(parsed, "| (in millions)")[0] == 0.1
    first, second = placed(parsed, "| Cost of line 1"), placed(parsed, "| Cost of line 2")
    assert first[0] == second[0] == 0.1
    assert first[3] <= second[1]
    assert first[2] == second[2] > 0.75


def test_boxes_of_a_cropped_page_are_shares_of_what_is_shown():
    data = made(page((60, 700, "A line on a page that is cropped."))).replace(
        b"/MediaBox [0 0 595 842]", b"/MediaBox [0 0 595 842] /CropBox [50 600 350 800]"
    )
    left, top, _, bottom = placed(parse(data, "made.pdf"), "A line")
    assert (left, bottom) == (0.03, 0.51)
    assert top > 0.4


def test_a_line_that_is_off_the_page_has_no_box_beyond_it():
    parsed = read(page((500, 700, "A line that goes on behind the right edge of the page.")))
    assert placed(parsed, "A line")[2] == 1.0


@pytest.mark.parametrize(
    "box",
    [
        b"[0 0 0 0]",
        b"[0 0 1e30 1e30]",
        b"[-1e9 -1e9 1e9 1e9]",
        b"[595 842 0 0]",
        b"[nan nan nan nan]",
        b"[]",
        b"[900 900 1000 1000]",
        b"(none)",
    ],
)
def test_hostile_sizes_of_pages_give_boxes_on_the_page_or_none(box: bytes):
    text = page((60, 700, "A line on a page of no usual size."))
    for size in (b"/MediaBox %s" % box, b"/MediaBox [0 0 595 842] /CropBox %s" % box):
        parsed = parse(made(text).replace(b"/MediaBox [0 0 595 842]", size), "made.pdf")
        assert parsed.content == "A line on a page of no usual size."
        for line in parsed.pages[0].lines:
            edges = (line.left, line.top, line.right, line.bottom)
            assert all(0 <= edge <= 1 for edge in edges)
            assert (line.start_offset, line.end_offset) == (0, len(parsed.content))
            assert json.loads(json.dumps(parsed.pages[0].as_list()))[3]


def test_letters_far_off_and_of_monstrous_size_break_nothing():
    stream = b"BT /F1 1e9 Tf 1 0 0 1 0 0 Tm (huge) Tj ET BT /F1 10 Tf 1 0 0 1 -1e12 1e12 Tm (far) Tj ET "
    stream += b"BT /F1 10 Tf 0 0 0 0 60 700 Tm (flat) Tj ET " + page((60, 600, "One line that is as others are."))
    parsed = parse(made(stream), "made.pdf")
    assert "One line that is as others are." in parsed.content
    for line in parsed.pages[0].lines:
        assert 0 <= line.left <= line.right <= 1
        assert 0 <= line.top <= line.bottom <= 1
    assert PageSpan.of_list(parsed.pages[0].as_list()).end_offset == len(parsed.content)


def test_many_short_lines_stay_small():
    texts = [(40 + 50 * (at % 10), 820 - 1.6 * (at // 10), f"w{at}") for at in range(5_000)]
    parsed = parse(made(page(*texts)), "made.pdf")
    assert len(json.dumps([one.as_list() for one in parsed.pages])) < 12 * 5_000


def noted(x: float, y: float, *parts: str, size: int = 10) -> bytes:
    """A line whose every second part is a raised mark."""
    raised, level = f"{0.35 * size} Ts /F1 {0.6 * size} Tf", f"0 Ts /F1 {size} Tf"
    shown = [f"{raised if at % 2 else level} ({part}) Tj" for at, part in enumerate(parts)]
    return f"BT 1 0 0 1 {x} {y} Tm {' '.join(shown)} 0 Ts ET\n".encode()


FEET = noted(
    60,
    90,
    "",
    "1",
    "Of the second edition, which is the one that our own library has, on its shelf of rules and of laws of",
    size=7,
)
FEET += noted(60, 81, "all kinds.", size=7) + noted(60, 72, "", "2", "See the annex.", size=7)


def test_footnotes_stand_behind_the_paragraph_that_refers_to_them():
    body = noted(60, 700, "Leave is granted as the policy", "1", " of the house says it, and it is taken")
    body += noted(60, 688, "in whole days, as the annex", "2", " tells with examples.")
    body += noted(60, 660, "Another paragraph follows here, which refers to nothing at all below.")
    parsed = read(body + FEET)
    assert parsed.content.split("\n\n") == [
        "Leave is granted as the policy1 of the house says it, and it is taken in whole days, as the annex2 tells with "
        "examples.",
        "1Of the second edition, which is the one that our own library has, on its shelf of rules and of laws of all "
        "kinds.",
        "2See the annex.",
        "Another paragraph follows here, which refers to nothing at all below.",
    ]
    assert placed(parsed, "1Of the second")[3] > 0.88
    assert len(parsed.pages) == 1


def test_what_nothing_refers_to_stays_at_the_foot_of_the_page():
    body = noted(60, 700, "Leave is granted as the policy of the house says it, in whole days.")
    body += noted(60, 670, "Another paragraph follows here, which refers to", "2", " the annex.")
    told = read(body + FEET).content.split("\n\n")
    assert told[-1].startswith("1Of the second edition")
    assert told.index("2See the annex.") == 2


def test_numbers_in_the_text_and_lists_are_no_footnotes():
    lines = [
        (60, 700, "The form W2 and the gas CO2 are named in the text of the page"),
        (60, 660, "1. First entry of it"),
    ]
    lines += [(60, 646, "2. Second entry of it"), (60, 632, "2See the annex, which is set as all others are.")]
    content = read(page(*lines)).content
    assert content.index("1. First") < content.index("2. Second") < content.index("2See")


def test_a_page_of_nothing_but_marks_is_read_in_time():
    text = b"".join(noted(40 + 60 * (at % 8), 820 - 2 * (at // 8), f"w{at}", "1", size=7) for at in range(2_400))
    content = read(text).content
    assert content.count("w") == 2_400


def test_a_side_bar_is_read_apart_from_the_text_beside_it():
    text = [(50, 700 - 14 * at, f"Line {at} of the text goes on for most of the width of it") for at in range(12)]
    bar = [(420, 700 - 18 * at, f"A remark {at} in the side bar") for at in range(8)]
    content = read(page(*text, *bar)).content
    assert content.index("Line 11") < content.index("A remark 0")
    assert "of it A remark" not in content


def test_names_of_columns_beside_a_unit_stand_above_groups_of_rows():
    names = [(60, 728, "(in millions)"), (345, 728, "Fair value"), (450, 728, "Losses")]
    groups = [(60, 714, "December 31, 2024"), (60, 700, "Debt securities:")]
    content = read(page(*names, *groups, *rows(1, 4, top=686))).content
    assert content.startswith("| (in millions) | Fair value | Losses |")
    assert "Debt securities › Cost of line 2 | 2,100 | (2,200) |" in content


def test_a_table_goes_on_below_names_of_groups_at_the_top_of_a_page():
    first = page(*HEAD, *rows(1, 6, top=686))
    second = page((60, 800, "Immunology"), *((70 if x == 60 else x, y, text) for x, y, text in rows(6, 9, top=786)))
    parsed = read(first, second)
    assert parsed.content.count("|---|---|---|") == 1
    assert "| Immunology › Cost of line 7 | 7,100 | (7,200) |" in parsed.content
    assert parsed.pages[1].number == 2


def test_a_title_above_a_header_at_the_top_of_a_page_stays_a_line():
    content = read(page((60, 730, "Deferred taxes"), *HEAD, *rows(1, 4, top=686))).content
    assert content.startswith("Deferred taxes\n\n| (in millions) | 2024 | 2023 |")


def test_numbers_that_are_set_one_character_at_a_time_are_whole():
    widths = {",": 2.78, ".": 2.78, "(": 3.33, ")": 3.33}
    lines = [*HEAD]
    for y, texts in ((686, ("Immunology", "11,036", "(29.8)")), (672, ("Oncology", "5,899", "1.8"))):
        lines.append((60, y, texts[0]))
        for left, text in zip((350, 450), texts[1:], strict=True):
            x = left
            for char in text:
                lines.append((round(x, 2), y, char))
                x += widths.get(char, 5.56)
    content = read(page(*lines)).content
    assert "| Immunology | 11,036 | (29.8) |" in content
    assert "| Oncology | 5,899 | 1.8 |" in content
