from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.documents.headings import find_titles, title_headings

BODY = "Employees are entitled to thirty days of paid leave in every calendar year."


def shape(text):
    return [(one.level, one.title) for one in title_headings(text)]


def test_capitals_are_level_one_and_title_case_level_two():
    text = f"LEAVE POLICY\n\n{BODY}\n\nAnnual Leave\n\n{BODY}\n\nRules for the Carry-Over of Leave\n\n{BODY}\n"
    assert shape(text) == [(1, "LEAVE POLICY"), (2, "Annual Leave"), (2, "Rules for the Carry-Over of Leave")]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("3.2 Annual Leave", 2),
        ("3.2 Leave that is carried over", 2),
        ("3.2.1 Exceptions", 3),
        ("1. Introduction", 1),
        ("SECTION 4: REMOTE WORK", 1),
        ("Section 4: Remote Work", 1),
        ("CHAPTER IV", 1),
        ("4.1 REMOTE WORK", 2),
        ("Anhang B - Formulare", 1),
        ("ÜBERSTUNDEN UND ZEITAUSGLEICH", 1),
        ("ΕΤΗΣΙΑ ΑΔΕΙΑ", 1),
        ("2.1 年次有給休暇", 2),
        ("Monitoring", 2),
        ("Who May Sign?", 2),
    ],
)
def test_numbering_decides_the_level(line, level):
    assert shape(f"{BODY}\n\n{line}\n\n{BODY}\n") == [(level, line)]


@pytest.mark.parametrize(
    "line",
    [
        "This is a short sentence.",
        "this line has no capitals",
        "Please note the following",
        "- A List Item",
        "ERR-4012",
        "12 May 2024",
        "Monday, 3 June 2024",
        "http://EXAMPLE.COM/PATH",
        "Name | Department | Phone",
        "Annual Leave ........ 12",
        "Name        Department",
        "info@EXAMPLE.com",
        "Owner: Head of People",
        "237 Park Avenue",
        "New York, NY 10017",
        "1,234.50 EUR",
        "年次有給休暇",
        "الإجازة السنوية",
        "वार्षिक अवकाश",
        "“A Quotation In Title Case”",
        "X",
        "A" * 200,
    ],
)
def test_no_headings(line):
    assert shape(f"{BODY}\n\n{line}\n\n{BODY}\n") == []


def test_a_heading_needs_text_below_it():
    assert shape(f"{BODY}\n\nTHE END\n") == []


def test_signatures_and_addresses():
    assert shape(f"{BODY}\n\nBest regards,\nMaria Silva\nHead of People\n\n{BODY}\n") == []
    assert shape(f"Maria Silva\nHead of People\nRua Nova\n\n{BODY}\n") == []


def test_numbered_lists_are_no_headings():
    assert shape(f"{BODY}\n\n1. Open Harbor\n2. New Claim\n3. Choose Trip\n\n{BODY}\n") == []


def test_capitals_directly_above_their_text():
    assert shape(f"PURPOSE\n{BODY}\n\nSCOPE\n{BODY}\n") == [(1, "PURPOSE"), (1, "SCOPE")]


def test_a_line_inside_a_paragraph_is_no_heading():
    text = f"{BODY.rstrip('.')} and of the\nEuropean Works Council\n"
    text += "which meets every year in the spring and in the autumn.\n"
    assert shape(text) == []


def test_speaker_labels_are_no_headings():
    assert shape("\n\n".join(f"Maria Silva\n\n{BODY}" for _ in range(6))) == []


def test_wrapped_text_without_blank_lines():
    long = "Everybody who works five days a week receives thirty days of leave in a year, and"
    lines = [
        "Leave Policy",
        long,
        "those who work less receive less.",
        "2. ANNUAL LEAVE",
        "2.1 Entitlement",
        long,
        "Head Office in Bremen grants more.",
        "Joining During the Year",
        long,
        "that is all.",
    ]
    assert find_titles(lines, wrapped=True) == [
        (0, 2, "Leave Policy"),
        (3, 1, "2. ANNUAL LEAVE"),
        (4, 2, "2.1 Entitlement"),
        (7, 2, "Joining During the Year"),
    ]


def test_type_size_confirms_and_excludes():
    long = "Everybody who works five days a week receives thirty days of leave in a year."
    lines = ["How leave is granted", long, "Role Task", "Ann Payroll", "Bob Leave", "Other Words", long]
    found = find_titles(lines, wrapped=True, shown_as_headings={"How leave is granted", "Role Task"})
    assert found == [(0, 2, "How leave is granted")]


@given(st.lists(st.text(max_size=80), max_size=30), st.booleans())
def test_any_lines_give_ordered_headings(lines, wrapped):
    text = "\n".join(line.replace("\n", " ") for line in lines)
    headings = title_headings(text)
    assert [one.start_offset for one in headings] == sorted({one.start_offset for one in headings})
    for one in headings:
        assert one.title in text[one.start_offset : one.end_offset]
    indices = [at for at, _, _ in find_titles(text.split("\n"), wrapped=wrapped)]
    assert indices == sorted(set(indices))
