from __future__ import annotations

import pytest

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
        "faithfulness": 1.0,
        "citation_precision": 1.0,
        "citation_recall": 1.0,
        "answer_relevancy": None,
    }
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
        (["--model", "nobody/none"], "Unknown provider 'nobody'"),
        (["--judge", "extractive"], "A judge is a language model"),
    ],
)
def test_what_makes_no_sense_is_said(recollect, cases, arguments, complaint):
    assert complaint in recollect("quality-test", cases, *arguments, status=2).err
