"""Redaction: whatever stands around it, values are gone and every offset is that of its text."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.model import Document, Heading, LineBox, PageSpan
from recollect.privacy.detector import Detector
from recollect.privacy.redaction import Redacted, Renaming, inspect

VALUES = (
    "ann.smith@example.com",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "+49 171 1234567",
    "(415) 555-2671",
    "123-45-6780",
    "AB 12 34 56 C",
    "192.168.1.17",
)
WORDS = st.sampled_from(
    ["leave", "Straße", "2019", "1,234", "\n", "# Heading", "İstanbul", "😀", "\u00ad", "x", "—", ""]
)


@cache
def detector() -> Detector:
    return Detector()


texts = st.lists(st.one_of(WORDS, st.sampled_from(VALUES)), max_size=25).map(" ; ".join)


@settings(max_examples=60)
@given(texts, st.data())
def test_offsets_follow_the_text_that_they_are_of(text: str, data: st.DataObject):
    found = detector().find(text)
    taken = Redacted(text, found)
    assert [value for value in VALUES if value in taken.text] == []
    assert detector().find(taken.text) == []
    offset = data.draw(st.integers(0, len(text)))
    moved = taken.offset(offset)
    inside = any(one.start < offset < one.end for one in found)
    assert 0 <= moved <= len(taken.text)
    if not inside:
        outside = [one for one in found if one.end <= offset]
        assert taken.text[:moved] == Redacted(text[:offset], outside).text
    assert taken.offset(min(offset + 1, len(text))) >= moved


@settings(max_examples=40)
@given(st.lists(texts, min_size=1, max_size=4), st.sampled_from(VALUES))
def test_a_document_keeps_its_structure_and_none_of_its_values(pages: list[str], value: str):
    content, spans, headings = "", [], []
    for number, page in enumerate(pages, 1):
        start = len(content)
        content += f"Chapter {number} {value}\n{page}\n"
        headings.append(Heading(1, f"Chapter {number} {value}", start, start + len(f"Chapter {number} {value}")))
        line = LineBox(start, headings[-1].end_offset, 0.1, 0.1, 0.9, 0.2)
        spans.append(PageSpan(number, start, len(content), (line,)))
    document = Document(
        content=content,
        source=f"files/{value}/notes.txt",
        title=f"About {value}",
        metadata={"owner": value, value: [value, {"deep": value}], "year": 2019},
        tags=(value, "hr"),
        department=value,
        headings=tuple(headings),
        pages=tuple(spans),
    )
    done = inspect(document, detector(), name=Renaming(detector(), b"salt"))
    assert value not in repr(done.redacted)
    assert done.redacted.metadata["year"] == 2019
    kept = done.redacted.content
    for heading in done.redacted.headings:
        assert kept[heading.start_offset : heading.end_offset] == heading.title
    lines = [line for span in done.redacted.pages for line in span.lines]
    assert [kept[line.start_offset : line.end_offset] for line in lines] == [
        one.title for one in done.redacted.headings
    ]
    assert [span.number for span in done.redacted.pages] == [span.number for span in spans]
    assert "".join(kept[span.start_offset : span.end_offset] for span in done.redacted.pages) == kept
    again = inspect(done.redacted, detector(), name=Renaming(detector(), b"salt"))
    assert (again.counts, again.redacted.source) == ({}, done.redacted.source)


def test_names_stay_different_and_tell_nothing():
    renamed = Renaming(detector(), b"salt")
    one, other = renamed("hr/ann@example.com.txt"), renamed("hr/bob@example.com.txt")
    assert one != other
    assert one == renamed("hr/ann@example.com.txt")
    assert one.startswith("hr/[redacted email]")
    assert one != Renaming(detector(), b"other salt")("hr/ann@example.com.txt")
    assert renamed("hr/leave.txt") == "hr/leave.txt"
