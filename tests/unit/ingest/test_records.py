"""Lines of an import: what is read, and what is refused with its line and a reason."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.errors import NotFoundError
from recollect.ingest.records import BadLine, ImportedDocument, read_records, to_line

CONTENT = "Annual leave is 25 days. Unused days expire in March."


def lines(path: Path, *records: Any) -> list[ImportedDocument | BadLine]:
    file = path / "records.jsonl"
    written = (record if isinstance(record, bytes) else json.dumps(record).encode() for record in records)
    file.write_bytes(b"\n".join(written))
    return list(read_records(file))


def full(*chunks: dict[str, Any]) -> dict[str, Any]:
    return {"content": CONTENT, "source": "leave.md", "chunks": list(chunks)}


def test_the_full_form_keeps_chunks_parents_and_directions_of_vectors(tmp_path: Path):
    chunks = (
        {"start_offset": 0, "end_offset": 24, "embedding": [3.0, 4.0], "parent": [0, 53], "section": ["Leave"]},
        {"start_offset": 25, "end_offset": 53, "embedding": [0.0, 0.5], "page": 2},
    )
    (read,) = lines(tmp_path, {**full(*chunks), "event_time": "2026-01-01T00:00:00"})
    assert isinstance(read, ImportedDocument)
    assert read.chunks is not None
    assert read.embeddings is not None
    assert read.document.event_time == datetime(2026, 1, 1, tzinfo=UTC)
    assert [chunk.text for chunk in read.chunks] == [CONTENT[:24], CONTENT[25:]]
    assert (read.chunks[0].parent, read.chunks[0].section, read.chunks[1].page) == ((0, 53), ("Leave",), 2)
    assert np.allclose(read.embeddings, [[0.6, 0.8], [0.0, 1.0]])


def test_vectors_in_half_precision_are_read_as_numbers_are(tmp_path: Path):
    vectors = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float16)
    packed = [base64.b64encode(vector.astype("<f2")).decode() for vector in vectors]
    places = [{"start_offset": start, "end_offset": start + 9} for start in (0, 9, 18)]
    kinds = [
        [{**place, "vector": one} for place, one in zip(places, packed, strict=True)],
        [{**place, "embedding": one.tolist()} for place, one in zip(places, vectors, strict=True)],
    ]
    mixed = [kinds[0][0], *kinds[1][1:]]
    flat = {"text": CONTENT, "vector": packed[0]}
    half, number, both, short = lines(tmp_path, full(*kinds[0]), full(*kinds[1]), full(*mixed), flat)
    for read in (half, both, number):
        assert isinstance(read, ImportedDocument)
        assert isinstance(number, ImportedDocument)
        assert np.array_equal(read.embeddings, number.embeddings)
    assert isinstance(short, ImportedDocument)
    assert np.array_equal(short.embeddings, number.embeddings[:1])


def test_the_flat_form_is_a_document_of_one_chunk(tmp_path: Path):
    (read,) = lines(tmp_path, {"id": 7, "text": CONTENT, "embedding": [1, 0], "metadata": {"kind": "policy"}})
    assert isinstance(read, ImportedDocument)
    assert (read.document.id, read.document.source, read.document.metadata) == ("7", None, {"kind": "policy"})
    assert read.chunks is not None
    assert [chunk.text for chunk in read.chunks] == [CONTENT]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"content": "  "}, "neither 'content' nor 'text'"),
        (b"{", "Invalid JSON"),
        (b'{"content": "\xff"}', "Invalid JSON"),
        (b"[]", "object"),
        (full({"start_offset": 0, "end_offset": 54}), "outside its 53 characters"),
        (full({"start_offset": 9, "end_offset": 9}), "outside its 53 characters"),
        (full({"start_offset": -1, "end_offset": 9}), "start_offset"),
        (full({"start_offset": 9, "end_offset": 20}, {"start_offset": 0, "end_offset": 9}), "not in order"),
        (full({"start_offset": 5, "end_offset": 20, "parent": [6, 53]}), "a parent contains its chunk"),
        (full({"start_offset": 5, "end_offset": 20, "parent": [0, 19]}), "a parent contains its chunk"),
        (full({"start_offset": 5, "end_offset": 20, "parent": [0, 54]}), "a parent contains its chunk"),
        (full({"start_offset": 5, "end_offset": 20, "parent": [-1, 30]}), "a parent contains its chunk"),
        (full({"start_offset": 0, "end_offset": 9, "embedding": [0.0, 0.0]}), "zero or not finite"),
        (full({"start_offset": 0, "end_offset": 9, "vector": "AAAAAA=="}), "zero or not finite"),
        (full({"start_offset": 0, "end_offset": 9, "vector": "AADA"}), "not base64 of half-precision numbers"),
        (full({"start_offset": 0, "end_offset": 9, "vector": "AAA~"}), "not base64 of half-precision numbers"),
        (
            full(
                {"start_offset": 0, "end_offset": 9, "embedding": [1.0]},
                {"start_offset": 9, "end_offset": 20, "embedding": [1.0, 0.0]},
            ),
            "different lengths",
        ),
    ],
)
def test_a_line_that_cannot_be_stored_is_named_and_the_next_is_read(tmp_path: Path, record: Any, reason: str):
    bad, good = lines(tmp_path, record, {"content": CONTENT})
    assert isinstance(bad, BadLine)
    assert bad.line == 1
    assert reason in bad.reason
    assert isinstance(good, ImportedDocument)
    assert good.line == 2


def test_chunks_of_which_only_some_have_vectors_are_embedded_anew(tmp_path: Path):
    chunks = ({"start_offset": 0, "end_offset": 9, "embedding": [1.0]}, {"start_offset": 9, "end_offset": 20})
    (read,) = lines(tmp_path, full(*chunks))
    assert isinstance(read, ImportedDocument)
    assert read.embeddings is None


def test_a_written_line_is_read_again_and_a_missing_file_is_named(tmp_path: Path):
    file = tmp_path / "out.jsonl"
    file.write_text(to_line({"content": "עברית\nالعربية"}) + "\n\n", encoding="utf-8")
    (read,) = read_records(file)
    assert isinstance(read, ImportedDocument)
    assert read.document.content == "עברית\nالعربية"
    with pytest.raises(NotFoundError, match="absent"):
        list(read_records(tmp_path / "absent.jsonl"))
