"""``ttl="never"``: a document, a session or a file without an end, wherever a time to live can be given."""

from __future__ import annotations

import json

import pytest

from recollect import Document, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import UsageError
from recollect.model.document_session import SessionConfig


@pytest.fixture
def expiring(pipeline: RAGPipeline):
    """A pipeline whose documents expire unless they say otherwise."""
    config = pipeline.config.model_copy(
        update={"temporal": pipeline.config.temporal.model_copy(update={"default_ttl": "30d"})}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        yield rag


def expires_at(rag: RAGPipeline, source: str):
    return rag.documents.history(source).versions[-1].expires_at


def test_a_document_that_says_never_outlives_the_configured_time(expiring: RAGPipeline, tmp_path):
    expiring.ingest(Document(content="By default.", source="default"))
    expiring.ingest(Document(content="For good.", source="own", ttl="never"))
    expiring.ingest(Document(content="For good too.", source="stated", metadata={"ttl": " Never "}))
    file = tmp_path / "front.md"
    file.write_text("---\nttl: never\n---\n# Front\n\nMatter says it.\n", encoding="utf-8")
    expiring.ingest(file)
    assert expires_at(expiring, "default") is not None
    assert [expires_at(expiring, one) for one in ("own", "stated", "front.md")] == [None] * 3


def test_what_was_said_stays_when_a_document_is_described(expiring: RAGPipeline):
    expiring.ingest(Document(content="For good.", source="own", ttl="never"))
    expiring.documents.update("own", title="Another title")
    assert expires_at(expiring, "own") is None


def test_a_lifetime_is_taken_away_and_given_again(expiring: RAGPipeline):
    expiring.ingest(Document(content="By default.", source="a"))
    expiring.documents.set_ttl("a", "never")
    assert expires_at(expiring, "a") is None
    expiring.documents.set_ttl("a", "1d")
    assert expires_at(expiring, "a") is not None


def test_sessions_and_settings_take_the_word(pipeline: RAGPipeline):
    assert pipeline.sessions.create("desk", SessionConfig(ttl="never")).ttl is None
    assert RAGConfig.model_validate({"temporal": {"default_ttl": "Never"}}).temporal.default_ttl is None


def test_what_is_imported_takes_the_word(expiring: RAGPipeline, tmp_path):
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps({"content": "Imported.", "source": "line", "ttl": "never"}) + "\n", encoding="utf-8")
    expiring.collections.import_file(file)
    assert expires_at(expiring, "line") is None


def test_what_is_no_length_of_time_says_what_would_be(pipeline: RAGPipeline):
    for given in ["nevermore", "", "soon", -1]:
        with pytest.raises(UsageError, match="'never'"):
            pipeline.ingest(Document(content="x", source="a", ttl=given))
