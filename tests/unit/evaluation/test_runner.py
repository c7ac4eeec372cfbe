from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import UsageError
from recollect.evaluation.datasets import SpanDataset, SpanQuestion, load_beir
from recollect.evaluation.runner import ShownPassage, fitting, run_beir, run_spans

passages = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 30)).map(lambda pair: ShownPassage("a", pair[0], sum(pair)))
)


@pytest.fixture
def beir(tmp_path):
    corpus = [{"_id": f"d{i}", "text": text} for i, text in enumerate(["red fox", "blue fox", "red bear"])]
    queries = [{"_id": "1", "text": "red"}, {"_id": "2", "text": "wolf"}]
    for name, records in (("corpus", corpus), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "qrels.tsv").write_text("1\td0\t1\n1\td2\t1\n2\td1\t1\n")
    return load_beir(tmp_path)


@pytest.fixture
def spans(tmp_path):
    question = SpanQuestion(question_id="1", text="what?", document="a", references=((0, 10), (20, 30)))
    return SpanDataset(path=tmp_path, documents={"a": "x" * 100, "b": "y" * 100}, questions=(question, question))


def test_documents_rank_by_their_best_chunk(beir):
    stored = []

    def ingest(documents):
        stored.extend(documents)
        return len(stored)

    def search(query):
        time.sleep(0.002)
        found = [document.document_id for document in stored if query in document.text]
        return [found[0], found[0], *found[1:]] if found else []

    done = []
    report = run_beir(beir, ingest=ingest, search=search, progress=lambda *counts: done.append(counts))
    assert done == [(1, 2), (2, 2)]
    assert report.metrics == pytest.approx({"nDCG@10": 0.5, "R@100": 0.5, "RR@10": 0.5, "AP": 0.5})
    printed = json.loads(json.dumps(report.as_json()))
    assert list(printed) == ["metrics", "queries", "documents", "seconds", "query_ms"]
    assert (printed["queries"], printed["documents"]) == (2, 3)
    assert 2 <= printed["query_ms"]["p50"] <= printed["query_ms"]["p95"]
    assert printed["seconds"] >= 0.004


def test_spans_within_a_budget(spans):
    ingested = {}
    found = [ShownPassage("a", 5, 25), ShownPassage("b", 0, 10), ShownPassage("a", 0, 11), ShownPassage("a", 25, 30)]
    report = run_spans(spans, ingest=ingested.update, search=lambda _: found, budget_chars=40)
    assert ingested == spans.documents
    assert report.as_json() == {
        "metrics": {"recall": 10 / 20, "precision": 10 / 30, "iou": 10 / 40},
        "budget_chars": 40,
        "questions": 2,
    }


def test_spans_for_a_number_of_passages(spans):
    found = [ShownPassage("a", 5, 25), ShownPassage("a", 5, 25), ShownPassage("a", 0, 10)]
    report = run_spans(spans, ingest=len, search=lambda _: found, budget_chars=1, passages=2)
    assert report.as_json() == {
        "metrics": {"recall": 10 / 20, "precision": 10 / 40, "iou": 10 / 50},
        "budget_chars": None,
        "questions": 2,
        "passages": 2,
    }


def test_spans_of_an_engine_that_finds_nothing(spans):
    report = run_spans(spans, ingest=len, search=lambda _: [])
    assert report.metrics == {"recall": 0, "precision": 0, "iou": 0}


@pytest.mark.parametrize("limits", [{"budget_chars": 0}, {"passages": 0}])
def test_a_limit_of_nothing_is_refused(spans, limits):
    with pytest.raises(UsageError, match="at least 1"):
        run_spans(spans, ingest=len, search=lambda _: [], **limits)


@given(passages, st.integers(1, 100))
def test_what_fits_is_the_longest_beginning_within_the_budget(found, budget):
    shown = fitting(found, budget)
    assert shown == found[: len(shown)]
    assert sum(passage.end - passage.start for passage in shown) <= budget
    if len(shown) < len(found):
        assert sum(passage.end - passage.start for passage in found[: len(shown) + 1]) > budget
