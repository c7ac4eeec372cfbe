"""Erasing a document takes along the turns of conversations that quote it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from recollect import Document, RAGPipeline, SessionRAG
from recollect.store.erasure import QUOTE_WORDS, WordRuns

SECRET = "Mara Lindqvist was treated for a torn ligament in the left knee at the clinic in Lund.\nShe recovered in May."
SHARED = "The clinic in Lund is open from eight in the morning until six in the evening."
QUOTE = "You were told: «Mara Lindqvist was treated for a TORN ligament in the left knee», as the file says."


def _contents(rag: RAGPipeline) -> str:
    """Every text of every table, as one."""
    found = []
    with rag.store.database.autocommit() as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'recollect'::regnamespace AND relkind = 'r'"
        ).fetchall()
        for (name,) in tables:
            found += [str(row) for row in connection.execute(f'SELECT t::text FROM recollect."{name}" t').fetchall()]
    return "\n".join(found)


def _turns(rag: RAGPipeline, session: str) -> list[str]:
    return [one.content for one in rag.memory.turns(session)]


def test_turns_that_quote_an_erased_document_go_with_it(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=SECRET, source="file-1"))
    pipeline.ingest(Document(content=SHARED, source="hours"))
    pipeline.view(session="ward").remember(["What happened to her knee?", QUOTE, "Thank you.", f"By the way: {SHARED}"])
    pipeline.view(session="other").remember(
        ["Mara Lindqvist was treated.", "for a torn ligament in the left knee at the clinic"]
    )
    receipt = pipeline.documents.erase(["file-1"])
    assert receipt.complete
    assert receipt.counts["episode_quotes"] == 2
    assert _turns(pipeline, "ward") == ["What happened to her knee?", "Thank you.", f"By the way: {SHARED}"]
    # A few words that anybody could say are no quote.
    assert _turns(pipeline, "other") == ["Mara Lindqvist was treated."]
    assert "torn ligament" not in _contents(pipeline).lower()
    assert all("torn" not in one.episode.content for one in pipeline.recall("torn ligament of the left knee"))
    (record,) = pipeline.audit.list(action="erase")
    assert record.details["counts"]["episode_quotes"] == 2
    assert "ligament" not in json.dumps(record.details)


def test_what_an_older_version_said_counts_too(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=SECRET, source="file-1"))
    pipeline.ingest(Document(content="Nothing is left of what this file once said about anybody.", source="file-1"))
    pipeline.view(session="ward").remember([QUOTE])
    assert pipeline.documents.erase(["file-1"]).counts["episode_quotes"] == 1
    assert _turns(pipeline, "ward") == []


def test_what_another_document_holds_too_is_no_quote_of_the_erased_one(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=f"{SECRET}\n{SHARED}", source="file-1"))
    pipeline.ingest(Document(content=SHARED, source="hours"))
    pipeline.view(session="ward").remember([SHARED])
    assert pipeline.documents.erase(["file-1"]).counts["episode_quotes"] == 0
    assert _turns(pipeline, "ward") == [SHARED]


def test_a_copy_in_a_session_is_no_other_document(pipeline: RAGPipeline):
    sessions = SessionRAG(pipeline)
    pipeline.ingest(Document(content=SECRET, source="file-1"))
    sessions.create_session("mine")
    sessions.ingest_to_session("mine", Document(content=SECRET, source="upload"))
    pipeline.view(session="ward").remember([QUOTE])
    receipt = pipeline.documents.erase(["file-1"])
    assert receipt.counts["episode_quotes"] == 1
    assert receipt.complete


def test_a_short_document_counts_where_it_is_repeated_whole(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="The password is swordfish.", source="note"))
    pipeline.view(session="chat").remember(
        ["Remember that the password is swordfish!", "Which fish?", "the password is trout"]
    )
    receipt = pipeline.documents.erase(["note"])
    assert receipt.complete
    assert receipt.counts["episode_quotes"] == 1
    assert _turns(pipeline, "chat") == ["Which fish?", "the password is trout"]


def test_conversations_of_other_tenants_are_none_of_its_business(pipeline: RAGPipeline):
    with pipeline.store.database.autocommit() as connection:
        connection.execute("INSERT INTO tenants (tenant_id, name) VALUES (81, 'other')")
    pipeline.ingest(Document(content=SECRET, source="file-1"))
    pipeline.view(session="ward", tenant=81).remember([QUOTE])
    receipt = pipeline.documents.erase(["file-1"])
    assert (receipt.counts["episode_quotes"], receipt.complete) == (0, True)
    assert [one.content for one in pipeline.view(tenant=81).memory.turns("ward")] == [QUOTE]


WORDS = st.lists(st.sampled_from(["ash", "birch", "cedar", "Dogwood", "elm"]), min_size=1, max_size=30)


@given(document=WORDS, before=WORDS, after=WORDS, start=st.integers(0, 20))
def test_any_seven_words_in_a_row_are_met_wherever_they_stand(document, before, after, start):
    runs = WordRuns()
    runs.add(" ".join(document))
    quoted = document[start : start + QUOTE_WORDS]
    turn = f"{', '.join(before)} zzz {'  '.join(word.upper() for word in quoted)}\nzzz {' '.join(after)}"
    stretches = list(runs.quoted_in(turn))
    if len(quoted) == QUOTE_WORDS:
        assert stretches
    assert all(stretch in turn for stretch in stretches)
    assert not list(runs.quoted_in(" zzz ".join(document))) or len(document) < 2
