"""Contexts of documents and memory, and what people say of them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def known(recollect):
    (recollect.folder / "lockers.md").write_text("The locker hall opens at six.", encoding="utf-8")
    recollect("ingest", "lockers.md")
    recollect("remember", "chat", "My locker number is 17.", "--role", "Ada", "--user", "ada", "--at", "2023-05-08")
    return recollect


def test_a_context_of_both_sides(known):
    shown = known("context", "Which locker is mine?", "--user", "ada", "--explain")
    assert "[Source 1: memory:chat | Date: 2023-05-08]\nAda: My locker number is 17." in shown.out
    assert "lockers.md" in shown.out
    assert "1 from documents, 1 from conversations" in shown.err
    assert "documents 0.40, memory 0.60" in shown.err
    found = known("context", "locker", "--session", "chat", "--strategy", "episodic", "--json").json
    assert [(one["kind"], one["source"], one["metadata"]["position"]) for one in found["passages"]] == [
        ("memory", "memory:chat", 1)
    ]
    assert found["token_count"] <= 2_000
    both = known("context", "Which locker is mine?", "--user", "ada", "--json").json["passages"]
    relevance = {one["kind"]: one["relevance"] for one in both}
    assert relevance["memory"] is None and 0 < relevance["document"] <= 1
    assert "nothing found" in known("context", "locker", "--as-of", "2024-01-01", "--user", "ada").err


def test_documents_of_little_relevance_are_left_out(known):
    asked = ("context", "Which locker is mine?", "--strategy", "documents")
    assert "lockers.md" in known(*asked).out
    assert "lockers.md" not in known(*asked, "--min-relevance", "1").out


def test_feedback_is_given_shown_and_forgotten(known, tmp_path: Path):
    given = known("feedback", "helpful", "memory:chat", "fact:1", "--session", "chat")
    assert "memory 2 helpful" in given.out
    assert "adaptive_weights = true" in given.err
    assert known("feedback", "not", "lockers.md", "--json").json["tenant"]["documents_not"] == 1
    (tmp_path / "on.toml").write_text("[rag.memory]\nadaptive_weights = true\n", encoding="utf-8")
    explained = known("context", "locker", "--session", "chat", "--explain", "--json", "--config", "on.toml").json
    weights = explained["explain"]["weights"]
    assert weights["memory"] == pytest.approx(0.6 + explained["explain"]["shift"])
    assert weights["memory"] > 0.6
    assert known("feedback", "show", "--json").json["session"]["memory_helpful"] == 0
    assert "Forgot the feedback on 2 passages." in known("feedback", "reset", "--session", "chat").out
    assert known("feedback", "reset", "--json").json == {"forgotten": 1}
    assert "as configured" in known("feedback", "show").out


def test_mistakes_are_explained(recollect):
    for arguments, status, message in [
        (["context", " "], 2, "query is empty"),
        (["context", "x", "--token-budget", "0"], 2, "token_budget"),
        (["context", "x", "--strategy", "magic"], 2, "magic"),
        (["feedback", "helpful", " "], 2, "sources"),
        (["feedback", "helpful", "x", "--session", "missing"], 1, "no session 'missing'"),
    ]:
        assert message in recollect(*arguments, status=status).err
