"""Text with its chunks drawn on it: whatever the chunks, it stays the text, and each chunk is where it was cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.model.contents import DocumentChunk
from recollect.ui.drawn_text import pieces


def chunk(position: int, start: int, end: int) -> DocumentChunk:
    return DocumentChunk(
        chunk_id=position,
        position=position,
        start_offset=start,
        end_offset=end,
        text="",
        section=None,
        page=None,
        token_count=1,
        context="",
    )


@given(
    text=st.text(min_size=1, max_size=60),
    start=st.integers(0, 50),
    spans=st.lists(st.tuples(st.integers(0, 120), st.integers(1, 40)), max_size=12),
    quoted=st.none() | st.tuples(st.integers(0, 120), st.integers(1, 40)),
)
def test_pieces_are_the_text_and_each_chunk_is_drawn_where_it_stands(text, start, spans, quoted):
    chunks = [chunk(number, first, first + length) for number, (first, length) in enumerate(sorted(spans))]
    marked = None if quoted is None else (quoted[0], sum(quoted))
    found = pieces(text, start, chunks, quoted=marked)
    assert "".join(piece.text for piece in found) == text
    at = start
    for piece in found:
        for offset in range(at, at + len(piece.text)):
            assert piece.chunks == tuple(one.position for one in chunks if one.start_offset <= offset < one.end_offset)
            assert piece.is_quoted == (marked is not None and marked[0] <= offset < marked[1])
        assert {one.position for one in piece.begins} == {one.position for one in chunks if one.start_offset == at}
        at += len(piece.text)
