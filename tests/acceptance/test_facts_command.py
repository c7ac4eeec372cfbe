"""Facts, as a person meets them."""

from __future__ import annotations

import pytest


@pytest.fixture
def known(recollect):
    """Two turns that contradict each other, asked for once."""
    recollect("remember", "one", "I live in Lisbon.", "--role", "Ada", "--user", "ada", "--at", "2023-05-08")
    recollect("remember", "two", "I just moved to Porto.", "--role", "Ada", "--user", "ada", "--at", "2023-07-08")
    recollect("recall", "Where does Ada live?", "--user", "ada")
    return recollect


def test_facts_are_drawn_listed_followed_and_deleted(known):
    assert "no turn was found 3 times or more" in known("consolidate").out
    assert "There are no facts yet" in known("facts", "list").out
    report = known("consolidate", "--min-retrievals", "1", "--json").json
    assert report == {
        "examined": 2,
        "added": 2,
        "repeated": 0,
        "superseded": 1,
        "without_facts": 0,
        "made_by": {"extractive": 2},
        "failures": [],
    }
    (fact,) = known("facts", "list", "--json").json["items"]
    assert (fact["statement"], fact["source"], fact["superseded_by"]) == ("I just moved to Porto.", "fact:2", None)
    assert fact["evidence"] == [
        {
            "kind": "source",
            "session": "two",
            "position": 1,
            "role": "Ada",
            "at": "2023-07-08T00:00:00Z",
            "start_offset": 0,
            "end_offset": 22,
            "quote": "I just moved to Porto.",
        }
    ]
    shown = known("facts", "list", "--all").out
    assert "1 Ada: I live in Lisbon." in shown
    assert "2023-05-08 until 2023-07-08 (2), one" in shown
    history = known("facts", "history", "2", "--json").json["history"]
    assert [(one["value"], one["superseded_by"]) for one in history] == [("Lisbon", 2), ("Porto", None)]
    assert 'two, turn 1, characters 0-22: "I just moved to Porto."' in known("facts", "show", "2").out
    found = known("facts", "search", "Where does Ada live?", "--user", "ada", "--json").json["results"]
    assert [(one["rank"], one["value"]) for one in found] == [(1, "Porto")]
    assert "No fact is like it" in known("facts", "search", "anything", "--as-of", "2024-01-01").out
    assert known("facts", "delete", "2", "--yes", "--json").json == {"deleted": 2}
    assert "I live in Lisbon." in known("facts", "list").out
    assert known("sessions", "forget", "two", "1", "--yes", "--json").json == {"session": "two", "removed": 1}
    assert "no turn 1" in known("sessions", "forget", "two", "1", "--yes", status=1).err
    known("sessions", "delete", "one", "--yes")
    assert known("facts", "list", "--all", "--json").json == {"items": [], "next_cursor": None}
    receipts = known("sessions", "receipts", "--json").json["receipts"]
    assert [(one["turns"], one["facts"]) for one in receipts] == [(1, 1), (1, 0)]
    assert "turns 1, facts 1" in known("sessions", "receipts").out


def test_what_cannot_be_done_is_said(recollect):
    for arguments, status, message in [
        (["consolidate", "--min-retrievals", "0"], 2, "greater than or equal to 1"),
        (["facts", "show", "7"], 1, "no fact 7"),
        (["facts", "history", "7"], 1, "facts list"),
        (["facts", "delete", "7", "--yes"], 1, "no fact 7"),
        (["facts", "search", " "], 2, "query is empty"),
        (["facts", "list", "--as-of", "someday"], 2, "--as-of"),
    ]:
        assert message in recollect(*arguments, status=status).err
