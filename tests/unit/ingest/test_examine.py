"""What a version must have said can be told from what is left of it, or else nothing is said."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recollect.chunking.registry import make_chunker
from recollect.ingest.examine import (
    faults,
    key_of,
    proven_chunks,
    proven_content,
    recovered_length,
    wrong_rows,
)
from recollect.model import Chunk, Document
from recollect.retrieval.indexing import TermIndexer
from recollect.store.verification import StoredChunk, StoredTerms, StoredVersion

TEXT = (
    "# Leave\n\nEveryone has thirty days.\n\n## Carrying over\n\nFive days may be taken along.\n\n"
    "Who leaves is paid the rest, ünd das gilt für alle. 🏖️ مرحبا\n"
)


def stored(content: str = TEXT, *, size: int = 40) -> StoredVersion:
    document = Document(content=content, source="leave.md", title="Leave")
    chunks = [
        StoredChunk(number, replace(chunk, metadata={}), key_of("Leave", chunk))
        for number, chunk in enumerate(make_chunker("recursive", size=size, overlap=0).chunk(document), start=1)
    ]
    return StoredVersion(
        document_id=1,
        version_id=1,
        uri="leave.md",
        title="Leave",
        chunk_count=len(chunks),
        content_hash=document.content_hash,
        current=True,
        content=content,
        chunks=chunks,
    )


def changed(version: StoredVersion, at: int, **fields) -> StoredVersion:
    chunks = list(version.chunks)
    chunks[at] = replace(chunks[at], chunk=replace(chunks[at].chunk, **fields))
    return replace(version, chunks=chunks)


def chunks_of(version: StoredVersion) -> list[Chunk]:
    return [one.chunk for one in version.chunks]


@given(st.integers(0, len(TEXT) - 1), st.characters(exclude_categories=("Cs",)).filter(lambda c: c != "\0"))
def test_one_changed_character_inside_a_chunk_is_put_right(place: int, character: str):
    version = stored()
    content = TEXT[:place] + character + TEXT[place + 1 :]
    damaged = replace(version, content=content)
    assert ("content_hashes" in faults(damaged)) == (content != TEXT)
    inside = any(one.chunk.start_offset <= place < one.chunk.end_offset for one in version.chunks)
    assert proven_content(damaged) == (TEXT if inside or content == TEXT else proven_content(damaged))
    # Whatever is taken for the text is right: it has the hash, or every chunk agrees with it.
    if (found := proven_content(damaged)) is not None and found != TEXT:
        assert all(found[one.chunk.start_offset : one.chunk.end_offset] == one.chunk.text for one in version.chunks)


@given(st.data())
def test_changed_chunks_are_put_right_or_not_at_all(data: st.DataObject):
    version = stored()
    at = data.draw(st.integers(0, len(version.chunks) - 1))
    fields = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "text": st.text(max_size=20),
                "start_offset": st.integers(0, 300),
                "end_offset": st.integers(0, 300),
                "position": st.integers(0, 50),
            },
        )
    )
    found = proven_chunks(changed(version, at, **fields), TEXT)
    for chunk in found or ():
        assert TEXT[chunk.start_offset : chunk.end_offset] == chunk.text != ""
    if found is not None and [chunk.text for chunk in found] == [one.chunk.text for one in version.chunks]:
        assert found == chunks_of(version)
    if set(fields) <= {"text"}:
        assert found is not None
    if fields.get("position", at) != at:
        assert found is None


def test_a_lost_text_comes_back_only_if_its_hash_says_so():
    whole = stored("One line here.\nAnother line there.\nThe last of them.", size=20)
    assert proven_content(replace(whole, content=None, content_hash=b"other")) is None
    assert proven_content(replace(whole, content=None, chunks=whole.chunks[:-1])) is None
    assert proven_content(changed(replace(whole, content_hash=b"other"), 0, text="x")) is None


def test_a_parent_outside_its_text_is_a_fault_that_only_cutting_anew_mends():
    damaged = changed(stored(), 0, parent=(5, 4000))
    assert faults(damaged) == {"chunk_texts": 1}
    assert proven_chunks(damaged, TEXT) is None


def terms(texts: list[str], *, reference_length: float) -> tuple[list[StoredTerms], TermIndexer]:
    indexer = TermIndexer("en", salt=7)
    rows = indexer.weigh(indexer.count(texts), reference_length=reference_length)
    return [
        StoredTerms(n, 1, "", Chunk(text=text, position=0, start_offset=0, end_offset=len(text)), row, True)
        for n, (text, row) in enumerate(zip(texts, rows, strict=True))
    ], indexer


@given(
    st.lists(st.text("abc defg hij", min_size=3, max_size=200), min_size=1, max_size=8),
    st.floats(1, 2000),
)
def test_the_reference_length_is_recovered_from_the_weights(texts: list[str], length: float):
    rows, indexer = terms(texts, reference_length=length)
    found = recovered_length(rows, indexer)
    if found is None:
        assert all(not len(one.row.lexemes) for one in rows)
        return
    assert list(wrong_rows(rows, indexer, reference_length=found)) == []
    assert list(wrong_rows(rows, indexer, reference_length=length)) == []
