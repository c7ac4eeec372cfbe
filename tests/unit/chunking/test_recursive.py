"""The strongest break that fits: separators of the caller's own, and overlap where there is no break."""

from __future__ import annotations

from itertools import pairwise

import pytest

from recollect.chunking.recursive import RecursiveChunker
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


@pytest.mark.parametrize("separators", ["|", [], [1], [""], 7])
def test_separators_that_make_no_sense(separators):
    with pytest.raises(UsageError, match="separators"):
        RecursiveChunker(separators=separators)


def test_separators_are_described():
    assert describe_chunker(RecursiveChunker(separators=["|"]))["separators"] == ["|"]
    assert make_chunker("recursive", separators=["|"]) == RecursiveChunker(separators=("|",))
    assert describe_chunker(RecursiveChunker())["algorithm"] == 1
