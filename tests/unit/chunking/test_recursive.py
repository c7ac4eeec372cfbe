"""The strongest break that fits: separators of the caller's own, and overlap where there is no break."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.chunking._cutting import markdown_headings
from recollect.chunking.chunkers import RecursiveChunker
from recollect.chunking.registry import describe_chunker, make_chunker
from recollect.errors import UsageError
from recollect.model import Document


@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_a_forced_cut_keeps_its_overlap(unit):
    text = "x" * 100 if unit == "characters" else "木" * 100
    chunks = RecursiveChunker(size=20, overlap=5, unit=unit).chunk(Document(content=text))
    assert chunks[0].end_offset == 20
    assert all(after.start_offset == before.end_offset - 5 for before, after in pairwise(chunks))
    assert "".join(chunk.text[0 if not n else 5 :] for n, chunk in enumerate(chunks)) == text


def test_separators_stand_in_place_of_paragraphs_and_sentences():
    text = "one;two;three|four;five|six seven"
    chunks = RecursiveChunker(size=14, separators=["|", ";"]).chunk(Document(content=text))
    assert [chunk.text for chunk in chunks] == ["one;two;three|", "four;five|", "six seven"]
    chunks = RecursiveChunker(size=9, separators=["|", ";"]).chunk(Document(content=text))
    assert [chunk.text for chunk in chunks] == ["one;two;", "three|", "four;", "five|", "six seven"]
    overlapping = RecursiveChunker(size=9, overlap=4, separators=("|", ";", "")).chunk(Document(content=text))
    assert overlapping[1].text.startswith("two;")


def test_front_matter_is_no_section():
    matter = "---\ntitle: Rules for travel and for expenses\ntags: [travel, money]\n---\n"
    for space in ("", "\n", "\r\n\r\n"):
        text = f"{matter}{space}# Trains\n\nTake the train.\n\n# Hotels\n\nTake the cheapest one.\n"
        document = Document(content=text, mime_type="text/markdown")
        assert [chunk.text.splitlines()[-1] for chunk in RecursiveChunker().chunk(document)] == [
            "Take the train.",
            "Take the cheapest one.",
        ]


@pytest.mark.parametrize("separators", ["|", [], [1], [""], 7])
def test_separators_that_make_no_sense(separators):
    with pytest.raises(UsageError, match="separators"):
        RecursiveChunker(separators=separators)


def test_separators_are_described():
    assert describe_chunker(RecursiveChunker(separators=["|"]))["separators"] == ["|"]
    assert make_chunker("recursive", separators=["|"]) == RecursiveChunker(separators=("|",))
    assert describe_chunker(RecursiveChunker())["algorithm"] == 3


HANDBOOK = """# Handbook

## Annual leave

Everybody has thirty days of leave.

## Health insurance

The company pays half.

### Dentists

A tenth.

### Glasses

Every second year.
"""


def test_no_chunk_spans_a_heading_of_the_first_two_levels():
    chunks = RecursiveChunker(size=400).chunk(Document(content=HANDBOOK, mime_type="text/markdown"))
    assert [chunk.section for chunk in chunks] == [("Handbook", "Annual leave"), ("Handbook", "Health insurance")]
    assert chunks[0].text.startswith("# Handbook") and chunks[1].text.startswith("## Health insurance")
    assert chunks[1].metadata["sections"] == [
        [HANDBOOK.index("### Dentists"), "Handbook > Health insurance > Dentists"],
        [HANDBOOK.index("### Glasses"), "Handbook > Health insurance > Glasses"],
    ]


@given(
    st.lists(
        st.sampled_from(["# A\n", "## B\n", "### C\n", "#### D\n", "Words that say something.\n\n", "No.\n"]),
        max_size=30,
    ).map("".join),
    st.integers(20, 300),
    st.integers(0, 19),
)
def test_whatever_the_headings(text, size, overlap):
    document = Document(content=text, mime_type="text/markdown")
    chunks = RecursiveChunker(size=size, overlap=overlap).chunk(document)
    headings = markdown_headings(text)
    levels = sorted({heading.level for heading in headings})[:2]
    for chunk in chunks:
        assert chunk.end_offset - chunk.start_offset <= size
        for heading in headings:
            if heading.level in levels and chunk.start_offset < heading.start_offset < chunk.end_offset:
                assert not said_between(text, chunk.start_offset, heading.start_offset)


def said_between(text: str, start: int, end: int) -> str:
    headings = markdown_headings(text)
    inside = {at for one in headings for at in range(one.start_offset, one.end_offset)}
    return "".join(text[at] for at in range(start, end) if at not in inside).strip()


@pytest.mark.parametrize(("unit", "size"), [("characters", 200), ("tokens", 50)])
def test_no_fragment_is_left_at_the_end(unit, size):
    text = " ".join(["Words that say something."] * 8) + "\n\nSee also the rest."
    chunks = RecursiveChunker(size=size, unit=unit).chunk(Document(content=text))
    assert min(chunk.end_offset - chunk.start_offset for chunk in chunks) >= 40
