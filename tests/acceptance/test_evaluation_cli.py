from __future__ import annotations

import json
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
    assert recollect("collections", "list", "--json").json["items"] == []


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


def test_wrong_calls_are_explained(recollect, office, cases):
    for arguments, status, complaint in [
        (["none.yaml"], 1, "none.yaml: there is no such file"),
        (["-t", "nobody"], 1, "No case is named 'nobody'. There are: leave, error"),
        (["-n", "0"], 2, "--runs"),
        (["-c", "nowhere"], 1, "nowhere"),
        (["--ingest", "docs", "-c", "x"], 2, "--ingest"),
    ]:
        assert complaint in recollect("rag-test", *arguments, status=status).err


def test_a_mistake_in_the_file_is_named_with_its_line(recollect, cases):
    cases.write_text(CASES.replace("as: clerk", "as: boss"), encoding="utf-8")
    assert (
        "'clerk-sees-no-it' runs as 'boss', which is no persona (known: clerk)" in recollect("rag-test", status=2).err
    )
    cases.write_text(CASES.replace("must_have: [it", "must_hav: [it"), encoding="utf-8")
    assert "rag-tests.yaml:10: case 'error' must_hav: there is no such key" in recollect("rag-test", status=2).err


FILTERED = """
personas:
  before: {as_of: 2001-01-01}
  others: {tenant_id: 2}
cases:
- name: neither-pay-nor-text
  query: annual leave salaries sessions
  filters:
    department: {in: [hr, it]}
    not: {metadata.format: txt}
  must_have: [hr/leave.md, it/errors.md]
  must_not_have: [hr/pay.txt, readme.txt]
- name: nothing-was-known-then
  query: annual leave
  as: before
  must_not_have: [hr/leave.md]
- name: others-see-nothing
  query: annual leave
  as: others
  must_not_have: [hr/leave.md]
"""


def test_cases_take_the_whole_language_of_filters_and_run_as_a_tenant_at_a_time(recollect, office, cases):
    recollect("ingest", office)
    cases.write_text(FILTERED, encoding="utf-8")
    done = recollect("rag-test", "--json").json
    assert done["passed"] is True
    assert sorted(done["cases"][0]["found"]) == ["hr/leave.md", "it/errors.md"]
    assert done["cases"][0]["precision"] == 1
    assert [case["found"] for case in done["cases"][1:]] == [[], []]
    # The same questions without filter, time and tenant fail: it is these that kept the documents out.
    bare = (
        FILTERED.replace("  as: before\n", "")
        .replace("  as: others\n", "")
        .replace("    not: {metadata.format: txt}\n", "")
    )
    cases.write_text(bare, encoding="utf-8")
    report = recollect("rag-test", "--json", status=1).json
    assert [case["passed"] for case in report["cases"]] == [False, False, False]
    assert report["cases"][0]["forbidden"] == ["hr/pay.txt"]


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ("{metadata.format: {like: t}}", "'metadata.format' has no operator 'like'"),
        ("{departments: hr}", "Did you mean 'department'?"),
    ],
)
def test_a_bad_filter_of_a_case_is_named_with_its_line(recollect, cases, filters, said):
    cases.write_text(f"cases:\n- name: one\n  query: q\n  must_have: x\n  filters: {filters}\n", encoding="utf-8")
    complaint = recollect("rag-test", status=2).err
    assert "rag-tests.yaml:5: case 'one' filters: " in complaint
    assert said in complaint


def test_bad_options_are_refused_before_anything_is_ingested(recollect, office, cases, beir):
    for command in (("rag-test", "--ingest", office), ("eval", "beir", beir)):
        assert "mmr_lambda" in recollect(*command, "--mmr", "7", status=2).err
        assert "'sorce'" in recollect(*command, "--filter", '{"sorce": 1}', status=2).err
    assert "--target" in recollect("calibrate", "--cases", cases, "--target", "2", status=2).err


def test_the_handbooks_cases_pass(recollect_with_model):
    done = recollect_with_model("rag-test", HANDBOOK / "rag-tests.yaml", "--ingest", HANDBOOK, "--json").json
    assert done["summary"]["cases"] >= 40
    assert sum(case["refused"] is True for case in done["cases"]) >= 10


@pytest.fixture
def beir(tmp_path):
    folder = tmp_path / "beir"
    folder.mkdir()
    words = ["leave", "salary", "visitor", "laptop", "travel", "parking", "invoice", "password", "holiday", "training"]
    corpus = [{"_id": f"d{n}", "text": f"All about {word} and {words[n - 1]}."} for n, word in enumerate(words)]
    queries = [{"_id": f"q{n}", "text": f"about {word}"} for n, word in enumerate(words)]
    for name, records in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))
    (folder / "qrels.tsv").write_text("\n".join(f"q{n}\td{n}\t1" for n in range(len(words))))
    return folder


def settings(folder, **retrieval):
    path = folder / f"{retrieval.pop('name')}.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in retrieval.items()]
    path.write_text("\n".join(["[rag.retrieval]", *lines]))
    return path


@pytest.fixture
def configurations(tmp_path):
    return [
        settings(tmp_path, name="words", mode="lexical"),
        settings(tmp_path, name="both", mode="hybrid"),
        settings(tmp_path, name="same", mode="lexical"),
    ]


def test_configurations_are_compared_on_the_same_queries(recollect, beir, configurations):
    report = recollect("eval", "compare", *configurations, "--data", beir, "--samples", "500", "--json").json
    assert report["queries"] == 10
    assert [system["name"] for system in report["systems"]] == ["words", "both", "same"]
    assert report["systems"][0]["metrics"] == report["systems"][2]["metrics"]
    assert len(report["comparisons"]) == 3 * 4
    same = next(c for c in report["comparisons"] if (c["first"], c["second"]) == ("words", "same"))
    assert (same["difference"], same["p_value"], same["significant"]) == (0, 1, False)
    assert recollect("collections", "list", "--json").json["items"] == []
    shown = recollect("eval", "compare", *configurations, "--data", beir).out
    assert "unclear" in shown
    assert "nDCG@10" in shown


def test_test_cases_are_data_too(recollect, office, cases, configurations):
    report = recollect("eval", "compare", *configurations[:2], "--data", cases, "--ingest", office, "--json").json
    assert list(report["systems"][0]["metrics"]) == ["precision", "recall", "mrr"]
    assert report["queries"] == 2


def test_what_cannot_be_compared_is_explained(recollect, beir, configurations, tmp_path):
    one = configurations[0]
    assert "two or more" in recollect("eval", "compare", one, "--data", beir, status=2).err
    assert "given twice" in recollect("eval", "compare", one, one, "--data", beir, status=2).err
    wrong = settings(tmp_path, name="wrong", mod="lexical")
    assert "there is no such setting" in recollect("eval", "compare", one, wrong, "--data", beir, status=2).err
    assert "no data set" in recollect("eval", "compare", one, configurations[1], "--data", tmp_path, status=2).err


def test_a_report_is_one_page(recollect, beir, tmp_path, configurations):
    assert "report.html" in recollect("eval", "report", "--data", beir, "-o", tmp_path / "report.html").out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for expected in ("<svg", "words only", "meaning only", "10 queries", "Are the differences real?"):
        assert expected in page
    done = recollect("eval", "report", configurations[0], "--data", beir, "-o", tmp_path / "one.html", "--json").json
    assert list(done["systems"]) == ["words"]
    assert "Are the differences real?" not in (tmp_path / "one.html").read_text(encoding="utf-8")
    assert "no folder" in recollect("eval", "report", "--data", beir, "-o", "no/where.html", status=2).err


def test_calibration_is_kept_with_its_collection(recollect, office, tmp_path):
    recollect("ingest", office)
    cases = tmp_path / "cases.yaml"
    answerable = [{"name": f"a{n}", "query": "annual leave of every employee", "answerable": True} for n in range(6)]
    others = [{"name": f"u{n}", "query": f"planet number {n} of Proxima", "answerable": False} for n in range(25)]
    cases.write_text(json.dumps({"cases": answerable + others}))
    tried = recollect("calibrate", "--cases", cases, "--dry-run", "--json").json
    assert (tried["stored"], tried["answerable"], tried["unanswerable"]) == (False, 6, 25)
    done = recollect("calibrate", "--cases", cases, "--json").json
    assert done["stored"] is True
    assert done["threshold"] == tried["threshold"]
    assert done["fitted"]["false_answers"] <= 0.05
    assert done["enough_cases"] is True
    strict = recollect("calibrate", "--cases", cases, "--json").json
    assert strict["before"] == done["fitted"]
    assert "False refusals" in recollect("calibrate", "--cases", cases, "--target", "0.5").out
    few = tmp_path / "few.yaml"
    few.write_text(json.dumps({"cases": answerable[:1] + others[:2]}))
    assert "Too few cases" in recollect("calibrate", "--cases", few).err
    assert "built-in rule" in recollect("calibrate", "--reset").out
    assert "--cases FILE" in recollect("calibrate", status=2).err
    few.write_text(json.dumps({"cases": answerable}))
    assert "cases without" in recollect("calibrate", "--cases", few, status=2).err


def test_a_refusal_names_what_came_nearest(recollect, office):
    recollect("ingest", office)
    asked = ["ask", "What is the salary of ERR-9999?"]
    reply = recollect(*asked, "--json", "--explain").json
    assert reply["outcome"] == "passages"
    assert reply["nearest"]["missing_identifier"] is True
    assert set(reply["nearest"]["evidence"]) >= {"source", "quote", "start_offset", "end_offset"}
    assert reply["nearest"]["probability"] < reply["nearest"]["threshold"]
    assert "nearest" not in recollect(*asked, "--json").json
    assert f"Nearest: {reply['nearest']['evidence']['source']}" in recollect(*asked, "--explain").out
    assert "Nearest" not in recollect(*asked).out


def test_drafts_are_cases_that_run(recollect, office, tmp_path):
    (office / "hr/pay.txt").write_text("Salaries of all permanent employees are paid on the 25th day of each month.\n")
    recollect("ingest", office)
    assert "drafts in" in recollect("eval", "make", "-o", "drafts.yaml").out
    done = recollect("rag-test", "drafts.yaml", "--mode", "lexical", "--json").json
    assert done["summary"]["cases"] >= 1
    assert done["passed"] is True
    assert "exists" in recollect("eval", "make", "-o", "drafts.yaml", status=2).err
    recollect("eval", "make", "-o", "drafts.yaml", "--force", "-n", "1")
    printed = recollect("eval", "make").out
    assert printed.startswith("# Drafted")
    assert "hr/pay.txt" in printed
    assert "is empty" in recollect("eval", "make", "-c", "nowhere", status=1).err
