"""Documents of one source that have ids stand beside each other, and each is stored anew under its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect import Document, RAGPipeline
from recollect.errors import UsageError


def test_turns_of_a_chat_under_one_source_stand_beside_each_other(pipeline: RAGPipeline, tmp_path: Path):
    turns = [Document(content=f"Turn {n} of the talk.", source="chats/7", id=f"turn-{n}") for n in (1, 2)]
    first, second = pipeline.ingest(turns)
    assert first.document_id != second.document_id
    names = ["chats/7#turn-1", "chats/7#turn-2"]
    assert sorted(one.source for one in pipeline.retrieve("talk")) == names
    assert [one.status for one in pipeline.ingest(turns)] == ["unchanged"] * 2
    changed = pipeline.ingest(Document(content="Another turn.", source="chats/7", id="turn-1"))
    assert (changed.document_id, changed.version, changed.status) == (first.document_id, 2, "updated")
    assert pipeline.documents.get("chats/7#turn-2").title == "7"
    only = pipeline.ingest(Document(content="Words.", id="note"))
    assert pipeline.ingest(Document(content="Other words.", id="note")).document_id == only.document_id
    # An export carries the identity along.
    file = tmp_path / "all.jsonl"
    file.write_text("".join(pipeline.collections.export_lines()), encoding="utf-8")
    copy = pipeline.view(collections="copy")
    copy.collections.import_file(file)
    assert copy.ingest(turns[1]).status != "added"
    assert len(copy.documents.list()) == 3


def test_lines_of_an_import_have_ids(pipeline: RAGPipeline, tmp_path: Path):
    lines = [{"id": n, "source": "chats/7", "text": f"Turn {n} of the talk."} for n in (1, 2)]
    file = tmp_path / "turns.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert pipeline.collections.import_file(file).added == 2
    assert [one.source for one in pipeline.documents.list()] == ["chats/7#1", "chats/7#2"]


def test_an_id_is_text(pipeline: RAGPipeline):
    with pytest.raises(UsageError, match="id must be text, not 7"):
        pipeline.ingest(Document(content="Words.", id=7))  # type: ignore[arg-type]
