"""What is made of a document before it is stored."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recollect.ingest.prepare import NEIGHBOUR_WEIGHT, completed, neighbour_weight, searchable_text, with_neighbours
from recollect.model import Chunk, Document, Heading

ANY_TEXT = st.text(st.characters(categories=None), max_size=40)


@given(content=ANY_TEXT, source=st.none() | ANY_TEXT, title=st.none() | ANY_TEXT)
def test_a_completed_document_can_be_stored_and_keeps_its_offsets(content: str, source: str | None, title: str | None):
    done = completed(Document(content=content, source=source, title=title, metadata={content: [title]}))
    assert len(done.content) == len(content)
    assert done.source and done.title
    for text in (done.content, done.source, done.title, *done.metadata):
        text.encode("utf-8")
        assert "\0" not in text
    assert completed(done) == done


def test_titles_come_from_what_there_is():
    heading = Heading(1, "Heading", 0, 7)
    assert completed(Document(content="x", source="a/leave_policy.md", headings=(heading,))).title == "Heading"
    assert completed(Document(content="x", source="a/leave_policy.md")).title == "leave_policy"
    assert completed(Document(content="First line\nsecond")).title == "First line"
    assert completed(Document(content=" ")).title.startswith("sha256:")


def test_equal_texts_without_a_name_are_one_document():
    assert completed(Document(content="a")).source == completed(Document(content="a", title="t")).source
    assert completed(Document(content="a")).source != completed(Document(content="b")).source


def test_title_and_headings_are_indexed_once():
    document = Document(content="## Leave\nthirty days", title="Handbook")
    whole = Chunk(text=document.content, position=0, start_offset=0, end_offset=20, section=("Leave",))
    assert searchable_text(document, whole) == "Handbook\n## Leave\nthirty days"
    rest = Chunk(text="thirty days", position=1, start_offset=9, end_offset=20, section=("Handbook", "Leave"))
    assert searchable_text(document, rest) == "Handbook\nLeave\nthirty days"


@given(st.integers(1, 6), st.floats(0, 1))
def test_neighbours_are_mixed_in_and_length_stays_one(count: int, weight: float):
    vectors = np.eye(6, dtype=np.float32)[:count]
    mixed = with_neighbours(vectors, weight=weight)
    assert np.allclose(np.linalg.norm(mixed, axis=1), 1)
    # In single precision a weight this close to 1 is 1: then a chunk is no nearer to itself than to its neighbours.
    assert (mixed.argmax(axis=1) == np.arange(count)).all() or np.float32(weight) == 1
    if count == 1 or weight == 0:
        assert (mixed == vectors).all()
    else:
        assert np.isclose(mixed[0, 1] / mixed[0, 0], weight)


def test_the_model_says_how_much_of_its_neighbours_a_chunk_takes():
    assert neighbour_weight("intfloat/multilingual-e5-small:int8") == 0.0
    assert neighbour_weight("sentence-transformers/all-MiniLM-L6-v2:int8") == NEIGHBOUR_WEIGHT
    assert neighbour_weight("anything") == NEIGHBOUR_WEIGHT
