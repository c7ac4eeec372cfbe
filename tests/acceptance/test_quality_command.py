from __future__ import annotations

import pytest

from chat_server import ChatServer
from recollect import RAGConfig
from recollect.cli import rag_test
from recollect.pipeline.models import with_model

CASES = """
cases:
- name: leave
  question: How many days of annual leave do employees have?
  expected_facts: ["30"]
- name: cat
  question: Which colour does the spaceship of the chairman have?
  expected_refusal: true
"""


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "quality.yaml"
    path.write_text(CASES, encoding="utf-8")
    return path


def test_a_table_by_model_and_a_page(recollect, office, cases, tmp_path):
    page = tmp_path / "quality.html"
    arguments = ("quality-test", cases, "--ingest", office, "--all-models", "--html", page)
    report = recollect(*arguments, "--json").json
    assert (report["passed"], report["judge"]) == (True, None)
    (model,) = report["models"]
    assert model["model"] == "extractive"
    summary = model["summary"]
    assert (summary["passed"], summary["failed"], summary["cost"]) == (2, 0, 0.0)
    assert summary["metrics"] == {
        "refusal_accuracy": 1.0,
        "fact_recall": 1.0,
        "passage_recall": None,
        "faithfulness": 1.0,
        "citation_precision": 1.0,
        "citation_recall": 1.0,
        "answer_relevancy": None,
    }
    assert summary["outcomes"] == {"answer": 1, "passages": 0, "none": 0}
    assert model["cases"][0]["outcome"] == "answer"
    assert "How many days of annual leave" in page.read_text(encoding="utf-8")


def test_a_case_that_fails_makes_the_status_1(recollect, office, cases):
    cases.write_text(CASES.replace('["30"]', '["31 days"]'), encoding="utf-8")
    shown = recollect("quality-test", cases, "--ingest", office, status=1)
    head, row, *_ = shown.out.splitlines()
    assert head.split() == [
        "Model",
        "passed",
        "refusal",
        "facts",
        "faithf.",
        "cite",
        "P",
        "cite",
        "R",
        "ms",
        "tokens",
        "cost",
    ]
    assert row.split()[:3] == ["extractive", "1/2", "1.00"]
    assert "missing: 31 days" in shown.out


def test_a_judge_that_cannot_be_reached_leaves_what_it_measures_open(recollect, office, cases):
    settings = {
        "RECOLLECT_ANSWER__PROVIDER": "ollama",
        "RECOLLECT_ANSWER__BASE_URL": "http://127.0.0.1:9",
        "RECOLLECT_ANSWER__MAX_RETRIES": "0",
    }
    recollect.environment.update(settings)
    arguments = ("--model", "extractive", "--judge", "ollama/judge", "--json")
    report = recollect("quality-test", cases, "--ingest", office, *arguments).json
    assert report["models"][0]["summary"]["metrics"]["faithfulness"] is None
    assert report["judge"] == "ollama/judge"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--model", "extractive", "--all-models"], "not both"),
        (["--model", "nobody/none"], "'nobody/none' is no language model"),
        (["--judge", "extractive"], "A judge is a language model"),
    ],
)
def test_what_makes_no_sense_is_said(recollect, cases, arguments, complaint):
    assert complaint in recollect("quality-test", cases, *arguments, status=2).err


@pytest.fixture
def server():
    def reply(messages):
        told = messages[0]["content"]
        if "JSON array" in told:
            return "[1, 0]"
        if "JSON object" in told:
            return '{"questions": ["How many days of annual leave do employees have?"], "noncommittal": false}'
        return "Every employee has 30 days of annual leave [1]. Managers get 100 days [1]."

    server = ChatServer(reply)
    yield server
    server.close()


def test_models_side_by_side_with_a_judge_and_their_cost(recollect, office, cases, server):
    prices = {"RECOLLECT_ANSWER__INPUT_PRICE": "10", "RECOLLECT_ANSWER__OUTPUT_PRICE": "100"}
    recollect.environment.update(server.environment | prices)
    cases.write_text(CASES.partition("- name: cat")[0], encoding="utf-8")
    arguments = ("--model", "openai/scripted", "--model", "extractive", "--judge", "openai/judge")
    report = recollect("quality-test", cases, "--ingest", office, *arguments, "--json").json
    model, extractive = report["models"]
    assert (model["model"], extractive["model"]) == ("openai/scripted", "extractive")
    assert model["summary"]["metrics"]["faithfulness"] == 0.5
    assert model["summary"]["metrics"]["answer_relevancy"] == pytest.approx(1.0)
    assert model["summary"]["tokens"] == {"input": 100, "output": 20}
    assert model["summary"]["cost"] == pytest.approx((100 * 10 + 20 * 100) / 1_000_000)
    assert extractive["summary"]["cost"] == 0.0
    (judged,) = model["cases"]
    assert judged["unsupported"] == ["Managers get 100 days [1]."]


def test_all_models_are_those_whose_key_is_set_beside_the_configured_one(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    monkeypatch.setenv("GEMINI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = RAGConfig.model_validate({"answer": {"provider": "ollama", "model": "qwen3", "base_url": "http://h:1"}})
    names = rag_test._all_models(config)
    assert names == ["extractive", "ollama/qwen3", "google/gemini-3.8-flash", "anthropic/claude-sonnet-5-5"]
    others = [with_model(config, name).answer for name in names]
    assert [(one.provider, one.base_url) for one in others] == [
        ("extractive", None),
        ("ollama", "http://h:1"),
        ("google", None),
        ("anthropic", None),
    ]


def test_one_file_is_read_by_both_commands(recollect, office):
    recollect("ingest", office)
    cases = recollect.folder / "cases.yaml"
    cases.write_text(
        "cases:\n"
        "- query: How many days of annual leave?\n"
        "  must_have: hr/leave.md\n"
        "  expected_facts: 30 days\n"
        "  filters: {department: hr}\n"
        "- {question: Who repairs the submarine, answerable: false}\n"
        "- {name: no pay, query: annual leave, must_not_have: it/vpn.md, filters: {department: hr}}\n",
        encoding="utf-8",
    )
    searched = recollect("rag-test", cases, "--json").json
    assert searched["summary"]["cases"] == 3 and searched["summary"]["passed"] >= 2
    (model,) = recollect("quality-test", cases, "--json", status=None).json["models"]
    assert [case["question"] for case in model["cases"]] == [
        "How many days of annual leave?",
        "Who repairs the submarine",
    ]
    cases.write_text("cases:\n- question: a\n  expected_fact: b\n", encoding="utf-8")
    for command in ("rag-test", "quality-test"):
        assert ":3: case 1 expected_fact: there is no such key" in recollect(command, cases, status=2).err
