from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.datasets import Query, load_beir, load_spans

SHARED = Path(__file__).resolve().parents[3] / "../shared/data"


def lines(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def beir(tmp_path):
    lines(
        tmp_path / "corpus.jsonl",
        {"_id": "d1", "title": "Leave", "text": "25 days"},
        {"_id": 2, "text": "line\u2028separator", "metadata": {}},
    )
    lines(tmp_path / "queries.jsonl", {"_id": "q1", "text": "how many days?"}, {"_id": "q2", "text": "unjudged"})
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t2\t0\nq9\td1\t1\n")
    return tmp_path


@pytest.fixture
def spans(tmp_path):
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "a.md").write_bytes("é\r\nüber".encode())
    lines(
        tmp_path / "questions.jsonl",
        {"id": "1", "question": "what?", "document": "a.md", "references": [{"start": 3, "end": 7}]},
    )
    return tmp_path


def test_a_beir_folder(beir):
    dataset = load_beir(beir)
    assert dataset.queries == (Query(query_id="q1", text="how many days?"),)
    assert dataset.judgements["q1"] == {"d1": 2, "2": 0}
    documents = list(dataset.documents())
    assert [(document.document_id, document.title, document.text) for document in documents] == [
        ("d1", "Leave", "25 days"),
        ("2", "", "line\u2028separator"),
    ]


@pytest.mark.parametrize(
    "qrels",
    [
        "q1\td1\t2\nq1\t2\t0\n",
        "q1 0 d1 2\nq1 0 2 0\n",
        "\ufeffquery-id\tcorpus-id\tscore\r\nq1\td1\t2\r\n\r\nq1\t2\t0.0",
    ],
)
def test_forms_of_judgements(beir, qrels):
    (beir / "qrels.tsv").write_text(qrels, encoding="utf-8", newline="")
    assert load_beir(beir).judgements == {"q1": {"d1": 2, "2": 0}}


def test_judgements_in_a_folder_of_their_own(beir):
    (beir / "qrels").mkdir()
    (beir / "qrels.tsv").rename(beir / "qrels" / "test.tsv")
    assert "q1" in load_beir(beir).judgements


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(beir, missing):
    (beir / missing).unlink()
    with pytest.raises(NotFoundError, match=missing):
        load_beir(beir)


def test_a_missing_folder_is_named(tmp_path):
    for load in (load_beir, load_spans):
        with pytest.raises(NotFoundError, match="nowhere"):
            load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("queries.jsonl", b'{"_id": "q1", "text": "a"}\n{broken\n', r"queries\.jsonl:2: not a line of JSON"),
        ("queries.jsonl", b"[1]\n", r"queries\.jsonl:1: expected a JSON object, found list"),
        ("queries.jsonl", b'\n{"_id": "q1"}\n', r"queries\.jsonl:2: no 'text'"),
        ("queries.jsonl", b'{"_id": "q1", "text": 3}\n', r"queries\.jsonl:1: 'text' must be text"),
        ("queries.jsonl", b'{"_id": "", "text": "a"}\n', r"queries\.jsonl:1: '_id'"),
        ("queries.jsonl", b'{"_id": "q1", "text": "a"}\n' * 2, r"queries\.jsonl:2: .* twice"),
        ("queries.jsonl", b'{"_id": "q1", "text": "\xff"}\n', r"queries\.jsonl:1: not UTF-8"),
        ("queries.jsonl", b"[" * 100_000, r"queries\.jsonl:1: not a line of JSON"),
        ("queries.jsonl", b'{"_id": "q7", "text": "a"}\n', "no query of queries.jsonl has judgements"),
        ("queries.jsonl", b"", "no query of queries.jsonl has judgements"),
        ("qrels.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\tgood\n", r"qrels\.tsv:2: expected"),
        ("qrels.tsv", b"q1\td1\t1\nq1\td1\n", r"qrels\.tsv:2: expected"),
        ("qrels.tsv", b"q1\td1\t1\nq1\td1\t0.5\n", r"qrels\.tsv:2: expected"),
        ("qrels.tsv", b"q1\td1\t1\nq1\td1\tinf\n", r"qrels\.tsv:2: expected"),
        ("corpus.jsonl", b'{"_id": "d1", "text": "a"}\n{"text": "b"}\n', r"corpus\.jsonl:2: no '_id'"),
    ],
)
def test_malformed_input_is_refused_with_file_and_line(beir, file, content, complaint):
    (beir / file).write_bytes(content)
    with pytest.raises(UsageError, match=complaint):
        list(load_beir(beir).documents())


def test_the_corpus_is_streamed(beir):
    with (beir / "corpus.jsonl").open("a") as file:
        file.write("{broken\n")
    documents = load_beir(beir).documents()
    assert next(documents).document_id == "d1"
    assert next(documents).document_id == "2"
    with pytest.raises(UsageError, match=r"corpus\.jsonl:3"):
        next(documents)


def test_a_span_folder_keeps_offsets(spans):
    (spans / "corpora" / ".hidden").write_bytes(b"\xff")
    dataset = load_spans(spans)
    assert dataset.documents == {"a.md": "é\r\nüber"}
    (question,) = dataset.questions
    start, end = question.references[0]
    assert dataset.documents[question.document][start:end] == "über"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"document": "b.md"}, r"questions\.jsonl:1: the document 'b.md' is not in corpora/"),
        ({"references": []}, "at least one"),
        ({"references": "0-3"}, "at least one"),
        ({"references": [{"start": 3, "end": 8}]}, "end <= 7"),
        ({"references": [{"start": 3, "end": 3}]}, "end <= 7"),
        ({"references": [{"start": -1, "end": 3}]}, "end <= 7"),
        ({"references": [{"start": True, "end": 3}]}, "end <= 7"),
        ({"references": [[0, 3]]}, "end <= 7"),
        ({"question": None}, "'question' must be text"),
    ],
)
def test_a_malformed_question_is_refused(spans, change, complaint):
    good = {"id": "1", "question": "what?", "document": "a.md", "references": [{"start": 3, "end": 7}]}
    lines(spans / "questions.jsonl", good | change)
    with pytest.raises(UsageError, match=complaint):
        load_spans(spans)


def test_span_folders_that_are_incomplete(spans):
    (spans / "questions.jsonl").write_text("")
    with pytest.raises(UsageError, match="no question"):
        load_spans(spans)
    (spans / "corpora" / "b.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"b\.md: not UTF-8"):
        load_spans(spans)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the development data is not beside the checkout")
def test_the_development_data():
    cranfield = load_beir(SHARED / "cranfield")
    assert len(cranfield.queries) == 225
    assert sum(1 for _ in cranfield.documents()) == 1400
    assert max(max(grades.values()) for grades in cranfield.judgements.values()) == 5
    chunking = load_spans(SHARED / "chunking")
    assert (len(chunking.documents), len(chunking.questions)) == (3, 229)
