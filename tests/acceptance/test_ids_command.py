"""Documents with ids on the command line: shown, named and removed."""

from __future__ import annotations

import json


def test_turns_of_a_chat_are_listed_shown_and_removed(recollect):
    lines = [{"id": f"turn-{n}", "source": "chat", "text": f"Turn {n} of the talk."} for n in (1, 2, 3)]
    (recollect.folder / "turns.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    recollect("import", "turns.jsonl")
    listed = recollect("documents", "list", "--json").json["items"]
    assert [(one["source"], one["id"]) for one in listed] == [("chat", f"turn-{n}") for n in (1, 2, 3)]
    assert "turn-2" in recollect("documents", "list").out
    assert "chat (turn-" in recollect("query", "talk").out
    assert "Turn 2 of the talk." in recollect("documents", "show", "turn-2").out
    refused = recollect("documents", "show", "chat", status=None)
    assert refused.status == 2 and "3 documents have the source 'chat'" in refused.err
    assert "'turn-1', 'turn-2', 'turn-3'" in refused.err
    recollect("export", "all.jsonl")
    assert recollect("documents", "delete", "turn-3", "--json").json == {"deleted": 1}
    assert recollect("documents", "delete", "chat", "--json").json == {"deleted": 2}
    recollect("import", "all.jsonl")
    assert recollect("documents", "list", "--json").json["items"] == [
        {**one, "version": 2, "known_from": again["known_from"]}
        for one, again in zip(listed, recollect("documents", "list", "--json").json["items"], strict=True)
    ]
    assert recollect("documents", "erase", "chat", "--yes", "--json").json["counts"]["documents"] == 3
