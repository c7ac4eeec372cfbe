"""Erasing for good: nothing of it is left, what others hold is theirs, and the receipt says so without quoting."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Document, RAGPipeline
from recollect.errors import NotFoundError
from recollect.model import Scope
from recollect.pipeline.saved_cases import save_case, saved_cases
from recollect.store.erasure import PROBE_PHRASES, phrases_of, salted

SECRET = "The merger with Quelltal Maschinenbau closes on the ninth of October in Basel.\nNobody may know."
OLDER = "The merger with Quelltal Maschinenbau is only a rumour so far, says the board."
OTHER = "Annual leave is thirty days a year for everybody in the office."


def value(rag: RAGPipeline, query: str, *params):
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(query, params).fetchone()[0]


def everything(rag: RAGPipeline) -> str:
    """Every row of every table but those of hashes and numbers, as the database writes them."""
    with rag.store.database.autocommit() as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r'"
        ).fetchall()
        return "\n".join(
            str(row[0]) for (table,) in tables for row in connection.execute(f"SELECT t::text FROM {table} t")
        )


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    for content in (OLDER, SECRET):
        pipeline.ingest(Document(content=content, source="secret.txt", title="Quelltal", metadata={"who": "board"}))
    pipeline.ingest(Document(content=OTHER, source="leave.txt"))
    return pipeline


def test_every_version_goes_with_all_that_hangs_on_it(filled: RAGPipeline):
    found = filled.retrieve("Quelltal merger")
    assert "secret.txt" in {one.source for one in found}
    assert "Quelltal" in everything(filled)
    receipt = filled.view(actor="anna").documents.erase(["secret.txt"], reason="GDPR")
    assert receipt.complete and receipt.probe.phrases >= 2 and receipt.probe.places > 20
    assert receipt.counts == {
        "documents": 1, "versions": 2, "chunks": 2, "vectors": 2, "lexical_rows": 2, "token_vectors": 0, "acronyms": 0,
        "cached_embeddings": 2, "texts": 2, "saved_cases": 0, "originals": 0, "episode_quotes": 0,
    }  # fmt: skip
    left = everything(filled)
    assert "Quelltal" not in left and "secret.txt" not in left
    assert hashlib.sha256(SECRET.encode()).hexdigest() not in left
    assert {one.source for one in filled.retrieve("Quelltal merger")} == {"leave.txt"}
    assert filled.maintenance.check() == []
    assert value(filled, "SELECT count(*) FROM term_stats WHERE document_frequency <> 1") == 0
    with pytest.raises(NotFoundError):
        filled.documents.history("secret.txt")


def test_the_receipt_proves_what_it_means_and_quotes_nothing(filled: RAGPipeline):
    receipt = filled.view(actor="anna").documents.erase(["secret.txt"], reason="GDPR")
    assert (receipt.erased_by, receipt.reason) == ("anna", "GDPR")
    (document,) = receipt.documents
    contents = [hashlib.sha256(text.encode()).digest() for text in (OLDER, SECRET)]
    assert list(document.hashes) == [salted(receipt.salt, content) for content in contents]
    (kept,) = filled.audit.list(action="erase")
    assert (kept.audit_id, kept.at, kept.actor) == (receipt.receipt_id, receipt.erased_at, "anna")
    assert kept.details["counts"] == receipt.counts and kept.details["probe"]["found"] == {}
    assert kept.details["documents"][0]["hashes"] == list(document.hashes)
    written = json.dumps(kept.details)
    assert "Quelltal" not in written and "secret" not in written and contents[0].hex() not in written
    assert any("Backups" in line for line in receipt.remains)
    assert any("until checkpoints remove them (checkpoint_timeout 600s" in line for line in receipt.remains)


def test_what_other_documents_hold_stays_theirs_and_is_named(filled: RAGPipeline):
    copy = filled.ingest(Document(content=SECRET, source="copy.txt", title="Quelltal"))
    cached = value(filled, "SELECT count(*) FROM embedding_cache")
    receipt = filled.documents.erase(["secret.txt"])
    assert receipt.copies == (copy.document_id,)
    assert receipt.complete
    # The older version's embedding was its own alone.
    assert value(filled, "SELECT count(*) FROM embedding_cache") == cached - 1
    assert filled.documents.get("copy.txt").content == SECRET
    assert filled.documents.erase(["copy.txt"]).counts["cached_embeddings"] == 1
    assert "Quelltal" not in everything(filled)


def test_test_cases_that_quote_it_or_name_its_source_go_with_it(filled: RAGPipeline):
    for name, must_have in (
        ("by source", {"source": ["secret.txt"]}),
        ("by text", {"text": SECRET.splitlines()[0]}),
        ("another", {"source": ["leave.txt"], "text": "thirty days"}),
    ):
        save_case(filled, {"name": name, "query": "What is known?", "must_have": [must_have]})
    receipt = filled.documents.erase(["secret.txt"])
    assert receipt.complete and receipt.counts["saved_cases"] == 2
    assert [one.definition["name"] for one in saved_cases(filled)] == ["another"]
    # The source of another document stays its name.
    there = filled.view(collections="elsewhere")
    there.ingest(Document(content="Another text of that name.", source="leave.txt"))
    assert there.documents.erase(["leave.txt"]).counts["saved_cases"] == 0


def test_the_probe_finds_what_was_left_anywhere(filled: RAGPipeline):
    """Somebody quoted the document in a place that erasing does not know of."""
    filled.ingest(Document(content=OTHER, source="note.txt", metadata={"quote": SECRET.splitlines()[0]}))
    receipt = filled.documents.erase(["secret.txt"])
    assert not receipt.complete
    assert receipt.probe.found["document_versions.metadata"] == 1
    assert filled.audit.list()[0].details["probe"]["found"] == receipt.probe.found


def test_replies_of_a_moment_ago_are_forgotten_even_of_the_past(filled: RAGPipeline):
    as_of = value(filled, "SELECT clock_timestamp()")
    filled.documents.delete(["secret.txt"])
    revision = filled.collections.list()[0].revision
    assert len(filled.view(as_of=as_of).retrieve("Quelltal merger")) == 2
    filled.documents.erase(["secret.txt"])
    assert filled.collections.list()[0].revision > revision
    assert {one.source for one in filled.view(as_of=as_of).retrieve("Quelltal merger")} == {"leave.txt"}


def test_nothing_is_erased_where_one_is_unknown_and_nobody_elses(filled: RAGPipeline):
    with pytest.raises(NotFoundError):
        filled.documents.erase(["secret.txt", "unknown"])
    (record, _) = filled.documents.list()
    other = Scope(tenant_id=2)
    receipt = filled.store.erasure.erase(other, [record.document_id], actor="x")
    assert receipt.documents == () and set(receipt.counts.values()) == {0}
    assert filled.documents.get("secret.txt").content == SECRET


def test_many_large_documents_are_probed_by_a_few_phrases(pipeline: RAGPipeline):
    pipeline.ingest(
        Document(content="\n".join(f"line {n} of document {d} says number {n * d}" for n in range(50)), source=f"{d}")
        for d in range(30)
    )
    ids = [record.document_id for record in pipeline.documents.list()]
    receipt = pipeline.documents.erase(ids)
    assert receipt.complete and 0 < receipt.probe.phrases <= PROBE_PHRASES
    assert receipt.counts["documents"] == 30 == len(receipt.documents)


@given(st.text('ab \n"\\\t\u05d0é', max_size=200))
def test_phrases_stand_in_the_text_in_its_very_characters(content: str):
    for phrase in phrases_of(content):
        assert phrase in content
        assert "\n" not in phrase and len(phrase) >= 12
