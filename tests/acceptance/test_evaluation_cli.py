from __future__ import annotations

from pathlib import Path

import pytest

HANDBOOK = Path(__file__).resolve().parents[2] / "examples" / "handbook"

CASES = """
defaults: {top_k: 2}
personas: {clerk: {department: hr}}
cases:
- name: leave
  query: annual leave of an employee
  must_have: {source: hr/leave.md, text: 30 days}
- name: error
  query: ERR-4012
  must_have: [it/errors.md]
  thresholds: {mrr: 1.0}
- name: clerk-sees-no-it
  query: ERR-4012
  as: clerk
  must_not_have: [it/errors.md]
"""


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "rag-tests.yaml"
    path.write_text(CASES, encoding="utf-8")
    return path


def test_cases_pass_on_a_folder_and_leave_nothing_behind(recollect, office, cases):
    done = recollect("rag-test", "--ingest", office, "--mode", "lexical", "-n", "3", "--json").json
    assert done["passed"] is True
    assert done["summary"]["cases"] == 3
    assert done["summary"]["runs"] == 3
    assert set(done["summary"]["latency_ms"]) == {"p50", "p95"}
    assert [(c["name"], c["recall"], c["mrr"]) for c in done["cases"]] == [
        ("leave", 1, 1),
        ("error", 1, 1),
        ("clerk-sees-no-it", None, None),
    ]
    assert done["cases"][1]["found"][0] == "it/errors.md"
    assert recollect("collections", "list", "--json").json["collections"] == []


def test_a_case_below_its_threshold_fails_and_says_why(recollect, office, cases):
    recollect("ingest", office)
    cases.write_text(CASES.replace("30 days", "31 days"), encoding="utf-8")
    failed = recollect("rag-test", cases, "--mode", "lexical", status=1)
    assert "✗ leave" in failed.out
    assert "missing: “31 days” in hr/leave.md" in failed.out
    assert "2 of 3 cases passed" in failed.out
    report = recollect("rag-test", cases, "--mode", "lexical", "--json", status=1).json
    assert [case["passed"] for case in report["cases"]] == [False, True, True]
    assert recollect("rag-test", cases, "-t", "err*", "--mode", "lexical").out.count("✓") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (["none.yaml"], 1, "none.yaml: there is no such file"),
        (["-t", "nobody"], 1, "No case is named 'nobody'. There are: leave, error"),
        (["-n", "0"], 2, "--runs"),
        (["-c", "nowhere"], 1, "nowhere"),
        (["--ingest", "docs", "-c", "x"], 2, "--ingest"),
    ],
)
def test_wrong_calls_are_explained(recollect, office, cases, arguments, status, complaint):
    assert complaint in recollect("rag-test", *arguments, status=status).err


def test_a_mistake_in_the_file_is_named_with_its_line(recollect, cases):
    cases.write_text(CASES.replace("as: clerk", "as: boss"), encoding="utf-8")
    assert (
        "'clerk-sees-no-it' runs as 'boss', which is no persona (known: clerk)" in recollect("rag-test", status=2).err
    )
    cases.write_text(CASES.replace("must_have: [it", "must_hav: [it"), encoding="utf-8")
    assert "rag-tests.yaml:10: case 'error' must_hav: there is no such key" in recollect("rag-test", status=2).err


def test_the_handbooks_cases_pass(recollect_with_model):
    done = recollect_with_model("rag-test", HANDBOOK / "rag-tests.yaml", "--ingest", HANDBOOK, "--json").json
    assert done["summary"]["cases"] >= 40
    assert sum(case["refused"] is True for case in done["cases"]) >= 10
