"""Sessions with documents of their own, as a person uses them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def upload(tmp_path: Path) -> Path:
    folder = tmp_path / "upload"
    folder.mkdir()
    (folder / "offer.md").write_text("# Offer\n\nThe offer for the pump ends on Friday.\n", encoding="utf-8")
    (folder / "notes.md").write_text("# Notes\n\nAnn begins her leave on 1 July.\n", encoding="utf-8")
    return folder


def sources(found) -> list[tuple[str, str | None]]:
    return [(one["source"], one.get("collection")) for one in found["results"]]


def test_a_session_from_its_beginning_to_its_end(recollect, office: Path, upload: Path):
    recollect("ingest", office)
    assert "Began the session 'chat'" in recollect("sessions", "create", "chat", "--max-documents", "2").out
    stored = recollect("ingest", upload, "--session", "chat", "--json").json
    assert stored["added"] == 2

    alone = recollect("query", "When does the offer end?", "--session", "chat", "--json").json
    assert alone["collection"] == "session:chat"
    assert set(sources(alone)) == {("offer.md", None), ("notes.md", None)}
    assert "offer.md" not in recollect("query", "When does the offer end?", "--json").out
    both = recollect("query", "leave", "--session", "chat", "--with", "default", "--json", "-k", "20").json
    assert both["collection"] == "session:chat, default"
    assert {("notes.md", "session:chat"), ("hr/leave.md", "default")} <= set(sources(both))
    shown = recollect("query", "leave", "--session", "chat", "--with", "*", "-k", "20").out
    assert "session:chat" in shown and "default" in shown
    context = recollect("query", "offer", "--session", "chat", "--context", "--json").json
    assert (context["collection"], context["passages"][0]["source"]) == ("session:chat", "offer.md")
    answer = recollect("ask", "When does the offer for the pump end?", "--session", "chat", "--json").json
    assert {citation["source"] for citation in answer["citations"]} <= {"offer.md"}

    assert [one["name"] for one in recollect("collections", "list", "--json").json["items"]] == ["default"]
    assert recollect("status", "--json").json["total_documents"] == 4
    listed = recollect("sessions", "list", "--json").json
    assert listed["sessions"] == []
    assert [(one["session"], one["documents"], one["max_documents"]) for one in listed["document_sessions"]] == [
        ("chat", 2, 2)
    ]
    assert "2 of 2" in recollect("sessions", "list").out
    assert "offer.md" in recollect("sessions", "show", "chat").out
    (upload / "third.md").write_text("One more.\n", encoding="utf-8")
    full = recollect("ingest", upload, "--session", "chat", "--json", status=1).json
    assert "no room for 1 more" in full["errors"][0]["error"]

    assert "lives until" in recollect("sessions", "renew", "chat").out
    assert recollect("sessions", "end", "chat", "--yes", "--json").json == {"ended": "chat", "documents": 2}
    assert "no session 'chat'" in recollect("query", "offer", "--session", "chat", status=1).err
    assert recollect("sessions", "list", "--json").json["document_sessions"] == []


def test_a_conversation_and_a_session_of_one_id(recollect):
    recollect("remember", "chat", "I would like a new pump.")
    recollect("sessions", "create", "chat")
    shown = recollect("sessions", "show", "chat", "--json").json
    assert (shown["session"]["turns"], shown["document_session"]["documents"], shown["documents"]) == (1, 0, [])
    text = recollect("sessions", "show", "chat").out
    assert "I would like a new pump." in text and "0 of at most 100" in text
    recollect("sessions", "end", "chat")
    assert "document_session" not in recollect("sessions", "show", "chat", "--json").json


def test_the_oldest_goes_where_that_is_wanted(recollect, upload: Path):
    made = recollect(
        *("sessions", "create", "chat", "--ttl", "never", "--max-documents", "1", "--when-full", "oldest"),
        *("--no-auto-cleanup", "--json"),
    ).json["session"]
    assert (made["expires_at"], made["when_full"], made["auto_cleanup"]) == (None, "oldest", False)
    recollect("ingest", upload / "offer.md", "--session", "chat")
    recollect("ingest", upload / "notes.md", "--session", "chat")
    documents = recollect("sessions", "show", "chat", "--json").json["documents"]
    assert [one["source"] for one in documents] == ["notes.md"]


def test_an_expired_session(recollect, upload: Path):
    recollect("sessions", "create", "chat", "--ttl", "0.001s", "--no-auto-cleanup")
    assert "has expired" in recollect("query", "offer", "--session", "chat", status=1).err
    assert "has expired" in recollect("ingest", upload, "--session", "chat", status=1).err
    assert "expired" in recollect("sessions", "list").out
    assert recollect("cleanup", "--json").json["sessions_ended"] == 1
    assert recollect("sessions", "list", "--json").json["document_sessions"] == []


def test_what_cannot_be_meant_is_refused(recollect):
    for arguments, message in [
        (["query", "x", "--with", "default"], "--session"),
        (["query", "x", "--session", "a", "-c", "b"], "--with"),
        (["-c", "b", "ask", "x", "--session", "a"], "--with"),
        (["ingest", ".", "--session", "a", "--sync"], "leave out"),
        (["ingest", ".", "--session", "a", "-c", "b"], "leave out"),
        (["sessions", "create", "a", "--ttl", "soon"], "length of time"),
        (["sessions", "create", "a", "--max-documents", "0"], "max-documents"),
        (["sessions", "create", " "], "session id"),
    ]:
        assert message in recollect(*arguments, status=2).err
