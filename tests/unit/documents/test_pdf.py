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


def test_running_headers_stay_once_and_are_no_headings():
    pages = [
        ["ACME CORPORATION", f"{LONG} page {word}.", "and more.", f"Page {n} of 4"] for n, word in enumerate("abcd", 1)
    ]
    document = read(pages)
    assert document.content.count("ACME CORPORATION") == 1
    assert document.content.count("Page ") == 1
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


def test_scanned_pages():
    with pytest.raises(ParseError, match="no text in it; if its pages are scanned"):
        read([[], []])


def test_a_damaged_file():
    whole = pdf([[LONG]])
    with pytest.raises(ParseError) as caught:
        read_bytes(whole[:20], name="x.pdf")
    assert caught.value.path == "x.pdf"
    assert "damaged" in caught.value.reason
