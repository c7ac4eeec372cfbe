from __future__ import annotations

import json
import random

import pytest

from recollect.errors import UsageError
from recollect.evaluation.case_files import parse_suite
from recollect.evaluation.compare import SystemRun, compare
from recollect.evaluation.datasets import SpanDataset, SpanQuestion, load_beir
from recollect.evaluation.metrics import ranking_metrics
from recollect.evaluation.outcomes import BUDGETS, DEPTHS, Hit, QueryOutcome, check_cases, cover_spans, rank_documents
from recollect.evaluation.runner import ShownPassage, run_spans


def hit(document, start=0, end=10, text="text"):
    return Hit(document=document, start=start, end=end, text=text, place=f"{document} › section")


def outcomes(values, *, metric="recall"):
    return tuple(
        QueryOutcome(query_id=str(n), query="q", metrics={metric: v}, milliseconds=n, curve=(v,), expected=(), found=())
        for n, v in enumerate(values)
    )


@pytest.fixture
def beir(tmp_path):
    chance = random.Random(5)
    documents = [f"d{n}" for n in range(30)]
    lines = [json.dumps({"_id": name, "text": name}) for name in documents]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.jsonl").write_text("\n".join(json.dumps({"_id": str(n), "text": str(n)}) for n in range(20)))
    rows = [f"{n}\t{name}\t{chance.randint(0, 3)}" for n in range(20) for name in chance.sample(documents, 5)]
    (tmp_path / "qrels.tsv").write_text("\n".join(rows))
    return load_beir(tmp_path)


def test_figures_by_query_average_to_those_of_the_data_set(beir):
    chance = random.Random(1)
    rankings = {q.query_id: chance.choices([f"d{n}" for n in range(30)], k=chance.randint(0, 40)) for q in beir.queries}
    by_text = {q.text: rankings[q.query_id] for q in beir.queries}
    run = SystemRun(name="a", outcomes=tuple(rank_documents(beir, lambda text: [hit(d) for d in by_text[text]])))
    assert run.means() == pytest.approx(ranking_metrics(rankings, beir.judgements))
    assert len(run.curve()) == len(DEPTHS)
    assert run.curve() == sorted(run.curve())
    first = run.outcomes[0]
    wanted = {name for name, grade in beir.judgements["0"].items() if grade}
    assert [shown.good for shown in first.found] == [d in wanted for d in by_text["0"][:5]]


def test_spans_are_scored_as_eval_spans_does(tmp_path):
    texts = {"a": "x" * 900, "b": "y" * 900}
    questions = tuple(
        SpanQuestion(question_id=str(n), text=str(n), document="a", references=((n * 10, n * 10 + 50),))
        for n in range(5)
    )
    dataset = SpanDataset(path=tmp_path, documents=texts, questions=questions)
    passages = {str(n): [("a", n * 7, n * 7 + 60), ("b", 0, 100), ("a", 200, 900)] for n in range(5)}
    expected = run_spans(
        dataset,
        ingest=lambda _: None,
        search=lambda text: [ShownPassage(*passage) for passage in passages[text]],
        budget_chars=170,
    )
    found = cover_spans(dataset, lambda text: [hit(*passage) for passage in passages[text]], budget_chars=170)
    run = SystemRun(name="a", outcomes=tuple(found))
    assert run.means() == pytest.approx(dict(expected.metrics))
    assert len(run.curve()) == len(BUDGETS)
    assert [shown.good for shown in found[0].found] == [True, False, False]
    assert found[0].expected == ("a: " + "x" * 50,)


def test_cases_are_scored_as_rag_test_does():
    suite = parse_suite(
        "defaults: {top_k: 2}\n"
        "cases:\n- {name: one, query: q1, must_have: [a, {text: gold}]}\n"
        "- {name: none, query: q2, answerable: false}\n"
    )
    asked = []

    def search(case):
        asked.append((case.query, case.top_k))
        return [hit("b"), hit("a", text="pure Gold"), *[hit("c", text="gold leaf")] * 8][: case.top_k]

    (outcome,) = check_cases(suite, search)
    assert asked == [("q1", 2), ("q1", 100)]
    assert outcome.metrics == {"precision": 0.5, "recall": 1, "mrr": 0.5}
    assert outcome.curve[:2] == (0, 1)
    assert [shown.good for shown in outcome.found] == [False, True]
    with pytest.raises(UsageError, match="must_have"):
        check_cases(parse_suite("cases: [{name: x, query: y, answerable: false}]"), lambda *_: [])


def test_systems_are_told_apart_where_they_differ():
    chance = random.Random(2)
    base = [chance.random() / 2 for _ in range(60)]
    runs = [
        SystemRun(name="a", outcomes=outcomes(base)),
        SystemRun(name="b", outcomes=outcomes([value + 0.1 for value in base])),
        SystemRun(name="c", outcomes=outcomes([value + chance.uniform(-0.05, 0.05) for value in base])),
    ]
    comparison = compare(runs, samples=2000)
    verdicts = {(v.first, v.second): v for v in comparison.verdicts}
    assert list(verdicts) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert verdicts["a", "b"].in_words() == "b is better"
    assert verdicts["b", "c"].in_words() == "b is better"
    assert verdicts["a", "c"].in_words() == "no difference shown"
    assert all(v.corrected_p >= v.result.p_value for v in comparison.verdicts)
    report = json.loads(json.dumps(comparison.as_json()))
    assert report["queries"] == 60
    assert report["comparisons"][0]["significant"] is True
    assert report["comparisons"][0]["interval"] == pytest.approx([0.1, 0.1])


def test_what_cannot_be_compared():
    a = SystemRun(name="a", outcomes=outcomes([0.1, 0.2]))
    for others in ([], [a], [SystemRun(name="b", outcomes=outcomes([0.1]))], [SystemRun(name="b", outcomes=())]):
        with pytest.raises(UsageError):
            compare([a, *others])
