from __future__ import annotations

import json
from pathlib import Path

import pytest

CORPUS = {
    "d1": ("Leave", "Every employee has thirty days of annual leave."),
    "d2": ("", "Salaries are paid on the twenty-fifth of each month."),
    "d3": ("Errors", "ERR-4012 means that too many sessions are open."),
    "d4": ("", ""),
}
QUERIES = {
    "q1": "annual leave of an employee",
    "q2": "salaries paid each month",
    "q3": "ERR-4012",
    "q4": "no judgements",
}
JUDGEMENTS = [("q1", "d1", 2), ("q2", "d2", 1), ("q3", "d3", 1), ("q3", "d1", 0)]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    folder.mkdir()
    corpus = [json.dumps({"_id": key, "title": title, "text": text}) for key, (title, text) in CORPUS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus))
    (folder / "queries.jsonl").write_text("\n".join(json.dumps({"_id": k, "text": t}) for k, t in QUERIES.items()))
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in JUDGEMENTS)]
    (folder / "qrels.tsv").write_text("\n".join(rows))
    return folder


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    folder = tmp_path / "spans"
    (folder / "corpora").mkdir(parents=True)
    text = "# Leave\r\n\r\nEvery employee has thirty days of leave.\r\n\r\n# Pay\r\n\r\nSalaries are paid monthly.\r\n"
    (folder / "corpora/rules.md").write_bytes(text.encode())
    start = text.index("Every")
    question = {
        "id": "1",
        "question": "How many days of leave has an employee?",
        "document": "rules.md",
        "references": [{"start": start, "end": start + len("Every employee has thirty days of leave.")}],
    }
    (folder / "questions.jsonl").write_text(json.dumps(question) + "\n")
    return folder


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_beir(recollect, beir, mode):
    report = recollect("eval", "beir", beir, "--mode", mode, "--json").json
    assert list(report) == ["metrics", "queries", "documents", "seconds", "query_ms"]
    assert list(report["metrics"]) == ["nDCG@10", "R@100", "RR@10", "AP"]
    assert list(report["query_ms"]) == ["p50", "p95"]
    assert (report["queries"], report["documents"]) == (3, 3)
    if mode == "lexical":
        assert report["metrics"] == {"nDCG@10": 1, "R@100": 1, "RR@10": 1, "AP": 1}
    assert recollect("collections", "list", "--json").json["collections"] == []


def test_beir_keeps_its_collection_when_told_to(recollect, beir):
    assert "nDCG@10" in recollect("eval", "beir", beir, "--keep", "-c", "kept", "--chunk-size", "20").out
    kept = recollect("collections", "list", "--json").json["collections"]
    assert [(c["name"], c["documents"], c["chunking"]["size"]) for c in kept] == [("kept", 3, 20)]
    assert "already" in recollect("eval", "beir", beir, "-c", "kept", status=1).err


def test_spans(recollect, spans):
    report = recollect("eval", "spans", spans, "--json").json
    assert list(report) == ["metrics", "budget_chars", "questions"]
    assert list(report["metrics"]) == ["recall", "precision", "iou"]
    assert (report["metrics"]["recall"], report["budget_chars"], report["questions"]) == (1, 4000, 1)
    small = recollect("eval", "spans", spans, "--passages", "1", "--chunk-size", "45", "--json").json
    assert list(small) == ["metrics", "budget_chars", "questions"]
    assert 0 < small["metrics"]["recall"] <= 1
    assert recollect("eval", "spans", spans, "--budget", "1", "--json").json["metrics"]["recall"] == 0


def test_a_damaged_data_set_is_named_with_its_line(recollect, beir, tmp_path):
    (beir / "queries.jsonl").write_text('{"_id": "q1", "text": "fine"}\n{"_id": ')
    assert "queries.jsonl:2" in recollect("eval", "beir", beir, status=2).err
    assert "is not a folder" in recollect("eval", "beir", tmp_path / "none", status=1).err
