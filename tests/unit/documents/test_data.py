from __future__ import annotations

import json
from email.message import EmailMessage

import pytest

from recollect.documents import read_bytes
from recollect.documents._parsed import table_lines
from recollect.errors import ParseError


def content(data, name):
    return read_bytes(data if isinstance(data, bytes) else data.encode(), name=name).content


def test_csv_rows_carry_their_column_names():
    text = 'Name,Grade,Salary\r\n"Ann, A.",B,"1,200"\r\nBo,,900\r\n\r\nMonitor 27",C,1\r\n'
    assert content(text, "a.csv").split("\n") == [
        "Name: Ann, A.; Grade: B; Salary: 1,200",
        "Name: Bo; Salary: 900",
        'Name: Monitor 27"; Grade: C; Salary: 1',
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter):
    rows = [["Country", "Rate", "Note"], ["Italy", "1.5", "x"], ["Spain", "2.5", "y"]]
    text = "\n".join(delimiter.join(row) for row in rows)
    assert content(text, "a.csv") == "Country: Italy; Rate: 1.5; Note: x\nCountry: Spain; Rate: 2.5; Note: y"


def test_csv_in_a_legacy_encoding():
    assert content("Stadt;Fläche;Größe\nKöln;1;2\n".encode("cp1252"), "a.csv") == "Stadt: Köln; Fläche: 1; Größe: 2"


def test_an_unpaired_quotation_mark_loses_nothing():
    text = 'a,b,c\n"' + "x,y,z\n" * 40_000
    assert content(text, "a.csv").count("z") >= 40_000


def test_tables_without_header():
    assert table_lines([["Phone", "Ann"], ["Room", "Bob"]]) == ["Phone | Ann", "Room | Bob"]
    assert table_lines([["1", "2", "3"], ["4", "5", "6"]]) == ["1 | 2 | 3", "4 | 5 | 6"]
    assert table_lines([["only", "one", "row"]]) == ["only | one | row"]
    assert table_lines([["Occasion", "Days"], ["Wedding", "2"]]) == ["Occasion: Wedding; Days: 2"]
    assert table_lines([["0", "Name", "Age"], ["1", "Ann", "32"]]) == ["1; Name: Ann; Age: 32"]
    assert table_lines([]) == []


def test_json_is_an_outline():
    value = {"name": "Größe", "on": True, "none": None, "list": [1.50, {"a": "x\ny"}], "empty": {}}
    assert content(json.dumps(value), "a.json") == (
        "name: Größe\non: true\nnone: null\nlist:\n  - 1.5\n  -\n    a: x\ny\nempty:"
    )


def test_numbers_keep_their_digits():
    assert content('{"a": 1.500, "b": 123456789012345678901234567890}', "a.json") == (
        "a: 1.500\nb: 123456789012345678901234567890"
    )


@pytest.mark.parametrize(
    "text", ['{"a": 1} // comment', "[" * 100_000, '{"a": 1}\n{"b": 2}', "[" * 90 + "1" + "]" * 90]
)
def test_what_is_no_json_or_too_deep_is_read_as_it_stands(text):
    assert content(text, "a.json") == text


def mail(**headers):
    message = EmailMessage()
    for name, value in headers.items():
        message[name] = value
    return message


def test_mail():
    message = mail(
        Subject="Größe der Büros", From="Ann <ann@x.example>", To="bo@x.example", Date="Mon, 16 Dec 2024 10:30:00 -0500"
    )
    message.set_content("Hallo Bo,\n\ndie Größe ist 5 m.\n", charset="iso-8859-1")
    message.add_alternative("<p>HTML part</p>", subtype="html")
    message.add_attachment(b"\0\1", maintype="application", subtype="octet-stream", filename="plan.bin")
    document = read_bytes(bytes(message), name="a.eml")
    assert document.title == "Größe der Büros"
    assert document.event_time.isoformat() == "2024-12-16T10:30:00-05:00"
    assert document.metadata == {
        "format": "eml",
        "author": "Ann <ann@x.example>",
        "attachments": "plan.bin",
        "attachments_left_out": "plan.bin is of a type that is not read",
    }
    assert document.content == (
        "Subject: Größe der Büros\nFrom: Ann <ann@x.example>\nTo: bo@x.example\nDate: "
        "Mon, 16 Dec 2024 10:30:00 -0500\n\n"
        "Hallo Bo,\n\ndie Größe ist 5 m."
    )


def test_html_mail():
    message = mail(Subject="News", From="a@x.example")
    message.set_content("<h1>Hello</h1><p>Text</p>", subtype="html")
    document = read_bytes(bytes(message), name="a.eml")
    assert [one.title for one in document.headings] == ["Hello"]
    start = document.headings[0].start_offset
    assert document.content[start:].startswith("# Hello\n\nText")


def test_no_mail():
    with pytest.raises(ParseError, match="not an e-mail"):
        content("just some text without header lines", "a.eml")
