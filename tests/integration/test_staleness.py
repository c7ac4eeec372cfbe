"""Results say where they are not the last word."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect import Document, RAGConfig, RAGPipeline, RetrievalOptions
from recollect.embedding.hashing import HashingEmbedder
from recollect.model import PassageNote, Principal, Scope

LEAVE = "Every employee working five days a week is entitled to {days} days of paid annual leave per calendar year."
OTHER = "The fire drill takes place each spring; gather at the meeting point behind the canteen and wait for wardens."


def _notes(rag: RAGPipeline, query: str = "annual leave days", **arguments) -> dict[str, list[PassageNote]]:
    options = RetrievalOptions(collapse_duplicates=False)
    reply = rag.view(**arguments).search(query, options)
    return {one.source: list(one.notes) for one in reply.results}


def _now(rag: RAGPipeline) -> datetime:
    time.sleep(0.005)
    with rag.store.database.autocommit() as connection:
        (moment,) = connection.execute("SELECT clock_timestamp()").fetchone()
    time.sleep(0.005)
    return moment


def test_what_was_replaced_deleted_or_expired_since_is_said_of_the_past(pipeline: RAGPipeline):
    for source in ("replaced", "deleted", "expired", "kept"):
        pipeline.ingest(Document(content=f"{LEAVE.format(days=28)} {source}", source=source))
    then = _now(pipeline)
    pipeline.ingest(Document(content=LEAVE.format(days=30) + " replaced", source="replaced"))
    pipeline.documents.delete(["deleted"])
    pipeline.documents.set_ttl("expired", 0.001)
    time.sleep(0.01)
    pipeline.maintenance.close_expired()
    today = datetime.now(UTC).date().isoformat()
    found = _notes(pipeline, as_of=then)
    assert {source: [note.text for note in notes] for source, notes in found.items()} == {
        "replaced": [f"superseded on {today}"],
        "deleted": [f"deleted on {today}"],
        "expired": [f"expired on {today}"],
        "kept": [],
    }
    assert [note.kind for note in found["replaced"]] == ["superseded"]
    assert _notes(pipeline) == {"replaced": [], "kept": []}
    # What comes back after a deletion did not take the deleted version's place.
    pipeline.ingest(Document(content=LEAVE.format(days=31), source="deleted"))
    assert [note.kind for note in _notes(pipeline, as_of=then)["deleted"]] == ["deleted"]


def test_a_newer_edition_is_named_whether_it_was_found_or_not(pipeline: RAGPipeline):
    pipeline.ingest(
        [
            Document(content=LEAVE.format(days=26), source="hr/leave-2023.md"),
            Document(content=LEAVE.format(days=28), source="hr/leave-2024.md"),
            Document(
                content=LEAVE.format(days=30),
                source="hr/leave-2025.pdf",
                event_time=datetime(2025, 2, 3, tzinfo=UTC),
            ),
            Document(content=OTHER, source="safety/drill-2023.md"),
            Document(content="Wardens wear yellow vests, and count everybody in.", source="safety/drill.md"),
        ]
    )
    newest = "a newer document dated 2025-02-03 covers this: hr/leave-2025.pdf"
    found = _notes(pipeline)
    assert [note.text for note in found["hr/leave-2023.md"]] == [newest]
    assert [note.text for note in found["hr/leave-2024.md"]] == [newest]
    assert found["hr/leave-2025.pdf"] == []
    only_one = pipeline.search("annual leave", RetrievalOptions(source=("hr/leave-2023.md",)))
    (note,) = only_one.results[0].notes
    assert (note.kind, note.source, note.at) == (
        "newer_document",
        "hr/leave-2025.pdf",
        datetime(2025, 2, 3, tzinfo=UTC),
    )
    assert note.document_id == pipeline.store.documents.resolve(Scope(), "hr/leave-2025.pdf")
    # The edition is newer; that it says anything of the passage is not claimed.
    drill = _notes(pipeline, "fire drill")
    assert [one.text for one in drill["safety/drill-2023.md"]] == [
        "there is a newer edition of this document: safety/drill.md"
    ]
    pipeline.documents.delete(["hr/leave-2025.pdf"])
    assert "leave-2024.md" in _notes(pipeline)["hr/leave-2023.md"][0].text


def test_a_series_is_no_conflict(pipeline: RAGPipeline):
    months = ("January", "February", "March")
    topics = (
        "the lathe was repaired after months",
        "nine visitors toured hall four",
        "invoices moved to another vendor",
    )
    for number, (month, topic) in enumerate(zip(months, topics, strict=True), 1):
        pipeline.ingest(Document(content=f"In {month} {topic}.", source=f"minutes/2025-{number:02}.md"))
    for year in range(2010, 2020):
        pipeline.ingest(Document(content=LEAVE.format(days=year), source=f"annual/review-{year}.md"))
    assert not any(_notes(pipeline, "minutes of the lathe, visitors and invoices").values())
    assert not any(_notes(pipeline).values())


def test_of_results_with_one_title_the_later_is_named(pipeline: RAGPipeline):
    def document(source: str, year: int | None, days: int, title: str = "Leave policy") -> Document:
        event = None if year is None else datetime(year, 1, 1, tzinfo=UTC)
        return Document(content=LEAVE.format(days=days), source=source, title=title, event_time=event)

    pipeline.ingest(
        [
            document("a.md", 2021, 25),
            document("b.md", 2024, 30),
            document("undated.md", None, 20),
            document("c.md", 2025, 31, title="Leave of sites abroad"),
        ]
    )
    found = _notes(pipeline)
    assert [note.text for note in found["a.md"]] == ["a newer document dated 2024-01-01 covers this: b.md"]
    assert not found["b.md"]
    assert not found["undated.md"]
    assert not found["c.md"]


def test_nobody_hears_of_a_document_that_he_may_not_read(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=LEAVE.format(days=28), source="leave-2024.md"))
    pipeline.ingest(Document(content=LEAVE.format(days=30), source="leave-2025.md", permissions=("user:eve",)))
    assert _notes(pipeline)["leave-2024.md"]
    eve, bob = Principal(user_id="eve"), Principal(user_id="bob")
    assert _notes(pipeline, principal=eve)["leave-2024.md"]
    assert _notes(pipeline, principal=bob) == {"leave-2024.md": []}


def test_editions_of_then_count_for_a_moment_of_the_past(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=LEAVE.format(days=28), source="leave-2024.md"))
    then = _now(pipeline)
    pipeline.ingest(Document(content=LEAVE.format(days=30), source="leave-2025.md"))
    assert _notes(pipeline, as_of=then) == {"leave-2024.md": []}
    assert _notes(pipeline)["leave-2024.md"]


def test_answers_and_contexts_carry_the_notes(pipeline: RAGPipeline):
    pipeline.ingest(Document(content=LEAVE.format(days=28), source="leave-2024.md"))
    pipeline.ingest(Document(content=LEAVE.format(days=30), source="leave-2025.md"))
    options = RetrievalOptions(source=("leave-2024.md",))
    answer = pipeline.ask("How many days of paid annual leave is every employee entitled to?", options)
    assert [note.source for citation in answer.citations for note in citation.notes] == ["leave-2025.md"]
    header = pipeline.context("annual leave", options).text.splitlines()[0]
    assert header.endswith("| Note: a newer document dated 2025 covers this: leave-2025.md]")


def test_notes_can_be_switched_off(dsn: str, tmp_path: Path):
    config = RAGConfig.load(
        storage={"data_dir": tmp_path / "unused", "dsn": dsn},
        embedding={"provider": "hashing"},
        retrieval={"notes": False},
    )
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        rag.ingest(Document(content=LEAVE.format(days=28), source="leave-2024.md"))
        rag.ingest(Document(content=LEAVE.format(days=30), source="leave-2025.md"))
        assert not any(_notes(rag).values())


@pytest.mark.parametrize(
    "uri", ["policy-2024.md", "v2/api.html", "Ordner/Bericht 2024.pdf", "..2024..", "2024", "ب-2024.md"]
)
def test_names_of_one_edition_group_are_met_by_the_database(pipeline: RAGPipeline, uri: str):
    """What the program takes for editions of one thing, the column that finds candidates takes for an edition group."""
    other = uri.replace("2024", "2025").replace("v2", "v3")
    pipeline.ingest(Document(content="one", source=uri))
    pipeline.ingest(Document(content="two", source=other))
    with pipeline.store.database.autocommit() as connection:
        (count,) = connection.execute("SELECT count(DISTINCT edition_group) FROM documents").fetchone()
    assert count == 1
