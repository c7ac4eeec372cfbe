"""Acronyms that documents explain: found at ingest, used by queries, gone with their documents."""

from __future__ import annotations

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.model import Scope

GLOSSARY = Document(content="The Annual Percentage Rate (APR) is fixed for a year.", source="glossary.txt")
SHORT = Document(content="Ask the bank for its APR.", source="short.txt")
LONG = Document(content="What an annual percentage rate costs over time.", source="long.txt")
WORDS = RetrievalOptions(mode="lexical", explain=True)


def found(rag: RAGPipeline, query: str, options: RetrievalOptions = WORDS) -> set[str]:
    return {one.source for one in rag.search(query, options).results}


def notes(rag: RAGPipeline, query: str) -> tuple[str, ...]:
    return rag.search(query, WORDS).explain.enhancements


def stored(rag: RAGPipeline) -> list[tuple]:
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute("SELECT short, long, occurrences FROM version_acronyms ORDER BY 1, 2").fetchall()


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest([GLOSSARY, SHORT, LONG])
    return pipeline


def test_either_form_finds_the_other_and_explain_says_so(rag: RAGPipeline):
    assert found(rag, "apr") == {"glossary.txt", "short.txt", "long.txt"}
    assert found(rag, "annual percentage rates") == {"glossary.txt", "short.txt", "long.txt"}
    assert notes(rag, "the apr") == ("acronyms: applied (APR → annual percentage rate (×0.8))",)
    assert notes(rag, "bank") == ("acronyms: nothing to add (no rule meets the query)",)


def test_what_is_asked_for_stands_above_its_other_form(rag: RAGPipeline):
    assert rag.retrieve("apr", WORDS)[-1].source == "long.txt"


def test_without_enhancements_or_by_configuration_they_are_off(rag: RAGPipeline):
    assert found(rag, "apr", RetrievalOptions(mode="lexical", enhance=False)) == {"glossary.txt", "short.txt"}
    settings = {"enhance": {"acronyms": False}}
    config = rag.config.model_copy(
        update={"retrieval": RAGConfig.load(retrieval=settings).retrieval},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as plain:
        assert found(plain, "apr") == {"glossary.txt", "short.txt"}
        assert notes(plain, "apr") == ()


def test_they_go_with_the_document_that_explains_them(rag: RAGPipeline):
    rag.documents.delete(["glossary.txt"])
    assert found(rag, "apr") == {"short.txt"}
    assert stored(rag) == [("APR", "annual percentage rate", 1)]  # history keeps them
    rag.ingest(GLOSSARY)
    assert found(rag, "apr") == {"glossary.txt", "short.txt", "long.txt"}
    rag.documents.erase(["glossary.txt"]).counts["documents"]
    assert stored(rag) == []
    assert found(rag, "apr") == {"short.txt"}


def test_a_new_version_brings_its_own(rag: RAGPipeline):
    rag.ingest(
        Document(content="Annual Profit Report (APR), twice: Annual Profit Report (APR).", source="glossary.txt")
    )
    assert notes(rag, "apr") == ("acronyms: applied (APR → annual profit report (×0.8))",)
    assert stored(rag)[-1] == ("APR", "annual profit report", 2)


def test_other_collections_do_not_know_them(rag: RAGPipeline):
    rag.view(collections="other").ingest([SHORT, LONG])
    assert {one.source for one in rag.view(collections="other").search("apr", WORDS).results} == {"short.txt"}


def test_an_acronym_that_reads_like_a_function_word_breaks_nothing(rag: RAGPipeline):
    rag.ingest(Document(content="The Operating Room (OR) is closed. A Controlled Access Node (CAN).", source="or.txt"))
    assert "or.txt" in found(rag, "operating room")
    assert found(rag, "can I or can I not have the apr") >= {"short.txt", "long.txt"}


def test_they_combine_with_synonyms_from_a_file(dsn: str, tmp_path):
    rules = tmp_path / "synonyms.txt"
    rules.write_text("interest => annual percentage rate\n", encoding="utf-8")
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn}, retrieval={"enhance": {"synonyms": {"default": rules}}}
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        rag.ingest([GLOSSARY, SHORT, LONG])
        assert found(rag, "interest") == {"glossary.txt", "long.txt"}
        assert notes(rag, "interest on the apr") == (
            "acronyms: applied (APR → annual percentage rate (×0.8))",
            "synonyms: applied (interest → annual percentage rate (×0.5))",
        )
