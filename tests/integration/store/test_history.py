"""Versions of documents: listed, compared, restored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from recollect import Document, Principal, RAGPipeline, RetrievalOptions
from recollect.errors import NotFoundError, UsageError
from recollect.model import Heading, Scope

TEXTS = [
    "Leave\n\nAnnual leave is 25 days.\nAsk your manager.",
    "Leave\n\nAnnual leave is 28 days.\nAsk your manager.",
    "Leave\n\nAnnual leave is 30 days.\nAsk nobody.",
]


@pytest.fixture
def filled(pipeline: RAGPipeline) -> RAGPipeline:
    for number, text in enumerate(TEXTS, start=1):
        pipeline.ingest(
            Document(
                content=text,
                source="leave.md",
                title=f"Leave {number}",
                department="hr",
                tags=(f"v{number}",),
                metadata={"year": 2020 + number},
                headings=(Heading(1, "Leave", 0, 5),),
                event_time=datetime(2020 + number, 1, 1, tzinfo=UTC),
                event_end=datetime(2020 + number, 6, 1),
            )
        )
    return pipeline


def rows(rag: RAGPipeline, query: str) -> list[tuple]:
    with rag.store.database.transaction(Scope()) as connection:
        return connection.execute(query).fetchall()


def test_every_version_is_listed_and_their_times_touch(filled: RAGPipeline):
    history = filled.documents.history("leave.md")
    assert (history.source, history.collection) == ("leave.md", "default")
    assert [version.version for version in history.versions] == [1, 2, 3]
    for older, newer in pairwise(history.versions):
        assert older.known_to == newer.known_from
    first, *_, last = history.versions
    assert (last.known_to, last.expires_at, last.character_count) == (None, None, len(TEXTS[2]))
    assert (first.event_time, first.event_end) == (datetime(2021, 1, 1, tzinfo=UTC), datetime(2021, 6, 1, tzinfo=UTC))
    filled.documents.delete(["leave.md"])
    assert filled.documents.history("leave.md").versions[-1].known_to is not None
    past = filled.store.history.versions(Scope(as_of=first.known_from), history.document_id)
    assert [version.version for version in past.versions] == [1]
    with pytest.raises(NotFoundError):
        filled.store.history.versions(Scope(tenant_id=2), history.document_id)


def test_a_diff_shows_the_lines_that_changed(filled: RAGPipeline):
    diff = filled.documents.diff("leave.md")
    assert (diff.from_version, diff.to_version, diff.added, diff.removed) == (2, 3, 2, 2)
    assert diff.lines[:2] == ("--- version 2", "+++ version 3")
    assert "-Annual leave is 28 days." in diff.lines and "+Annual leave is 30 days." in diff.lines
    back = filled.documents.diff("leave.md", from_version=3, to_version=1, context_lines=0)
    assert "+Annual leave is 25 days." in back.lines and " Leave" not in back.lines
    assert filled.documents.diff("leave.md", from_version=1, to_version=1).lines == ()
    with pytest.raises(NotFoundError, match="has no version 9; it has 1, 2, 3"):
        filled.documents.diff("leave.md", to_version=9)
    filled.ingest(Document(content="new", source="new.md"))
    with pytest.raises(UsageError, match="no version before 1"):
        filled.documents.diff("new.md")


def test_an_old_version_comes_back_as_a_new_one(filled: RAGPipeline):
    before = filled.collections.list()[0]
    found = filled.retrieve("annual leave")[0]
    written = filled.view(actor="anna").documents.restore("leave.md", 1)
    assert (written.version, written.status) == (4, "updated")
    record = filled.documents.get("leave.md")
    assert (record.content, record.title, record.metadata) == (TEXTS[0], "Leave 1", {"year": 2021})
    # Whose it is stays as it is.
    assert (record.department, record.tags) == ("hr", ("v3",))
    best = filled.retrieve("annual leave", RetrievalOptions(mode="lexical"))[0]
    assert best.content.startswith("Leave") and "25 days" in best.content and best.chunk_id != found.chunk_id
    assert "25 days" in filled.retrieve("annual leave", RetrievalOptions(mode="dense"))[0].content
    after = filled.collections.list()[0]
    assert (after.document_count, after.revision > before.revision) == (1, True)
    assert filled.maintenance.check() == []
    (told,) = filled.audit.list(action="restore")
    assert told.actor == "anna" and told.details["restored_version"] == 1
    assert filled.documents.restore("leave.md", 4).status == "unchanged"


def test_restoring_does_not_bring_old_grants_back(filled: RAGPipeline):
    filled.grants.add("group:board", documents="leave.md", only=True)
    filled.documents.restore("leave.md", 1)
    assert filled.grants.of_documents("leave.md")[0].permissions.grants == ("group:board",)
    others, board = Principal(user_id="ann"), Principal(groups=("board",))
    assert filled.view(principal=others).retrieve("annual leave") == []
    assert filled.view(principal=board).retrieve("annual leave")
    assert filled.maintenance.check() == []


def test_a_deleted_document_comes_back(filled: RAGPipeline):
    filled.documents.delete(["leave.md"])
    assert filled.retrieve("annual leave") == []
    assert filled.documents.restore("leave.md", 3).status == "added"
    assert "30 days" in filled.retrieve("annual leave")[0].content
    assert filled.collections.list()[0].document_count == 1
    assert filled.maintenance.check() == []


def test_what_never_was_cannot_be_restored(filled: RAGPipeline):
    for document, version in [("leave.md", 9), ("leave.md", 0), ("leave.md", -1), ("no.md", 1)]:
        with pytest.raises(NotFoundError):
            filled.documents.restore(document, version)


def test_the_next_ingest_of_an_unchanged_file_leaves_it_restored(pipeline: RAGPipeline, tmp_path):
    file = tmp_path / "leave.txt"
    for days in (25, 30):
        file.write_text(f"Annual leave is {days} days.")
        pipeline.ingest(file)
    pipeline.documents.restore("leave.txt", 1)
    assert pipeline.ingest(file).unchanged == 1
    assert "25 days" in pipeline.documents.get("leave.txt").content
    file.write_text("Annual leave is 31 days.")
    pipeline.ingest(file)
    assert "31 days" in pipeline.documents.get("leave.txt").content


# Evidence


def test_the_evidence_of_two_moments_is_told_apart(filled: RAGPipeline):
    filled.ingest(Document(content="Leave in Basel is 20 days.", source="basel.md"))
    filled.ingest(Document(content="Leave is planned in spring.", source="plan.md"))
    start = rows(filled, "SELECT clock_timestamp()")[0][0]
    filled.documents.delete(["basel.md"])
    filled.documents.restore("leave.md", 2)
    filled.ingest(Document(content="Leave may be carried over.", source="carry.md"))
    diff = filled.documents.diff_evidence("How many days of leave?", from_time=start)
    assert [one.passage.source for one in diff.came] == ["carry.md"]
    assert [one.passage.source for one in diff.went] == ["basel.md"]
    assert [one.source for one in diff.stayed] == ["plan.md"]
    ((old, new),) = diff.changed
    assert "30 days" in old.content and "28 days" in new.content
    assert not any(one.outranked for one in (*diff.came, *diff.went))
    back = filled.documents.diff_evidence("How many days of leave?", from_time=diff.to_time, to_time=start)
    assert [one.passage.source for one in back.came] == ["basel.md"]


def test_what_was_only_outranked_is_said_to_be(pipeline: RAGPipeline):
    pipeline.ingest(Document(content="Leave is somewhere in this text of ours.", source="weak.md"))
    start = rows(pipeline, "SELECT clock_timestamp()")[0][0]
    pipeline.ingest(Document(content="How many days of leave? Thirty days of leave.", source="strong.md"))
    options = RetrievalOptions(top_k=1, mode="dense")
    diff = pipeline.documents.diff_evidence("How many days of leave?", from_time=start, options=options)
    assert [(one.passage.source, one.outranked) for one in diff.went] == [("weak.md", True)]
    assert [(one.passage.source, one.outranked) for one in diff.came] == [("strong.md", False)]


def test_two_moments_must_differ(filled: RAGPipeline):
    with pytest.raises(UsageError, match="the same"):
        filled.documents.diff_evidence("leave", from_time="2026-01-01", to_time="2026-01")
    with pytest.raises(UsageError, match="from_time must be a time"):
        filled.documents.diff_evidence("leave", from_time="soon")
    before_anything = filled.documents.diff_evidence("leave", from_time=datetime.now(UTC) - timedelta(days=1))
    assert len(before_anything.came) == 1 and not before_anything.went
