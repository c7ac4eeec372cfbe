"""The whole of recollect behind one object."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.llm.scripted import ScriptedChatModel
from recollect.model.answer import REFUSAL
from recollect.pipeline.assembly import ActivityLog


class Counting(HashingEmbedder):
    """Counts the texts of documents that it embeds."""

    texts = 0

    def embed_documents(self, texts):
        self.texts += len(texts)
        return super().embed_documents(texts)


LEAVE = Document(content="Annual leave is thirty days a year.", source="hr/leave.md", department="hr", tags=("policy",))


def test_a_text_that_names_a_file_is_no_document(pipeline: RAGPipeline, tmp_path: Path):
    (tmp_path / "leave.md").write_text("# Leave", encoding="utf-8")
    for meant in (str(tmp_path), str(tmp_path / "leave.md")):
        for given in (meant, ["A text.", meant]):
            with pytest.raises(UsageError, match=r"Say ingest_files\("):
                pipeline.ingest(given)
    assert pipeline.ingest_files(str(tmp_path)).added == pipeline.ingest_files([tmp_path / "leave.md"]).unchanged == 1
    assert pipeline.ingest("hr/leave.md says thirty days.").status == "added"
    assert pipeline.ingest(str(tmp_path / "nowhere.md")).status == "added"


def test_a_model_of_ones_own_that_lacks_something_is_refused_at_once():
    class Half:
        model_name = "half"

        def embed_query(self, text):
            raise AssertionError(text)

    with pytest.raises(UsageError, match="Half has no dimension, embed_documents"):
        RAGPipeline(embedder=Half())
    with pytest.raises(UsageError, match="chat_model is no ChatModel: Half has no stream"):
        RAGPipeline(chat_model=Half())


def test_what_is_ingested_is_found_with_its_place(pipeline: RAGPipeline):
    written = pipeline.ingest(LEAVE)
    pipeline.ingest("Invoices are paid within two weeks.")
    best = pipeline.retrieve("How long is annual leave?")[0]
    assert (best.document_id, best.source, best.department, best.tags) == (
        written.document_id, "hr/leave.md", "hr", ("policy",),
    )  # fmt: skip
    assert best.content == LEAVE.content[best.start_offset : best.end_offset]
    assert pipeline.documents.get("hr/leave.md").content == LEAVE.content


def test_many_documents_from_an_iterator_in_order(pipeline: RAGPipeline):
    results = pipeline.ingest(f"text number {n % 150}" for n in range(200))
    assert [result.status for result in results] == ["added"] * 150 + ["unchanged"] * 50
    again = [result.document_id for result in pipeline.ingest(f"text number {n}" for n in range(150))]
    assert again == [result.document_id for result in results[:150]]


def test_it_can_be_closed_while_a_log_is_about_to_ask_for_its_store(pipeline: RAGPipeline):
    assembly, about_to_ask, closing = pipeline._at.assembly, threading.Event(), threading.Event()

    def store():
        about_to_ask.set()
        closing.wait(5)
        return assembly.store

    log = vars(assembly)["activity"] = ActivityLog(store, flush_seconds=0.01)
    log.count(1, "search", "total", 1.0)
    assert about_to_ask.wait(10)
    closer = threading.Thread(target=pipeline.close, daemon=True)
    closer.start()
    closer.join(0.5)
    closing.set()
    closer.join(60)
    assert not closer.is_alive()


def test_it_can_be_closed_and_used_again(pipeline: RAGPipeline):
    pipeline.ingest(LEAVE)
    pipeline.close()
    pipeline.close()
    assert pipeline.retrieve("annual leave")[0].source == "hr/leave.md"
    with pipeline as same:
        assert same is pipeline
    assert pipeline.maintenance.status().total_documents == 1


def test_vectors_of_another_embedding_model_never_meet(pipeline: RAGPipeline):
    class Nameless(HashingEmbedder):
        model_name = "nobody knows"

    pipeline.ingest(LEAVE)
    with RAGPipeline(pipeline.config, embedder=Nameless()) as nameless:
        nameless.view(collections="nameless").ingest(LEAVE)
    with RAGPipeline(pipeline.config, embedder=HashingEmbedder(32)) as other:
        assert other.retrieve("annual leave")[0].source == "hr/leave.md"
        known = other.view(collections="nameless")
        with pytest.raises(UsageError, match="nobody knows"):
            known.ingest("more")
        with pytest.raises(UsageError, match="mode lexical"):
            known.retrieve("annual leave")
        assert known.retrieve("annual leave", RetrievalOptions(mode="lexical"))[0].source == "hr/leave.md"
        # Another collection may have another dimension, in the same tables.
        other.view(collections="other").ingest(LEAVE)
        assert other.view(collections="other").retrieve("annual leave")[0].source == "hr/leave.md"


def test_the_cache_serves_every_collection(pipeline: RAGPipeline):
    embedder = Counting()
    with RAGPipeline(pipeline.config, embedder=embedder) as rag:
        rag.ingest(LEAVE)
        assert embedder.texts == 1
        rag.view(collections="other").ingest(LEAVE)
        rag.collections.delete("default")
        rag.ingest(LEAVE)
        assert embedder.texts == 1
        # Erased is erased: it must be computed anew.
        rag.documents.erase(["hr/leave.md"]).counts["documents"] if len(rag.collections.list()) == 1 else None
        for place in rag.collections.list():
            for record in rag.view(collections=place.name).documents.list():
                rag.view(collections=place.name).documents.erase([record.document_id])
        rag.ingest(LEAVE)
        assert embedder.texts == 2


def test_all_or_none_are_deleted(pipeline: RAGPipeline):
    pipeline.ingest(LEAVE)
    with pytest.raises(NotFoundError):
        pipeline.documents.delete(["hr/leave.md", "missing"])
    with pytest.raises(NotFoundError):
        pipeline.documents.delete(["hr/leave.md", 4711])
    assert pipeline.maintenance.status().total_documents == 1
    assert pipeline.documents.delete(["hr/leave.md"]) == 1
    assert pipeline.retrieve("annual leave") == []


def test_status_says_what_there_is(pipeline: RAGPipeline):
    empty = pipeline.maintenance.status()
    assert (empty.total_documents, empty.collections, empty.embedding_model) == (0, (), "hashing:64")
    pipeline.ingest(LEAVE)
    status = pipeline.maintenance.status()
    assert (status.total_documents, status.departments, status.embedding_dimension) == (1, {"hr": 1}, 64)
    assert [place.name for place in status.collections] == ["default"]


def test_collections_are_made_once_and_checked(pipeline: RAGPipeline):
    pipeline.collections.create("notes", language="de", chunking={"strategy": "fixed_size", "size": 100, "overlap": 0})
    with pytest.raises(ConflictError):
        pipeline.collections.create("notes")
    with pytest.raises(UsageError):
        pipeline.collections.create("bad", chunking={"strategy": "fixed_size", "size": 10, "overlap": 10})
    assert [place.name for place in pipeline.collections.list()] == ["notes"]
    with pytest.raises(NotFoundError):
        pipeline.view(collections="missing").retrieve("x")


def test_a_language_model_answers_from_the_passages(pipeline: RAGPipeline):
    pipeline.ingest(LEAVE)
    model = ScriptedChatModel("Annual leave is thirty days a year [1].")
    with RAGPipeline(pipeline.config, embedder=HashingEmbedder(), chat_model=model) as rag:
        answer = rag.ask("How long is annual leave?")
    assert not answer.refused
    citation = answer.citations[0]
    assert citation.quote == LEAVE.content[citation.start_offset : citation.end_offset]
    assert citation.source == "hr/leave.md"
    assert LEAVE.content in model.calls[0][-1].content + model.calls[0][0].content


def test_without_a_language_model_it_quotes_or_refuses(pipeline: RAGPipeline):
    assert pipeline.ask("How long is annual leave?").text == REFUSAL
    pipeline.ingest(LEAVE)
    answer = pipeline.ask("Who repairs the espresso machine on Neptune?")
    assert (answer.text, answer.refused, answer.citations) == (REFUSAL, True, ())


def test_bad_configuration_of_a_part_is_said_when_it_is_needed(dsn: str):
    config = RAGConfig.load(storage={"dsn": dsn}, embedding={"provider": "openai", "model": "nonsense", "api_key": "k"})
    with RAGPipeline(config) as rag, pytest.raises(UsageError, match="dimensions the vectors of 'nonsense'"):
        rag.ingest("text")


def test_a_status_that_there_is_not_is_refused(pipeline: RAGPipeline):
    for status in ["stored", "", ["embedded"]]:
        with pytest.raises(UsageError, match="status must be one of pending, embedded, error"):
            pipeline.documents.list(status=status)
