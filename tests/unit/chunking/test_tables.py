"""Tables with pipes: cut between rows alone, and understood in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.chunking._cutting import Tables
from recollect.chunking.chunkers import RecursiveChunker
from recollect.chunking.registry import make_chunker
from recollect.ingest.prepare import searchable_text
from recollect.model import Document

HEADER = "| (in millions) | 2024 | 2023 |"
ROWS = [f"| Line number {n} of the statement | {n},500 | ({n},400) |" for n in range(40)]
TABLE = "\n".join([HEADER, "|---|---|---|", *ROWS])
TEXT = f"What the year brought is told below. It was a good one.\n\nStatement of income\n\n{TABLE}\n\nAnd so it ends."


def chunks_of(content, size=300):
    return RecursiveChunker(size=size).chunk(Document(content=content, title="Report"))


def test_a_table_is_cut_between_rows_alone():
    chunks = chunks_of(TEXT)
    lines = {line for chunk in chunks for line in chunk.text.split("\n")}
    assert set(ROWS) <= lines
    assert len(chunks) > 6
    assert all(TEXT[chunk.start_offset : chunk.end_offset] == chunk.text for chunk in chunks)


def test_the_header_stays_with_the_first_row():
    first = next(chunk for chunk in chunks_of(TEXT) if HEADER in chunk.text)
    assert ROWS[0] in first.text
    assert "table_header" not in first.metadata


def test_a_piece_without_the_header_says_what_its_columns_are():
    pieces = [chunk for chunk in chunks_of(TEXT) if "Line number" in chunk.text and HEADER not in chunk.text]
    assert pieces
    for piece in pieces:
        assert piece.metadata == {"table_header": HEADER, "table_caption": "Statement of income"}
        indexed = searchable_text(Document(content=TEXT, title="Report"), piece)
        assert indexed == f"Report\nStatement of income\n(in millions); 2024; 2023\n{piece.text}"


def test_what_stands_behind_a_table_is_not_of_it():
    last = chunks_of(TEXT + "\n\n" + "A word. " * 60)[-1]
    assert last.metadata == {}


def test_rows_that_fill_less_than_half_a_chunk_end_it_all_the_same():
    rows = [f"| {'long label ' * 14}{n} | {n} | {n} |" for n in range(6)]
    content = "\n".join([HEADER, "|---|---|---|", *rows])
    lines = [line for chunk in chunks_of(content, size=400) for line in chunk.text.split("\n")]
    assert lines == content.split("\n")


@pytest.mark.parametrize("strategy", ["recursive", "markdown", "fixed_size", "sliding_window", "paragraph"])
def test_each_strategy_names_the_columns(strategy):
    chunks = make_chunker(strategy).chunk(Document(content=TEXT * 3))
    inside = [chunk for chunk in chunks if chunk.text.startswith("| Line number")]
    assert all(chunk.metadata["table_header"] == HEADER for chunk in inside)


@given(st.lists(st.sampled_from(["| a | b |", "|---|---|", "| 1 | 2 |", "word", "", "|", "|-", "# Head"]), max_size=30))
def test_any_lines_keep_the_promises_of_chunks(lines):
    content = "\n".join(lines)
    chunks = chunks_of(content, size=20)
    assert all(content[chunk.start_offset : chunk.end_offset] == chunk.text for chunk in chunks)
    assert sum(len(chunk.text.split()) for chunk in chunks) == len(content.split())
    assert all(len(chunk.text) <= 20 for chunk in chunks)


def test_very_long_tables_and_lines_of_pipes():
    tables = Tables(HEADER + "\n|---|---|\n" + "| a | 1 | 2 |\n" * 200_000)
    assert len(tables.rows) == 199_999
    assert not Tables("|" * 1_000_000 + "\n|-x" * 300_000)
