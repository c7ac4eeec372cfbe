"""``/api`` and ``/v1/chat``: what clients of earlier assistants expect, and conversations that are remembered."""

from __future__ import annotations

import json

import psycopg
import pytest

from recollect import Document, Principal
from recollect.pipeline.chat import Conversation
from recollect.pipeline.refreshing import ask_to_watch

ASKED = "How many days of annual leave does an employee have?"
LEAVE = "Every employee has thirty days of annual leave. Leave is asked for two weeks ahead."


@pytest.fixture
def filled(rag):
    rag.ingest(
        [
            Document(content=LEAVE, source="leave.md", department="hr"),
            Document(content="Salaries are paid on the twenty-fifth.", source="pay.md", permissions=("role:hr",)),
        ]
    )
    return rag


def events(text: str) -> list[tuple[str, dict]]:
    blocks = [block for block in text.split("\n\n") if block.startswith(("event", "id", "data"))]
    lines = [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
    return [(one["event"], json.loads(one["data"])) for one in lines]


def test_a_question_is_answered_as_events(filled, client, connect):
    told = events(client.post("/api/chat", json={"query": ASKED}).text)
    assert [name for name, _ in told] == ["outcome", "sources", "token", "citation", "passage", "passage", "done"]
    assert [told[3][1], *(one for _, one in told[4:-1])] == [*told[-1][1]["citations"], *told[-1][1]["passages"]]
    told = events(client.post("/api/chat", json={"query": "Who decides about annual leave?"}).text)
    assert told[0] == ("outcome", {"outcome": "passages"}) and told[-2][0] == "passage"
    told = events(client.post("/api/chat", json={"query": ASKED}).text)
    assert "thirty days" in told[-1][1]["answer"]
    for model in ("default", "*", "default@extractive", "extractive"):
        assert events(client.post("/api/chat", json={"query": ASKED, "model": model}).text)[-1][1]["citations"]
    refused = client.post("/api/chat", json={"query": ASKED, "model": "gpt-5"})
    assert (refused.status_code, refused.headers["content-type"]) == (404, "application/problem+json")
    assert "error" in [name for name, _ in events(client.post("/api/chat", json={"query": " "}).text)]
    staff = filled.keys.create("ada", scopes=["read"], principal=Principal(user_id="ada", roles=("staff",))).secret
    theirs = events(connect(staff).post("/api/chat", json={"query": "When are salaries paid?"}).text)
    assert "pay.md" not in json.dumps(theirs)


def test_totals_are_of_what_may_be_read(filled, client, connect):
    assert client.get("/api/rag/stats").json() == {
        "total_chunks": 2,
        "total_documents": 2,
        "departments": {"hr": 1, "": 1},
        "embedding_dimension": 64,
    }
    staff = filled.keys.create("ada", scopes=["read"], principal=Principal(user_id="ada", roles=("staff",))).secret
    assert connect(staff).get("/api/rag/stats").json()["total_documents"] == 1
    assert connect(staff).post("/api/rag/reload").status_code == 403


def test_everything_that_was_read_once_is_read_anew(rag, client, connect, tmp_path):
    watched, source, plain = (tmp_path / name for name in ("watched", "source", "plain"))
    for folder in (watched, source, plain):
        folder.mkdir()
        (folder / "a.md").write_text(f"The {folder.name} folder is about leave.")
    (plain / "same.md").write_text("This stays as it is.")
    rag.ingest(plain, tags=["official"], permissions=["role:hr"])
    ask_to_watch(rag.standpoint, [watched], tags=["seen"])
    rag.sources.add(str(source), name="there")
    reply = client.post("/api/rag/reload").json()
    assert reply["status"] == "reloaded"
    assert reply["stats"]["total_documents"] == 4
    assert reply["stats"]["read"] == sorted([str(watched), str(plain), "there"])
    (watched / "b.md").write_text("More of it.")
    (source / "a.md").unlink()
    (plain / "a.md").write_text("The plain folder is about sick leave.")
    (plain / "b.md").write_text("Nobody watches this.")
    # Whoever administers a tenant has its known folders read again, and names no new ones.
    administrator = connect(rag.keys.create("administrator", scopes=["admin", "read"]).secret)
    stats = administrator.post("/api/rag/reload").json()["stats"]
    changed = {name: stats[name] for name in ("added", "updated", "removed", "unchanged", "failed", "skipped")}
    assert changed == {"added": 2, "updated": 1, "removed": 1, "unchanged": 2, "failed": [], "skipped": []}
    found = {(one.source, one.version, one.tags) for one in rag.documents.list()}
    assert {("a.md", 2, ("official",)), ("b.md", 1, ("official",)), ("same.md", 1, ("official",))} <= found
    staff = rag.view(principal=Principal(user_id="ada", roles=("staff",)))
    assert {one.tags for one in staff.documents.list()} == {("seen",)}
    assert client.post("/api/rag/reload").json()["stats"]["updated"] == 0


def test_what_is_gone_is_skipped_and_nothing_of_it_is_closed(rag, client, tmp_path):
    gone, empty, there = (tmp_path / name for name in ("gone", "empty", "there"))
    for folder in (gone, empty, there):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "a.md").write_text(f"The {folder.name} folder is about leave.")
        rag.ingest(folder)
    rag.ingest(there / "deep", tags=["other"])
    gone.rename(tmp_path / "away")
    (empty / "deep").rename(tmp_path / "taken")
    (there / "deep").rename(tmp_path / "taken too")
    (there / "b.md").write_text("More of it.")
    reply = client.post("/api/rag/reload")
    stats = reply.json()["stats"]
    assert (reply.status_code, stats["total_documents"], stats["removed"]) == (200, 4, 0)
    assert [one["source"] for one in stats["skipped"]] == [str(empty), str(gone)]
    assert [one["path"] for one in stats["failed"]] == [str(there / "deep")]
    assert all("stay" in json.dumps(one) for one in (*stats["skipped"], *stats["failed"]))
    assert stats["read"] == [str(there)]


def test_no_more_is_read_anew_than_was_read(rag, client, dsn, tmp_path):
    """One file is no folder, parts keep what they were given, and what nothing here has read is left alone."""
    folder, foreign = tmp_path / "folder", tmp_path / "foreign"
    for path in (folder / "part" / "c.md", folder / "a.md", folder / "secret.md", foreign / "x.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"About leave, in {path.name}.")
    rag.ingest(folder / "a.md")
    assert client.post("/api/rag/reload").json()["stats"]["added"] == 0
    rag.ingest(folder)
    rag.ingest(folder / "part", tags=["part"])
    rag.ingest(foreign)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE recollect.sources SET metadata = '{}' WHERE name = %s", [str(foreign)])
    (foreign / "y.md").write_text("New.")
    (folder / "part" / "d.md").write_text("New.")
    stats = client.post("/api/rag/reload").json()["stats"]
    assert (stats["added"], stats["updated"], stats["unchanged"]) == (1, 0, 3)
    ((source, reason),) = [(one["source"], one["reason"]) for one in stats["skipped"]]
    assert source == str(foreign) and "Ingest it once more" in reason
    tags = {one.source: one.tags for one in rag.documents.list()}
    assert tags["part/d.md"] == tags["part/c.md"] == ("part",) and tags["a.md"] == ()


def test_one_that_cannot_be_read_is_an_error_and_the_others_are_read(rag, client, tmp_path):
    rag.ingest(Document(content=LEAVE, source="leave.md"))
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.md").write_text("About leave.")
    rag.ingest(tmp_path / "plain")
    rag.sources.add("https://127.0.0.1/notes.git", name="repository")
    (tmp_path / "plain" / "b.md").write_text("More of it.")
    failed = client.post("/api/rag/reload")
    assert (failed.status_code, "repository" in failed.json()["detail"]) == (502, True)
    assert client.get("/api/rag/stats").json()["total_documents"] == 3


def test_it_is_a_job_where_that_is_asked_for(rag, client, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.md").write_text("About leave.")
    rag.ingest(tmp_path / "plain")
    (tmp_path / "plain" / "b.md").write_text("More of it.")
    reply = client.post("/api/rag/reload?background=true")
    (job,) = reply.json()["stats"]["jobs"]
    assert (reply.status_code, reply.json()["status"], reply.json()["stats"]["total_documents"]) == (202, "queued", 1)
    rag.jobs.wait(job)
    assert client.get("/api/rag/stats").json()["total_documents"] == 2


def test_a_conversation_keeps_what_its_answers_cite(filled, client, connect):
    asked = {"session": "chat-1", "question": ASKED}
    whole = client.post("/v1/chat", json=asked).json()
    assert "thirty days" in whole["answer"]
    streamed = client.post("/v1/chat", json=asked, headers={"Accept": "text/event-stream"})
    assert {**events(streamed.text)[-1][1], "timings_ms": 0} == {**whole, "timings_ms": 0}
    turns = client.get("/v1/sessions/chat-1/turns").json()["turns"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    filled.ingest(Document(content=f"New. {LEAVE}", source="leave.md", department="hr"))
    (cited,) = turns[1]["metadata"]["rag_sources"]
    assert (cited["source"], cited["version"], cited["marker"]) == ("leave.md", 1, 1)
    assert LEAVE[cited["start_offset"] : cited["end_offset"]] == whole["citations"][0]["quote"]
    newer = client.post("/v1/chat", json=asked).json()
    (cited,) = client.get("/v1/sessions/chat-1/turns").json()["turns"][-1]["metadata"]["rag_sources"]
    assert cited["version"] == 2
    assert cited["start_offset"] == newer["citations"][0]["start_offset"]


def test_a_conversation_needs_the_right_to_write_and_a_name(filled, client, connect):
    reader = filled.keys.create("reader", scopes=["read"]).secret
    assert connect(reader).post("/v1/chat", json={"session": "s", "question": ASKED}).status_code == 403
    assert client.post("/v1/chat", json={"question": ASKED}).status_code == 422
    assert client.post("/v1/chat", json={"session": "s", "question": ASKED, "collection": "none"}).status_code == 404
    assert list(Conversation(filled, history=()).ask(ASKED))
    assert filled.memory.list() == []
