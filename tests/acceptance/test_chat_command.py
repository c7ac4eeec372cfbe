"""`chat`: lines in, answers out; follow-up questions, memory, and what else can be said."""

from __future__ import annotations

import json

import pytest

from chat_server import ChatServer
from program import Recollect
from recollect.model.answer import REFUSAL

CANTEEN = "The canteen in Bremen opens at 11:45. Lunch costs EUR 6. Guests pay EUR 9 for lunch.\n"


def script(messages):
    if messages[0]["content"].startswith("You make questions stand alone"):
        asked = json.loads(messages[-1]["content"])
        return "What do guests pay for lunch?" if "guests" in asked["question"] else asked["question"]
    question = messages[-1]["content"].rpartition("Question: ")[2]
    return "Guests pay EUR 9 for lunch [1]." if "guests" in question else "Lunch costs EUR 6 [1]."


@pytest.fixture
def server():
    server = ChatServer(script)
    yield server
    server.close()


@pytest.fixture
def chat(recollect, server, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/canteen.md").write_text(CANTEEN, encoding="utf-8")
    recollect("ingest", "docs")
    return Recollect(recollect.folder, {**recollect.environment, **server.environment})


def test_a_conversation_through_a_pipe(chat, server, tmp_path):
    lines = "What does lunch cost?\nAnd guests?\n/sources\n/tokens\n/save talk.md\n/quit\nnever asked\n"
    shown = chat("chat", "--session", "talk", stdin=lines).out
    assert "Lunch costs EUR 6 [1].\n  [1] canteen.md" in shown
    assert "(What do guests pay for lunch?)\nGuests pay EUR 9 for lunch [1]." in shown
    assert "“Guests pay EUR 9 for lunch.”" in shown
    assert "3 requests" in shown
    assert len(server.requests) == 3, "the first question stands alone"
    assert server.requests[2][-1]["content"].endswith("Question: What do guests pay for lunch?")
    saved = (tmp_path / "talk.md").read_text(encoding="utf-8")
    assert "## And guests?\n\nGuests pay EUR 9 for lunch [1]." in saved
    assert "- [1] canteen.md, characters 57 to 84: “Guests pay EUR 9 for lunch.”" in saved
    recalled = chat("recall", "What do guests pay?", "--session", "talk", "--json").json
    remembered = json.dumps(recalled)
    assert "Guests pay EUR 9 for lunch [1]." in remembered
    assert "canteen.md" in remembered, "the sources of an answer are remembered with it"


def test_a_conversation_goes_on(chat, server):
    chat("chat", "--session", "talk", stdin="What does lunch cost?\n")
    document = chat("chat", "--session", "talk", "--json", stdin="And guests?\n").json
    (answer,) = document["answers"]
    assert document["session"] == "talk"
    assert answer["question"] == "And guests?"
    assert answer["rewritten_question"] == "What do guests pay for lunch?"
    assert document["usage"]["requests"] == 2
    assert "Lunch costs EUR 6 [1]." in server.requests[-2][-1]["content"], "what was said before is known"


def test_a_question_may_lean_on_one_that_got_passages(chat, server):
    def knowing_prices_alone(messages):
        return REFUSAL if messages[-1]["content"].endswith("Who cooks lunch?") else script(messages)

    server.script = knowing_prices_alone
    shown = chat("chat", "--session", "talk", stdin="Who cooks lunch?\n").out
    assert shown.startswith("No exact answer found. These passages may help:\n\n[1] canteen.md\n    The canteen")
    document = chat("chat", "--session", "talk", "--json", stdin="And guests?\nWho cooks lunch?\n").json
    assert [one["outcome"] for one in document["answers"]] == ["answer", "passages"]
    assert document["answers"][0]["rewritten_question"] == "What do guests pay for lunch?"
    rewriting = next(one for one in server.requests if one[0]["content"].startswith("You make questions stand alone"))
    assert "No exact answer found" in rewriting[-1]["content"] and "opens at" not in rewriting[-1]["content"]


def test_nothing_is_remembered_where_that_is_said(chat):
    assert chat("chat", "--forget", "--json", stdin="What does lunch cost?\n").json["session"] is None
    assert chat("chat", "--forget", "--session", "x", status=2).err


def test_an_unsupported_sentence_is_shown_as_such(chat, server):
    server.script = lambda messages: "Lunch costs EUR 600 [1]."
    assert "Lunch costs EUR 600 [1]. (?)" in chat("chat", stdin="What does lunch cost?\n").out


def test_the_past_is_asked(chat):
    lines = "/as-of 2001-01-01\nWhat does lunch cost?\n/as-of now\nWhat does lunch cost?\n"
    shown = chat("chat", "--forget", stdin=lines).out
    before, after = shown.split("From here on, the present.")
    assert "I don't have information" in before
    assert "Lunch costs EUR 6" in after


def test_what_fails_does_not_end_the_conversation(chat, tmp_path):
    (tmp_path / "there.md").write_text("mine", encoding="utf-8")
    lines = "/sources\n/nonsense\n/as-of tomorrowish\n/save there.md\n/save\nWhat does lunch cost?\n"
    ended = chat("chat", "--forget", stdin=lines, status=1)
    assert ended.err.count("Error: ") == 5
    assert "there already" in ended.err
    assert "Lunch costs EUR 6 [1]." in ended.out
    assert (tmp_path / "there.md").read_text(encoding="utf-8") == "mine"


def test_a_model_that_cannot_rewrite_answers_all_the_same(chat, server):
    def broken(messages):
        return "" if messages[0]["content"].startswith("You make") else script(messages)

    server.script = broken
    shown = chat("chat", "--forget", stdin="What does lunch cost?\nAnd for guests?\n").out
    assert "Guests pay EUR 9 for lunch [1]." in shown


def test_without_a_language_model_sentences_are_quoted(recollect, tmp_path):
    (tmp_path / "canteen.md").write_text(CANTEEN, encoding="utf-8")
    recollect("ingest", "canteen.md")
    document = recollect("chat", "--json", stdin="When does the canteen in Bremen open?\n\n").json
    (answer,) = document["answers"]
    assert (answer["model"], answer["rewritten_question"], document["usage"]) == (None, None, None)


def test_nothing_said_is_nothing_answered(chat, server):
    assert chat("chat", stdin="").out == ""
    assert server.requests == []
