"""What every chunking strategy promises, on arbitrary text, headings, pages and parameters."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recollect.chunking.base import LONGEST_TOKEN, count_tokens, tokenize
from recollect.chunking.chunkers import (
    FixedSizeChunker,
    HierarchicalChunker,
    MarkdownChunker,
    ParagraphChunker,
    RecursiveChunker,
    SemanticChunker,
    SlidingWindowChunker,
)
from recollect.chunking.registry import PluggedChunker
from recollect.chunking.sentences import sentence_spans
from recollect.model import Document, Heading, PageSpan

SNIPPETS = [
    "\n", "\r\n", "\r", "\n\n", "\r\n \r\n", "\t", " ", "   ", "\u2028", "\x85", "\u00a0", "\x0c", "\x1c", "\x0b",
    "# A\n", "## Leave\n\n", "### b\r\n", "##\n", "```\n", "~~~\n", "```py\n## no\n```\n", "| a | b |\n",
    "Dr. Wu left. ", "e\u0301", "\u0301", "\u200d", "👩\u200d👩\u200d👧", "👍🏽", "𝔘", "नमस्ते ", "مرحبا. ",
    "你好。", "カタカナ",
    "a. b! c? ", "word " * 12, "x" * 90, "«Oui.» ", "(etc.) ", "… ", "3.14 ", "\\n", "ERR-4012",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(SNIPPETS), max_size=40).map("".join),
    st.lists(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=8)), max_size=30).map("".join),
    st.text(max_size=300),
    st.text(alphabet=" \n\r\t\u2028", max_size=80),
    st.integers(0, 3000).map(lambda length: "x" * length),
    st.integers(0, 900).map(lambda length: "e\u0301" * length),
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    content = draw(TEXTS)
    offsets = sorted(set(draw(st.lists(st.integers(0, len(content)), max_size=12))))
    headings = tuple(
        Heading(draw(st.integers(1, 6)), f"H{start}", start, draw(st.integers(start, end)))
        for start, end in pairwise(offsets)
    )
    breaks = sorted({0, *draw(st.lists(st.integers(0, len(content)), max_size=4)), len(content)})
    pages = tuple(PageSpan(number, start, end) for number, (start, end) in enumerate(pairwise(breaks), start=1))
    return Document(
        content=content,
        headings=headings if draw(st.booleans()) else (),
        pages=pages if draw(st.booleans()) else (),
        mime_type=draw(st.sampled_from(["text/plain", "text/markdown"])),
        language=draw(st.sampled_from([None, "en", "de", "ar", "zh", "xx", ""])),
    )


UNITS = st.sampled_from(["characters", "tokens"])
SIZES = st.integers(1, 120)


def words_with_spaces(text: str) -> list[tuple[int, int]]:
    """A tokeniser with the habits of byte-level BPE: leading spaces inside, several tokens for one character."""
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"\s?\S{1,4}|\s+", text):
        spans.append(match.span())
        if not match.group().isascii():
            spans.append(match.span())
    return spans


TOKENIZERS = st.sampled_from([None, tokenize, words_with_spaces])


@st.composite
def sized_chunkers(draw: st.DrawFn) -> tuple[object, int, str]:
    """A chunker, its limit, and the limit's unit."""
    unit, size = draw(UNITS), draw(SIZES)
    overlap = draw(st.integers(0, size - 1))
    match draw(st.integers(0, 6)):
        case 0:
            return FixedSizeChunker(size=size, overlap=overlap, unit=unit), size, unit
        case 1:
            stride = draw(st.integers(1, size))
            return SlidingWindowChunker(window_size=size, stride=stride, unit=unit), size, unit
        case 2:
            return RecursiveChunker(size=size, overlap=overlap, unit=unit), size, unit
        case 3:
            return ParagraphChunker(min_size=size, max_size=2 * size + overlap, unit=unit), 2 * size + overlap, unit
        case 4:
            similarity = draw(st.sampled_from([None, lambda texts: [len(t) % 7 / 7 for t in texts[1:]]]))
            percentile = draw(st.integers(0, 100))
            chunker = SemanticChunker(
                min_size=size,
                max_size=size + 1 + overlap,
                similarity=similarity,
                breakpoint_percentile=percentile,
                similarity_threshold=draw(st.sampled_from([None, 0.5])),
                unit=unit,
            )
            return chunker, size + 1 + overlap, unit
        case 5:
            return HierarchicalChunker(size=size, parent_max_size=size + overlap, unit=unit), size, unit
        case _:
            return MarkdownChunker(max_tokens=size), size, "tokens"


def assert_promises(document: Document, chunks: list) -> None:
    content = document.content
    covered = bytearray(len(content))
    for position, chunk in enumerate(chunks):
        assert content[chunk.start_offset : chunk.end_offset] == chunk.text
        assert chunk.position == position
        assert chunk.text
        assert chunk.text == chunk.text.strip()
        assert chunk.page == document.page_at(chunk.start_offset)
        if chunk.parent:
            assert chunk.parent[0] <= chunk.start_offset < chunk.end_offset <= chunk.parent[1] <= len(content)
        covered[chunk.start_offset : chunk.end_offset] = b"\1" * len(chunk.text)
    assert all(is_covered or character.isspace() for is_covered, character in zip(covered, content, strict=True))
    starts = [chunk.start_offset for chunk in chunks]
    assert starts == sorted(starts)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(), sized_chunkers())
def test_every_strategy_keeps_its_promises(document, chunker_and_limit):
    chunker, limit, unit = chunker_and_limit
    chunks = chunker.chunk(document)
    assert_promises(document, chunks)
    # What is looked at of somebody else's chunker holds of every one.
    assert PluggedChunker("mine", chunker, {}).chunk(document) == chunks
    for chunk in chunks:
        assert chunk.token_count == count_tokens(chunk.text) or unit == "tokens"
        assert chunk.token_count >= count_tokens(chunk.text)
        length = len(chunk.text) if unit == "characters" else chunk.token_count
        assert length <= limit
        if chunk.parent and unit == "characters":
            assert chunk.parent[1] - chunk.parent[0] <= chunker.parent_max_size


@settings(max_examples=200, deadline=None)
@given(documents(), SIZES)
def test_limits_hold_in_the_tokens_of_any_tokenizer(document, size):
    for chunker in (
        RecursiveChunker(size=size, overlap=size // 3, unit="tokens", tokenize=words_with_spaces),
        FixedSizeChunker(size=size, overlap=size // 3, unit="tokens", tokenize=words_with_spaces),
        MarkdownChunker(max_tokens=size, tokenize=words_with_spaces),
    ):
        chunks = chunker.chunk(document)
        assert_promises(document, chunks)
        # Where one character alone is more than `size` tokens, nothing smaller can be cut.
        assert all(chunk.token_count <= max(size, 2) for chunk in chunks)


@settings(max_examples=200, deadline=None)
@given(documents(), SIZES)
def test_sections_are_those_of_the_document(document, size):
    for chunk in RecursiveChunker(size=size).chunk(document) if document.headings else ():
        spans = [(heading.start_offset, heading.end_offset) for heading in document.headings]
        offset = next(
            (
                offset
                for offset in range(chunk.start_offset, chunk.end_offset)
                if not document.content[offset].isspace() and not any(start <= offset < end for start, end in spans)
            ),
            None,
        )
        if offset is None:
            assert chunk.section in {document.section_path(at) for at in range(chunk.start_offset, chunk.end_offset)}
        else:
            assert chunk.section == document.section_path(offset)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["One more.", "word", "A sentence of some length, here.", "x" * 70]), max_size=30),
       st.lists(st.sampled_from([" ", "\n\n", "\n"]), min_size=30, max_size=30), st.integers(10, 60))  # fmt: skip
@example(["One more.", "x" * 70, "One more."], [" "] * 30, 10)  # the last piece would begin with a space
def test_paragraphs_reach_their_least_size(words, gaps, min_size):
    content = "".join(word + gap for word, gap in zip(words, gaps, strict=False))
    chunks = ParagraphChunker(min_size=min_size, max_size=4 * min_size).chunk(Document(content=content))
    if len(content.strip()) >= min_size:
        assert all(len(chunk.text) >= min_size for chunk in chunks)
    else:
        assert len(chunks) <= 1


@settings(max_examples=200, deadline=None)
@given(TEXTS, SIZES)
def test_a_mark_stays_with_its_letter_where_the_size_allows(text, size):
    content = re.sub(r"[^\w\s]", "", text).replace("x", "e\u0301")
    for chunk in FixedSizeChunker(size=size + 1).chunk(Document(content=content)):
        if chunk.text.startswith("\u0301") and chunk.start_offset:
            before = content[: chunk.start_offset]
            assert not before.endswith("e") or before.endswith("\u0301")


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(["en", "de", "ar", "zh", "hi", "ru", "am", "xx", "", "en-GB"]))
@example('.?]\u2028😀"\x0b.(D]?。a\x0c\t\x1c\x1c\u0301 D\x85.\t.\x0c\u0301', "en")
@example("Good evening. " * 2000, "en")
def test_sentences_hold_every_character_once_and_in_order(text, language):
    spans = sentence_spans(text, language)
    position = 0
    for start, end in spans:
        assert not text[position:start].strip()
        assert start < end
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.data())
def test_tokens_cover_the_text_and_may_be_cut_between(text, data):
    spans = tokenize(text)
    assert len(spans) == count_tokens(text)
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(end - start > 0 for start, end in spans)
    assert all(end - start <= LONGEST_TOKEN for start, end in spans if text[start].isalpha() and text[start] < "\u0250")
    if spans:
        cut = data.draw(st.sampled_from([start for start, _ in spans]))
        assert count_tokens(text[:cut]) + count_tokens(text[cut:]) == len(spans)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_whitespace_alone_gives_no_chunks(length):
    for chunker in (RecursiveChunker(), MarkdownChunker(), ParagraphChunker(), SemanticChunker(), HierarchicalChunker(),
                    FixedSizeChunker(), SlidingWindowChunker()):  # fmt: skip
        assert chunker.chunk(Document(content=" \n\u2003\r\n" * length)) == []
