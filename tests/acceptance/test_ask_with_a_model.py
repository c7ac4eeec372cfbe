"""`ask` with a language model: what it is sent, and what is shown of what it writes."""

from __future__ import annotations

import pytest

from chat_server import ChatServer
from program import Recollect

CANTEEN = "The canteen in Bremen opens at 11:45. Lunch costs EUR 6. Guests pay EUR 9.\n"
OFFICE = "The office in Lyon has no canteen. Employees in Lyon receive meal vouchers of EUR 11.\n"


@pytest.fixture
def server():
    server = ChatServer(lambda messages: "Lunch costs EUR 6 [1]. Guests pay EUR 10 [1].")
    yield server
    server.close()


@pytest.fixture
def asked(recollect, server, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/canteen.md").write_text(CANTEEN, encoding="utf-8")
    recollect("ingest", "docs")
    return Recollect(recollect.folder, {**recollect.environment, **server.environment})


def test_json_tells_model_usage_and_what_is_unsupported(asked, server):
    answer = asked("ask", "What does lunch cost?", "--json").json
    assert answer["answer"] == "Lunch costs EUR 6 [1]. Guests pay EUR 10 [1]."
    assert answer["model"] == "scripted"
    assert answer["usage"] == {"input_tokens": 100, "output_tokens": 20, "requests": 1, "estimated": False}
    (flagged,) = answer["unsupported"]
    assert answer["answer"][flagged["start_offset"] : flagged["end_offset"]] == "Guests pay EUR 10 [1]."
    assert flagged["reason"] == "number"
    assert answer["rewritten_question"] is None
    assert 0 <= answer["citations"][0]["support"] <= 1
    system, user = server.requests[0]
    assert "APPROVED CONTEXT" in system["content"]
    assert user["content"].startswith("APPROVED CONTEXT\n\n[Source 1: canteen.md")
    assert user["content"].endswith("Question: What does lunch cost?")


def test_people_see_what_is_unsupported(asked):
    shown = asked("ask", "What does lunch cost?").out
    assert "Guests pay EUR 10 [1]. (?)" in shown
    assert "Not supported by the sources:" in shown


def test_sentences_are_printed_as_they_come(asked):
    shown = asked("ask", "What does lunch cost?", "--stream").out
    assert shown.startswith("Lunch costs EUR 6 [1]. Guests pay EUR 10 [1].\n")
    assert "canteen.md" in shown
    assert asked("ask", "x", "--stream", "--json", status=2).err


def test_a_model_is_chosen_for_one_question(asked):
    answer = asked("ask", "What does lunch cost?", "--json", "--model", "openai/other").json
    assert answer["model"] == "other"
    assert asked("ask", "What does lunch cost?", "--json", "--model", "extractive").json["model"] is None
    assert "name it provider/model" in asked("ask", "x", "--model", "nobody/else", status=2).err


def test_every_collection_is_asked(asked, server, tmp_path):
    (tmp_path / "lyon").mkdir()
    (tmp_path / "lyon/office.md").write_text(OFFICE, encoding="utf-8")
    asked("ingest", "lyon", "--collection", "lyon")
    server.script = lambda messages: "Employees in Lyon receive meal vouchers of EUR 11 [1] [2]."
    answer = asked("ask", "Which meal vouchers do employees in Lyon receive?", "--everywhere", "--json").json
    assert {citation["collection"] for citation in answer["citations"]} == {"default", "lyon"}
    assert asked("ask", "x", "--everywhere", "--collection", "lyon", status=2).err


@pytest.mark.parametrize(("treatment", "text"), [("remove", "Lunch costs EUR 6 [1]."), ("refuse", "No exact answer")])
def test_treatments_are_configured(asked, treatment, text):
    changed = Recollect(asked.folder, {**asked.environment, "RECOLLECT_ANSWER__UNSUPPORTED": treatment})
    assert changed("ask", "What does lunch cost?", "--json").json["answer"].startswith(text)


def test_a_collection_has_a_prompt_of_its_own(asked, server, tmp_path):
    own = "Say {refusal} or answer like a sailor.\n\nAPPROVED CONTEXT\n{context}\nEND OF CONTEXT\n{question}\n"
    (tmp_path / "sailor.md").write_text(own, encoding="utf-8")
    (tmp_path / "recollect.toml").write_text('[rag.answer.prompts]\ndefault = "sailor.md"\n', encoding="utf-8")
    asked("ask", "What does lunch cost?")
    assert "like a sailor" in server.requests[-1][0]["content"]
    (tmp_path / "sailor.md").write_text(own.replace("{context}", ""), encoding="utf-8")
    refused = asked("ask", "What does lunch cost?", status=None)
    assert refused.status
    assert "sailor.md" in refused.err
    assert "{context}" in refused.err


def test_a_budget_of_the_answers_own(asked, server, tmp_path):
    for number in range(6):
        text = f"Lunch menu {number}: lunch costs EUR {number + 3}, and dessert {number} costs EUR 2."
        (tmp_path / f"docs/menu{number}.md").write_text(text, encoding="utf-8")
    asked("ingest", "docs")
    narrow = Recollect(asked.folder, {**asked.environment, "RECOLLECT_ANSWER__TOP_K": "2"})
    narrow("ask", "What does lunch cost?")
    assert server.requests[-1][1]["content"].count("[Source ") == 2
    asked("ask", "What does lunch cost?")
    assert server.requests[-1][1]["content"].count("[Source ") > 2


def test_below_the_calibrated_threshold_the_model_is_not_asked(asked, server, tmp_path):
    answerable = [
        "What does lunch cost?",
        "When does the canteen open?",
        "What do guests pay?",
        "What is the price of lunch?",
    ]
    others = ["Who invented the telephone?", "Where is Mars?", "Which king was tall?", "How do cats sleep?"]
    cases = "cases:\n" + "".join(
        f"  - {{name: '{question}', query: '{question}', answerable: {str(question in answerable).lower()}}}\n"
        for question in answerable + others
    )
    (tmp_path / "cases.yaml").write_text(cases, encoding="utf-8")
    asked("calibrate", "--cases", "cases.yaml", "--json")
    before = len(server.requests)
    answer = asked("ask", "Who invented the telephone?", "--json").json
    assert answer["outcome"] != "answer"
    assert answer["model"] is None
    assert len(server.requests) == before
    assert asked("ask", "What does lunch cost?", "--json").json["outcome"] == "answer"
