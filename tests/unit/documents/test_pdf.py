from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.documents import read_bytes
from recollect.errors import ParseError

from .made_files import pdf

LONG = "Everybody who works five days a week receives thirty days of paid leave in the year and"


def read(pages, **options):
    return read_bytes(pdf(pages, **options), name="leave_policy.pdf")


def test_pages_have_exact_spans():
    document = read([[LONG, "so on – “done”."], ["Zweite Seite: Größe."], ["Third page."]])
    assert [page.number for page in document.pages] == [1, 2, 3]
    texts = [document.content[page.start_offset : page.end_offset] for page in document.pages]
    assert texts == [f"{LONG} so on – “done”.", "Zweite Seite: Größe.", "Third page."]
    assert document.content == "\n\n".join(texts)
    assert document.page_at(document.content.index("Größe")) == 2
    assert document.metadata["page_count"] == 3


def test_a_page_without_text_keeps_the_numbers_of_the_others():
    document = read([["First."], [], ["Third."]])
    assert [page.number for page in document.pages] == [1, 3]


def test_lines_become_paragraphs_and_headings():
    document = read(
        [
            [
                (20, "Leave Policy"),
                LONG,
                LONG,
                "no more.",
                "1. ANNUAL LEAVE",
                LONG,
                "so on.",
                (14, "1.1 Carry-Over"),
                LONG,
                "end.",
            ]
        ]
    )
    assert [(one.level, one.title) for one in document.headings] == [
        (2, "Leave Policy"),
        (1, "1. ANNUAL LEAVE"),
        (2, "1.1 Carry-Over"),
    ]
    assert document.content.split("\n\n") == [
        "Leave Policy",
        f"{LONG} {LONG} no more.",
        "1. ANNUAL LEAVE",
        f"{LONG} so on.",
        "1.1 Carry-Over",
        f"{LONG} end.",
    ]
    assert document.section_path(document.content.index("end.")) == ("1. ANNUAL LEAVE", "1.1 Carry-Over")


def test_running_lines_are_dropped_and_kept_as_metadata():
    pages = [
        ["ACME CORPORATION", f"{LONG} page {word}.", "and more.", f"Page {n} of 4"] for n, word in enumerate("abcd", 1)
    ]
    document = read(pages)
    assert "ACME CORPORATION" not in document.content
    assert "Page " not in document.content
    assert document.metadata["running_lines"].startswith("ACME CORPORATION")
    assert document.headings == ()
    assert all(f"page {word}." in document.content for word in "abcd")


def test_numbered_chapters_are_no_running_headers():
    document = read([[f"Chapter {n}", f"{n} {LONG}", f"the end of {n}."] for n in (1, 3, 4, 9)])
    assert [one.title for one in document.headings] == ["Chapter 1", "Chapter 3", "Chapter 4", "Chapter 9"]


def test_title_and_time():
    document = read([[LONG]], info={"Title": "The Leave Policy", "Author": "Ann", "CreationDate": "D:20240506070809Z"})
    assert document.title == "The Leave Policy"
    assert document.event_time == datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
    assert document.metadata == {"format": "pdf", "author": "Ann", "page_count": 1}
    assert read([[LONG]], info={"Title": "Microsoft Word - final_v2.docx"}).title == "Leave policy"
    assert read([[LONG]], info={"Title": "untitled"}).title == "Leave policy"


def test_blank_pages():
    with pytest.raises(ParseError, match=r"has no text in it$"):
        read([[], []])


def test_a_damaged_file():
    whole = pdf([[LONG]])
    with pytest.raises(ParseError) as caught:
        read_bytes(whole[:20], name="x.pdf")
    assert caught.value.path == "x.pdf"
    assert "damaged" in caught.value.reason


def test_what_was_filled_into_a_form_and_noted_on_a_page_stands_behind_its_text():
    told = read_bytes(
        pdf(
            [["Request for leave", "Name and days are filled in."], ["The second page."]],
            notes=[
                "/Subtype /Widget /FT /Tx /T (name) /TU (Full name) /V (Ada Lovelace)",
                "/Subtype /Widget /FT /Tx /T (reason)",
                "/Subtype /Widget /FT /Tx /T (days) /V (12)",
                "/Subtype /Widget /FT /Tx /T (internal) /V (not for readers) /F 2",
                "/Subtype /Widget /FT /Btn /T (unpaid) /V /Yes /AS /Yes /AP << /N << /Yes 3 0 R /Off 3 0 R >> >>",
                "/Subtype /Widget /FT /Btn /T (paid) /V /Off /AS /Off /AP << /N << /Yes 3 0 R /Off 3 0 R >> >>",
                "/Subtype /Text /Contents (Approved on 3 May, said Grace.)",
                "/Subtype /Link /Contents (a link)",
            ],
        ),
        name="form.pdf",
    )
    first, second = told.content.split("\n\nThe second")
    assert first.endswith(
        "filled in.\n\nFull name: Ada Lovelace\ndays: 12\nunpaid: Yes\nApproved on 3 May, said Grace."
    )
    assert second == " page."
    assert [told.content[span.start_offset : span.end_offset][-6:] for span in told.pages] == ["Grace.", " page."]


def test_a_page_of_which_a_form_alone_holds_text_is_read():
    told = read_bytes(pdf([[]], notes=["/Subtype /Widget /FT /Tx /T (name) /V (Ada)"]), name="form.pdf")
    assert told.content == "name: Ada"
