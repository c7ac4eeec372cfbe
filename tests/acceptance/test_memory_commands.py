"""Remembering and recalling, as a person does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TURNS = [
    {"id": "1", "role": "Ada", "content": "I moved to Lisbon with my sister.", "at": "2023-05-08T13:56"},
    {"id": "2", "role": "assistant", "content": "Which neighbourhood did you choose?", "at": "2023-05-08T13:57"},
    {"id": "3", "speaker": "Ada", "text": "Alfama, close to the castle.", "date": "2023-05-08T13:58"},
]


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    path = tmp_path / "turns.jsonl"
    path.write_text("\n".join(json.dumps(turn) for turn in TURNS) + "\n\n", encoding="utf-8")
    return path


def test_a_conversation_is_remembered_recalled_shown_and_deleted(recollect, turns: Path):
    assert "No conversation" in recollect("sessions", "list").out
    assert "Remembered 3 turns of chat" in recollect("remember", "chat", "--file", turns, "--user", "ada").out
    assert "3 known already" in recollect("remember", "chat", "--file", turns).out
    recollect("remember", "other", "My passport expires in March.", "--role", "Cleo", "--user", "cleo")

    shown = recollect("recall", "Who moved to Lisbon?", "--session", "chat").out
    assert "1. chat (ada), turn 1, 2023-05-08 13:56" in shown
    assert "assistant: Which neighbourhood" in shown

    found = recollect("recall", "passport", "--user", "ada", "--json").json["results"]
    assert {hit["session"] for hit in found} == {"chat"}
    found = recollect("recall", "passport", "--json", "-k", "1").json["results"]
    assert [(hit["session"], hit["role"], hit["user"]) for hit in found] == [("other", "Cleo", "cleo")]
    assert found[0]["at"] is not None

    assert recollect("sessions", "list").out.split()[:4] == ["Session", "User", "Turns", "Latest"]
    sessions = recollect("sessions", "list", "--json").json["sessions"]
    assert {(one["session"], one["user"], one["turns"]) for one in sessions} == {
        ("chat", "ada", 3),
        ("other", "cleo", 1),
    }
    lines = recollect("sessions", "show", "chat", "--limit", "2").out
    assert "I moved to Lisbon" in lines
    assert "1 more: recollect sessions show chat --after 2" in lines
    page = recollect("sessions", "show", "chat", "--after", "2", "--json").json
    assert [(turn["id"], turn["role"]) for turn in page["turns"]] == [("3", "Ada")]

    assert recollect("sessions", "delete", "chat", "--yes", "--json").json == {"deleted": "chat", "turns": 3}
    assert "Nothing like it" in recollect("recall", "Lisbon", "--user", "ada").out


def test_turns_come_from_the_input_as_well(recollect):
    lines = "\ufeff" + "\n".join(json.dumps(turn) for turn in TURNS)
    done = recollect("remember", "chat", "-f", "-", "--json", stdin=lines).json
    assert done == {"session": "chat", "turns": 3, "added": 3, "positions": [1, 2, 3]}


def test_a_turns_id_and_time(recollect):
    for expected in (1, 0):
        done = recollect("remember", "chat", "Hello.", "--id", "a", "--at", "2023-05-08", "--json").json
        assert (done["added"], done["positions"]) == (expected, [1])
    turn = recollect("sessions", "show", "chat", "--json").json["turns"][0]
    assert turn["at"] == "2023-05-08T00:00:00Z"
    assert recollect("recall", "Hello", "--until", "2023-05-08", "--json").json["results"] == []
    assert len(recollect("recall", "Hello", "--since", "2023-05-08", "--json").json["results"]) == 1
    assert recollect("recall", "Hello", "--as-of", "2023-05-09", "--json").json["results"] == []


def test_mistakes_are_explained(recollect):
    for arguments, status, message in [
        (["remember", "chat"], 2, "either TEXT or --file"),
        (["remember", "chat", "x", "--file", "y"], 2, "either TEXT or --file"),
        (["remember", "chat", "--file", "missing.jsonl"], 1, "not a file"),
        (["remember", "chat", "  "], 2, "content is empty"),
        (["remember", " ", "x"], 2, "session id"),
        (["remember", "chat", "x", "--at", "someday"], 2, "--at"),
        (["recall", " "], 2, "empty"),
        (["recall", "x", "--session", "missing"], 1, "no session 'missing'"),
        (["recall", "x", "--neighbours", "51"], 2, "before"),
        (["sessions", "show", "missing"], 1, "sessions list"),
        (["sessions", "delete", "missing"], 1, "sessions list"),
    ]:
        assert message in recollect(*arguments, status=status).err


def test_a_bad_line_is_named_and_nothing_is_stored(recollect, tmp_path: Path):
    (tmp_path / "bad.jsonl").write_bytes(b'{"content": "fine"}\n{"content": "caf\xe9"}\n')
    assert "bad.jsonl:2: not UTF-8" in recollect("remember", "chat", "--file", "bad.jsonl", status=2).err
    for line in ("[]", '{"role": "user"}', '{"content": "x", "when": 1}', '{"content": "x", "metadata": 1}', "{"):
        outcome = recollect("remember", "chat", "-f", "-", stdin='{"content": "fine"}\n' + line, status=2)
        assert "input:2:" in outcome.err
    assert recollect("sessions", "list", "--json").json["sessions"] == []


def test_an_id_that_another_user_has_is_like_a_new_one(recollect):
    first = recollect("remember", "chat", "Hello.", "--user", "ada")
    second = recollect("remember", "chat", "Hello.", "--user", "bob")
    assert (second.out, second.err) == (first.out, first.err)
