"""Sections, pages and hashes of documents."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from recollect.model import Document, Heading, PageSpan


@given(st.text(st.characters(categories=None), max_size=50))
def test_every_content_has_a_hash(content: str):
    expected = hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()
    assert Document(content=content).content_hash == expected


def test_the_section_path_follows_the_levels():
    spans = [(1, "A", 0), (2, "B", 10), (4, "C", 20), (2, "D", 30), (1, "E", 40)]
    document = Document(
        content="x" * 60, headings=tuple(Heading(level, title, at, at + 2) for level, title, at in spans)
    )
    paths = {0: "A", 9: "A", 10: "AB", 25: "ABC", 30: "AD", 39: "AD", 40: "E", 59: "E"}
    assert {offset: "".join(document.section_path(offset)) for offset in paths} == paths
    assert Document(content="x").section_path(0) == ()


@given(st.lists(st.integers(1, 4), max_size=12), st.integers(0, 130))
def test_section_paths_go_strictly_inwards(levels: list[int], offset: int):
    headings = tuple(Heading(level, str(level), 10 * n + 5, 10 * n + 8) for n, level in enumerate(levels))
    path = [int(title) for title in Document(content="x" * 130, headings=headings).section_path(offset)]
    assert path == sorted(set(path))
    above = [heading for heading in headings if heading.start_offset <= offset]
    assert path[-1:] == [above[-1].level] if above else path == []


def test_pages_are_found_by_their_first_character():
    document = Document(content="x" * 30, pages=(PageSpan(1, 0, 10), PageSpan(2, 10, 20), PageSpan(4, 20, 30)))
    assert [document.page_at(offset) for offset in (0, 9, 10, 20, 29)] == [1, 1, 2, 4, 4]
    assert Document(content="x").page_at(0) is None
