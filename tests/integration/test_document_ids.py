"""A document that was given an id is identified by it: several may share a source, which each can change."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from recollect import Document, Principal, RAGPipeline, RetrievalOptions
from recollect.errors import NotFoundError, UsageError

TURNS = [Document(content=f"Turn {n} of the talk is about subject {n}.", source="chat", id=f"turn-{n}") for n in (1, 2)]
ANN, EVE = Principal(user_id="ann"), Principal(user_id="eve")
BOTH = [("chat", "turn-1"), ("chat", "turn-2")]


def named(passages) -> list[tuple[str, str | None]]:
    return sorted((one.source, one.id) for one in passages)


@pytest.fixture
def chat(pipeline: RAGPipeline) -> RAGPipeline:
    """Two turns of a chat under one source."""
    pipeline.ingest(TURNS)
    return pipeline


def test_documents_of_one_source_stand_beside_each_other(chat: RAGPipeline):
    assert named(chat.documents.list()) == named(chat.retrieve("talk")) == BOTH
    assert [one.status for one in chat.ingest(TURNS)] == ["unchanged"] * 2
    plain = chat.ingest(Document(content="A talk without an id.", source="chat"))
    assert plain.status == "added"
    assert len(chat.documents.list(source="chat")) == 3
    for options in (RetrievalOptions(source=("chat",)), RetrievalOptions(filters={"source": "chat"})):
        found = [(one.source, one.id or "") for one in chat.retrieve("talk", options)]
        assert sorted(found) == [("chat", ""), *BOTH]
    (cited,) = chat.ask("What is turn 2 of the talk about?").citations
    assert (cited.source, cited.id) == ("chat", "turn-2")
    only = chat.ingest(Document(content="Words.", id="note"))
    assert chat.documents.get("note").source == "note"
    assert chat.ingest(Document(content="Other words.", id="note")).document_id == only.document_id
    # Taken for none, the second of two such turns would replace the first.
    with pytest.raises(UsageError, match="id is empty"):
        chat.ingest(Document(content="Words.", source="chat", id=""))


def test_an_id_is_the_document_whatever_its_source(chat: RAGPipeline):
    first = chat.documents.get("turn-1")
    moved = chat.ingest(replace(TURNS[0], source="other"))
    assert (moved.document_id, moved.version, moved.status) == (first.document_id, 2, "updated")
    assert named(chat.documents.list()) == named(chat.retrieve("talk")) == [("chat", "turn-2"), ("other", "turn-1")]
    assert [one.id for one in chat.retrieve("talk", RetrievalOptions(source=("other",)))] == ["turn-1"]
    assert chat.ingest(replace(TURNS[0], source="other")).status == "unchanged"
    assert chat.documents.history("turn-1").id == "turn-1"
    # What makes a new version by itself keeps source and id.
    chat.documents.update("turn-1", title="The first turn")
    chat.documents.restore("turn-1", 2)
    chat.documents.delete(["turn-1"])
    assert chat.ingest(replace(TURNS[0], source="chat")).document_id == first.document_id
    assert named(chat.retrieve("talk")) == BOTH


def test_an_id_that_is_another_documents_source_is_another_document(chat: RAGPipeline):
    same = chat.ingest(Document(content="Named as the chat is.", source="elsewhere", id="chat"))
    plain = chat.ingest(Document(content="Named as a turn is.", source="turn-1"))
    assert same.status == plain.status == "added"
    assert len(chat.documents.list()) == 4
    for name in ("chat", "turn-1"):
        with pytest.raises(UsageError, match=rf"Several documents are named '{name}'"):
            chat.documents.delete([name])
    assert chat.documents.get("chat#turn-1").id == "turn-1"
    assert chat.documents.get("elsewhere#chat").document_id == same.document_id


def test_a_shared_source_names_all_where_several_are_taken(chat: RAGPipeline):
    chat.ingest(Document(content="Another talk.", source="aside", id="3"))
    with pytest.raises(UsageError, match=r"2 documents have the source 'chat'.*'turn-1', 'turn-2'"):
        chat.documents.get("chat")
    with pytest.raises(UsageError, match="2 documents have the source"):
        chat.documents.history("chat")
    assert len(chat.documents.resolve(["chat"])) == 2
    assert chat.grants.add("user:ann", documents="chat", only=True) == 2
    assert chat.documents.delete(["turn-1"]) == 1
    assert chat.documents.get("chat").id == "turn-2"
    chat.ingest(TURNS[0])
    assert chat.documents.erase(["chat"]).counts["documents"] == 2
    assert named(chat.documents.list()) == [("aside", "3")]


def test_ids_in_an_export_and_in_lines_of_an_import(chat: RAGPipeline, tmp_path: Path):
    file, lines = tmp_path / "all.jsonl", tmp_path / "turns.jsonl"
    exported = list(chat.collections.export_lines())
    assert [(json.loads(one)["source"], json.loads(one)["id"]) for one in exported] == BOTH
    file.write_text("".join(exported), encoding="utf-8")
    copy = chat.view(collections="copy")
    assert copy.collections.import_file(file).added == 2
    assert copy.collections.import_file(file).unchanged == 2
    assert [one.status for one in copy.ingest(TURNS)] == ["updated"] * 2
    assert named(copy.documents.list()) == BOTH
    flat = [{"id": n, "text": f"Line {n} of a log."} for n in (1, 2)]
    lines.write_text("\n".join(map(json.dumps, flat)), encoding="utf-8")
    log = chat.view(collections="log")
    assert log.collections.import_file(lines).added == 2
    assert log.ingest(Document(content="Line 2, anew.", source="log", id="2")).status == "updated"
    assert named(log.documents.list()) == [("1", "1"), ("log", "2")]


def test_attachments_of_messages_with_ids(pipeline: RAGPipeline, tmp_path: Path):
    offers = [Document(content=f"Offer {n} of the attached file.", source="offer.txt") for n in (1, 2)]
    messages = [replace(turn, attachments=(offer,)) for turn, offer in zip(TURNS, offers, strict=True)]
    pipeline.ingest(messages)
    stored = [*BOTH, ("chat/offer.txt", "turn-1/offer.txt"), ("chat/offer.txt", "turn-2/offer.txt")]
    assert named(pipeline.documents.list()) == stored
    moved = replace(messages[0], source="other")
    pipeline.ingest(moved)
    assert ("other/offer.txt", "turn-1/offer.txt") in named(pipeline.documents.list())
    pipeline.ingest(messages[0])
    file = tmp_path / "all.jsonl"
    file.write_text("".join(pipeline.collections.export_lines()), encoding="utf-8")
    copy = pipeline.view(collections="copy")
    copy.collections.import_file(file)
    copy.documents.delete(["turn-1"])
    assert named(copy.documents.list()) == [stored[1], stored[3]]


def test_nobody_takes_over_or_sees_a_document_by_guessing_its_id(pipeline: RAGPipeline):
    secret = "The bonus of the chair is forty thousand."
    pipeline.collections.ensure()
    pipeline.grants.set_collection(writers=["user:ann", "user:eve"])
    ann, eve = pipeline.view(principal=ANN), pipeline.view(principal=EVE)
    hers = ann.ingest(Document(content=secret, source="pay", id="pay-1", permissions=("user:ann",)))
    for guess, source in (("Something else.", "pay"), (secret, "never"), (secret, "pay")):
        document = Document(content=guess, source=source, id="pay-1", permissions=("*",))
        assert [eve.ingest(document).document_id == hers.document_id for _ in range(2)] == [False] * 2
    pipeline.ingest(Document(content="The collection's own.", source="pay", id="pay-1"))
    assert ann.documents.get(hers.document_id).content == secret
    assert (ann.documents.get(hers.document_id).source, ann.documents.get(hers.document_id).version) == ("pay", 1)
    own = eve.documents.list()
    assert hers.document_id not in {one.document_id for one in own}
    for view, name in ((eve, "pay-2"), (eve, str(hers.document_id))):
        with pytest.raises(NotFoundError):
            view.documents.delete([name])
    # Of several that have the id, one's own is meant.
    assert eve.documents.delete(["pay-1"]) == 1
    assert ann.documents.get(hers.document_id).content == secret
    pipeline.tenants.create("other")
    elsewhere = pipeline.view(tenant="other")
    assert elsewhere.ingest(Document(content="Ours.", source="pay", id="pay-1")).status == "added"
    with pytest.raises(NotFoundError):
        elsewhere.documents.get(hers.document_id)


def test_writers_at_once_store_one_document_of_an_id(pipeline: RAGPipeline):
    pipeline.collections.ensure()

    def store(number: int) -> None:
        ids = ("a", "b", "c")[:: 1 if number % 2 else -1]
        sources = sorted((f"{number}-{one}" for one in "xyz"), reverse=number % 3 == 0)
        pipeline.ingest(
            [
                Document(content=f"Text {number} of {one}.", source=source, id=one)
                for one, source in zip(ids, sources, strict=True)
            ]
        )

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(store, range(12)))
    assert sorted((one.id, one.version) for one in pipeline.documents.list()) == [("a", 12), ("b", 12), ("c", 12)]


def test_an_id_is_text(pipeline: RAGPipeline):
    with pytest.raises(UsageError, match="id must be text, not 7"):
        pipeline.ingest(Document(content="Words.", id=7))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"id .* is longer than"):
        pipeline.ingest(Document(content="Words.", id="7" * 10_000))
