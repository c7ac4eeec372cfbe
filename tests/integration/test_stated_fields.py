"""What front matter and metadata say of a document counts as though it had been given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recollect import Document, RetrievalOptions
from recollect.errors import UsageError

FACTS = {
    "title": "Travel rules",
    "department": "finance",
    "tags": ["travel", "money"],
    "ttl": "30d",
    "event_time": "2026-02-03",
    "event_end": "2026-02-05",
    "permissions": ["role:hr"],
}
MATTER = """---
title: Travel rules
department: finance
tags: [travel, money]
ttl: 30d
event_time: 2026-02-03
event_end: 2026-02-05
permissions: [role:hr]
---
# Trains

Take the train.
"""


def check(rag):
    (record,) = rag.documents.list()
    assert (record.title, record.department, sorted(record.tags)) == ("Travel rules", "finance", ["money", "travel"])
    (version,) = rag.documents.history(record.document_id).versions
    assert timedelta(days=29) < version.expires_at - version.known_from <= timedelta(days=30)
    assert version.event_time == datetime(2026, 2, 3, tzinfo=UTC)
    assert version.event_end == datetime(2026, 2, 5, tzinfo=UTC)
    (readers,) = rag.grants.of_documents(record.document_id)
    assert readers.permissions.grants == ("role:hr",)
    (found,) = rag.retrieve("train", RetrievalOptions(tags=("travel",), department=("finance",), outline=True))
    assert found.parts[-1].section == "Trains"


def test_metadata_counts_as_given(pipeline):
    pipeline.ingest(Document(content="# Trains\n\nTake the train.", source="travel", metadata=FACTS))
    check(pipeline)


def test_front_matter_counts_as_given(pipeline, tmp_path):
    (tmp_path / "travel.md").write_text(MATTER, encoding="utf-8")
    report = pipeline.ingest(tmp_path / "travel.md")
    assert not report.errors
    check(pipeline)


def test_what_is_given_wins_and_tags_of_the_run_are_added(pipeline, tmp_path):
    pipeline.ingest(Document(content="Text.", source="a", title="Own", tags=("own",), ttl="1d", metadata=FACTS))
    (own,) = pipeline.documents.list()
    assert (own.title, own.tags) == ("Own", ("own",))
    (tmp_path / "travel.md").write_text(MATTER, encoding="utf-8")
    pipeline.ingest(tmp_path / "travel.md", tags=["run"])
    assert set(pipeline.documents.list()[1].tags) == {"run", "travel", "money"}


def test_what_cannot_be_meant_is_an_error_that_names_the_file(pipeline, tmp_path):
    for name, value, words in [
        ("ttl", "soon", "ttl"),
        ("tags", 7, "tags"),
        ("tags", [1, 2], "tags"),
        ("title", [1], "title"),
        ("department", {"a": 1}, "department"),
        ("event_time", "some day", "event_time"),
        ("permissions", {"a": 1}, "permissions"),
    ]:
        with pytest.raises(UsageError, match=f"(?i){words}.*sheet"):
            pipeline.ingest(Document(content="Text.", source="sheet", metadata={name: value}))
        written = str(value).replace("'", "")
        (tmp_path / "sheet.md").write_text(f"---\n{name}: {written}\n---\nText.\n", encoding="utf-8")
        report = pipeline.ingest(tmp_path / "sheet.md")
        (error,) = report.errors
        assert "sheet.md" in str(error) and words in str(error)


def test_a_date_that_is_none_says_something_else(pipeline):
    pipeline.ingest(Document(content="Text.", source="a", metadata={"date": "third quarter"}))
    pipeline.ingest(Document(content="Text two.", source="b", metadata={"date": "2026-03-01"}))
    times = [pipeline.documents.history(one.document_id).versions[0].event_time for one in pipeline.documents.list()]
    assert times == [None, datetime(2026, 3, 1, tzinfo=UTC)]


def test_headings_are_found_in_texts_without_a_file(pipeline):
    text = "# Leave\n\nThirty days.\n\n## Sick leave\n\nA note.\n\n```\n# no heading\n```\n\nCall the desk."
    pipeline.ingest(Document(content=text, source="leave"))
    found = sorted(pipeline.retrieve("desk", RetrievalOptions(outline=True)), key=lambda one: one.start_offset)
    assert [[part.section for part in one.parts] for one in found] == [["Leave"], ["Leave > Sick leave"]]
    assert [one.content.splitlines()[-1] for one in found] == ["Thirty days.", "Call the desk."]
    assert {one.title for one in found} == {"Leave"}
    pipeline.ingest(Document(content="# Not\nmarked", source="data", mime_type="application/json"))
    assert pipeline.documents.list()[1].title == "data"


def test_documents_are_named_with_their_departments(pipeline):
    pipeline.ingest(Document(content="Take the train.", source="a", department="finance"))
    (record,) = pipeline.documents.list()
    history = pipeline.documents.history(record.document_id)
    assert (history.department, history.versions[0].department) == ("finance", "finance")
    assert pipeline.why_not("bus", "a").document.department == "finance"
