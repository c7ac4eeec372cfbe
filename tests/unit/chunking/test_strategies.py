"""What each strategy does with ordinary documents."""

from __future__ import annotations

import pytest

from recollect.chunking.chunkers import (
    HierarchicalChunker,
    MarkdownChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
)
from recollect.errors import UsageError
from recollect.model import Document, Heading

HANDBOOK = """# Leave

## Annual leave

Everyone has thirty days. Ask your manager two weeks ahead.

```sh
## not a heading
leave request
```

### Carry-over

Five days may be carried over.

## Sick leave

A note is needed from the third day on.
"""


def texts(chunks):
    return [chunk.text for chunk in chunks]


def test_markdown_cuts_at_second_level_headings_even_if_all_fits():
    chunks = MarkdownChunker(max_tokens=1000).chunk(Document(content=HANDBOOK))
    assert [chunk.metadata["header"] for chunk in chunks] == ["Annual leave", "Sick leave"]
    assert chunks[0].text.startswith("# Leave\n\n## Annual leave")
    assert chunks[1].text.startswith("## Sick leave")
    assert chunks[1].section == ("Leave", "Sick leave")
    assert chunks[1].metadata == {
        "header": "Sick leave",
        "level": 2,
        "position": 1,
        "token_count": chunks[1].token_count,
    }


def test_markdown_cuts_long_sections_at_third_level_headings():
    chunks = MarkdownChunker(max_tokens=40).chunk(Document(content=HANDBOOK))
    assert [chunk.metadata["header"] for chunk in chunks] == ["Annual leave", "Carry-over", "Sick leave"]
    assert all(chunk.token_count <= 40 for chunk in chunks)


def test_markdown_keeps_a_small_document_without_sections_whole():
    content = "# Title\n\nOne.\n\n### Detail\n\nTwo.\n"
    assert texts(MarkdownChunker().chunk(Document(content=content))) == [content.strip()]
    assert len(MarkdownChunker(max_tokens=8).chunk(Document(content=content))) == 2


def test_markdown_follows_the_headings_of_other_formats():
    content = "Leave\nThirty days.\nSickness\nA note."
    headings = (Heading(2, "Leave", 0, 5), Heading(2, "Sickness", 19, 27))
    chunks = MarkdownChunker().chunk(Document(content=content, headings=headings))
    assert texts(chunks) == ["Leave\nThirty days.", "Sickness\nA note."]


def test_recursive_prefers_the_strongest_break():
    content = "First of all, this. And then that.\n\nA new paragraph follows here. It goes on and on for a while."
    assert texts(RecursiveChunker(size=70).chunk(Document(content=content))) == content.split("\n\n")


def test_recursive_keeps_a_heading_with_its_text():
    content = "Some introduction of a few words.\n\n## Details\n\nWhat it is about, in many words."
    document = Document(content=content, mime_type="text/markdown")
    chunks = RecursiveChunker(size=60).chunk(document)
    assert texts(chunks) == ["Some introduction of a few words.", "## Details\n\nWhat it is about, in many words."]
    assert [chunk.section for chunk in chunks] == [(), ("Details",)]


def test_recursive_overlap_repeats_whole_sentences():
    content = "Alpha is one. Beta is two. Gamma is three. Delta is four."
    chunks = RecursiveChunker(size=30, overlap=15).chunk(Document(content=content))
    assert texts(chunks)[:2] == ["Alpha is one. Beta is two.", "Beta is two. Gamma is three."]


def test_fenced_code_stays_whole_where_it_fits():
    code = "```\nfirst\n\nsecond\n\nthird\n```"
    content = f"An introduction that takes some room.\n\n{code}\n\nAnd an end that takes some room as well."
    assert any(code in chunk.text for chunk in RecursiveChunker(size=50).chunk(Document(content=content)))


def test_tokens_as_the_unit():
    chunks = RecursiveChunker(size=5, unit="tokens").chunk(Document(content="one two three four five six seven"))
    assert [chunk.token_count for chunk in chunks] == [5, 2]


def test_paragraphs_keep_their_section_and_merge_when_short():
    content = "## A\n\n" + "a" * 50 + "\n\nshort\n\n## B\n\n" + "b" * 50 + "\n"
    chunks = ParagraphChunker().chunk(Document(content=content))
    assert [chunk.section for chunk in chunks] == [("A",), ("B",)]
    assert chunks[0].text.endswith("short")


def test_semantic_breaks_where_neighbours_part():
    content = "Cats purr. Cats nap. Rates rose. Rates fell. Rates rose again."
    chunker = SemanticChunker(
        min_size=10, max_size=60, similarity=lambda sentences: [0.9, 0.1, 0.8, 0.7], similarity_threshold=0.5
    )
    assert texts(chunker.chunk(Document(content=content))) == [
        "Cats purr. Cats nap.",
        "Rates rose. Rates fell. Rates rose again.",
    ]


def test_semantic_refuses_a_similarity_of_the_wrong_length():
    chunker = SemanticChunker(similarity=lambda sentences: [0.5])
    with pytest.raises(UsageError, match="one value per pair of neighbours: 2 for 3 texts, not 1"):
        chunker.chunk(Document(content="One. Two is here. Three is there."))


def test_hierarchical_returns_the_section():
    chunks = HierarchicalChunker(size=60, parent_max_size=400).chunk(Document(content=HANDBOOK))
    sick = next(chunk for chunk in chunks if "third day" in chunk.text)
    start, end = sick.parent
    assert HANDBOOK[start:end].startswith("## Sick leave")
    assert all(chunk.parent[1] - chunk.parent[0] <= 400 for chunk in chunks)
