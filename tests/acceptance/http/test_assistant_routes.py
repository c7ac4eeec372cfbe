"""``/api`` and ``/v1/chat``: what clients of earlier assistants expect, and conversations that are remembered."""

from __future__ import annotations

import json

import pytest

from recollect import Document, Principal
from recollect.pipeline.chat import Conversation
from recollect.pipeline.watching import ask_to_watch

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
    assert [name for name, _ in told] == ["sources", "token", "citation", "done"]
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


def test_watched_folders_and_sources_are_read_anew(rag, client, tmp_path):
    watched, source, plain = (tmp_path / name for name in ("watched", "source", "plain"))
    for folder in (watched, source, plain):
        folder.mkdir()
        (folder / "a.md").write_text(f"The {folder.name} folder is about leave.")
    rag.ingest(plain)
    ask_to_watch(rag.standpoint, [watched], tags=["seen"])
    rag.sources.add(str(source), name="there")
    reply = client.post("/api/rag/reload").json()
    assert reply["status"] == "reloaded"
    assert reply["stats"]["total_documents"] == 3
    (watched / "b.md").write_text("More of it.")
    (source / "a.md").unlink()
    (plain / "b.md").write_text("Nobody watches this.")
    assert client.post("/api/rag/reload").json()["stats"]["total_documents"] == 3
    assert "b.md" in {one.source for one in rag.documents.list()}
    source.rename(tmp_path / "away")
    (watched / "c.md").write_text("And more.")
    failed = client.post("/api/rag/reload")
    assert failed.status_code == 502
    assert "there" in failed.json()["detail"]
    assert client.get("/api/rag/stats").json()["total_documents"] == 4


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
