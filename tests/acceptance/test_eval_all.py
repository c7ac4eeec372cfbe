"""``recollect eval all``: data sets of every kind in one table, beside a baseline."""

from __future__ import annotations

import json

import pytest

from unit.documents.made_files import pdf


@pytest.fixture
def sets(tmp_path):
    """One small set of each kind."""
    beir = tmp_path / "abstracts"
    beir.mkdir()
    (beir / "corpus.jsonl").write_text(
        '{"_id": "a", "title": "", "text": "Wings bend."}\n{"_id": "b", "title": "", "text": "Salaries are paid."}'
    )
    (beir / "queries.jsonl").write_text('{"_id": "q", "text": "Do wings bend?"}')
    (beir / "qrels.tsv").write_text("q\ta\t1")
    spans = tmp_path / "rules"
    (spans / "corpora").mkdir(parents=True)
    (spans / "corpora/leave.md").write_text("# Leave\n\nThirty days of leave.\n")
    question = {"id": "1", "question": "leave", "document": "leave.md", "references": [{"start": 9, "end": 30}]}
    (spans / "questions.jsonl").write_text(json.dumps(question))
    pages = tmp_path / "reports"
    (pages / "pdf").mkdir(parents=True)
    (pages / "pdf/pay.pdf").write_bytes(pdf([["It is paid on the 25th."]]))
    (pages / "questions.jsonl").write_text('{"question": "When is it paid?", "document": "pay.pdf", "pages": [1]}')
    turn = {"id": "t1", "speaker": "Ada", "text": "My sister lives in Lisbon."}
    talk = {
        "id": "c",
        "sessions": [{"id": "s", "date": "2026-01-01", "turns": [turn]}],
        "questions": [{"question": "Where does the sister live?", "category": "1", "evidence": ["t1"]}],
    }
    memory = tmp_path / "talks.json"
    memory.write_text(json.dumps({"conversations": [talk]}))
    return [beir, spans, pages, memory]


def test_every_kind_is_judged_and_compared_with_what_was_saved(recollect, sets, tmp_path):
    saved = tmp_path / "baseline.json"
    first = recollect("eval", "all", *sets, "--mode", "lexical", "--save", saved, "--json").json
    assert list(first) == ["sets", "worst", "seconds"] and first["worst"] is None
    assert [(one["set"], one["kind"], one["metric"], one["value"]) for one in first["sets"]] == [
        ("abstracts", "beir", "nDCG@10", 1),
        ("rules", "spans", "recall, 5 passages", 1),
        ("rules", "spans", "IoU, 5 passages", pytest.approx(21 / 31, abs=0.05)),
        ("rules", "spans", "recall, 4,000 characters", 1),
        ("reports", "pages", "hit@10, document", 1),
        ("reports", "pages", "hit@10, collection", 1),
        ("talks.json", "memory", "evidence_recall@10", 1),
        ("talks.json", "memory", "session_hit@10", 1),
    ]
    # A better past: this is a loss then, and the worst of them is told, and can be refused.
    before = json.loads(saved.read_text())
    before["sets"]["abstracts"]["nDCG@10"] = 1.25
    before["sets"]["reports"]["hit@10, document"] = 1.1
    saved.write_text(json.dumps(before))
    some = (f"abstracts={sets[0]}", sets[2], "--mode", "lexical", "--baseline", saved)
    second = recollect("eval", "all", *some, "--json").json
    assert second["worst"] == {"set": "abstracts", "metric": "nDCG@10", "change": pytest.approx(-0.2)}
    printed = recollect("eval", "all", *some, "--most-loss", "19", status=1).out
    assert "worst: -20.0 % (abstracts, nDCG@10)" in printed
    recollect("eval", "all", *some, "--most-loss", "21")
    # What is saved beside other sets leaves them alone.
    recollect("eval", "all", sets[0], "--mode", "lexical", "--save", saved)
    after = json.loads(saved.read_text())["sets"]
    assert after["abstracts"] == {"nDCG@10": 1} and set(after) == set(before["sets"])


def test_what_is_no_data_set_is_named(recollect, sets, tmp_path):
    def refused(*arguments):
        return " ".join(recollect("eval", "all", *arguments, status=None).err.split())

    (tmp_path / "empty").mkdir()
    assert "is no data set" in refused(tmp_path / "empty")
    assert "does not exist" in refused(tmp_path / "nowhere")
    assert "Two data sets are called 'abstracts'" in refused(sets[0], f"abstracts={sets[1]}")
    assert "--save" in refused(sets[0], "--baseline", tmp_path / "none.json")
    (tmp_path / "other.json").write_text("[]")
    assert "is no baseline" in refused(sets[0], "--baseline", tmp_path / "other.json")
    assert "--baseline" in refused(sets[0], "--most-loss", "1")
