"""``recollect eval``: data sets of every kind, measured as a person measures them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.documents.made_files import pdf

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

CORPUS = {
    "d1": ("Leave", "Every employee has thirty days of annual leave."),
    "d2": ("", "Salaries are paid on the twenty-fifth of each month."),
    "d3": (None, "ERR-4012 means\u2028that too many sessions are open."),
    4: ("", ""),
}
QUERIES = {
    "q1": "annual leave of an employee",
    "q2": "salaries paid each month",
    "q3": "ERR-4012",
    "q4": "no judgements",
}
JUDGEMENTS = [("q1", "d1", 2), ("q2", "d2", 1), ("q3", "d3", 1), ("q3", "d1", 0)]
TEXT = "# Leave\r\n\r\nÉvery employee has thirty days of leave.\r\n\r\n# Pay\r\n\r\nSalaries are paid monthly.\r\n"
PAGES = {
    "leave.pdf": ["Every employee has thirty days of annual leave.", "Whoever is ill brings a certificate."],
    "pay.pdf": ["Salaries are paid on the 25th.", "Travel is paid within a month.", "Annual leave is paid as well."],
}
ASKED = [
    ("When are salaries paid?", "pay.pdf", [1, 2]),
    ("Every employee has thirty days of annual leave", "pay.pdf", [3]),
    ("certificate", "leave.pdf", [1]),
    ("anything", "broken.pdf", [1]),
]


def lines(path: Path, *records: object) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    folder.mkdir()
    lines(folder / "corpus.jsonl", *({"_id": k, "title": title, "text": t} for k, (title, t) in CORPUS.items()))
    lines(folder / "queries.jsonl", *({"_id": key, "text": text} for key, text in QUERIES.items()))
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in JUDGEMENTS)]
    (folder / "qrels.tsv").write_text("\n".join(rows))
    return folder


@pytest.fixture
def spans(tmp_path: Path) -> Path:
    folder = tmp_path / "spans"
    (folder / "corpora").mkdir(parents=True)
    (folder / "corpora/rules.md").write_bytes(TEXT.encode())
    (folder / "corpora/.hidden").write_bytes(b"\xff")
    start, end = TEXT.index("Évery"), TEXT.index("\r\n\r\n# Pay")
    asked = {"id": 1, "question": "How many days of leave has an employee?", "document": "rules.md"}
    lines(folder / "questions.jsonl", asked | {"references": [{"start": start, "end": end}]})
    return folder


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    (folder / "pdf").mkdir(parents=True)
    for name, texts in PAGES.items():
        (folder / "pdf" / name).write_bytes(pdf([[text] for text in texts]))
    (folder / "pdf/broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    lines(folder / "questions.jsonl", *({"question": q, "document": d, "pages": p} for q, d, p in ASKED))
    return folder


def talk(name: str, place: str, **changes: object) -> dict[str, object]:
    turns = [
        {"id": "1", "speaker": "Ada", "text": f"I moved to {place} with my sister."},
        {"id": 2, "speaker": "Ben", "text": ""},
        {"id": "3", "speaker": "Ada", "text": "Close to the castle."},
    ]
    questions = [
        {"question": f"Who moved to {place}?", "category": 1, "evidence": ["1", "1", "nowhere"]},
        {"question": "Who is Cleo?", "evidence": []},
    ]
    sessions = [{"id": f"{name}-1", "date": "1:56 pm on 8 May, 2023", "turns": turns}]
    return {"id": name, "sessions": sessions, "questions": questions, **changes}


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    file = tmp_path / "talks.json"
    undated = {"id": 2, "date": "some day", "turns": [{"id": 7, "speaker": "Ada", "text": "Hello."}]}
    oslo = talk("second", "Oslo")
    oslo["sessions"] = [*oslo["sessions"], undated]
    file.write_text(json.dumps([talk("first", "Lisbon"), oslo]))
    return file


def nothing_left(recollect) -> bool:
    return recollect("collections", "list", "--json").json["items"] == []


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
def test_beir(recollect, beir, mode):
    report = recollect("eval", "beir", beir, "--mode", mode, "--json").json
    assert list(report) == ["metrics", "queries", "documents", "seconds", "query_ms"]
    assert list(report["metrics"]) == ["nDCG@10", "R@100", "RR@10", "AP"]
    assert 0 < report["query_ms"]["p50"] <= report["query_ms"]["p95"]
    assert (report["queries"], report["documents"]) == (3, 3)
    if mode == "lexical":
        assert report["metrics"] == {"nDCG@10": 1, "R@100": 1, "RR@10": 1, "AP": 1}
    assert nothing_left(recollect)


def test_beir_keeps_its_collection_when_told_to(recollect, beir):
    # Judgements in a folder of their own, in TREC's form.
    (beir / "qrels.tsv").unlink()
    (beir / "qrels").mkdir()
    (beir / "qrels/test.tsv").write_text("\ufeffq1 0 d1 2\r\n\r\nq2 0 d2 1.0\n", encoding="utf-8")
    printed = recollect("eval", "beir", beir, "--keep", "-c", "kept", "--chunk-size", "20").out
    assert "nDCG@10" in printed and "2 queries on 3 documents" in printed
    kept = recollect("collections", "list", "--json").json["items"]
    assert [(c["name"], c["documents"], c["chunking"]["size"]) for c in kept] == [("kept", 3, 20)]
    assert "already" in recollect("eval", "beir", beir, "-c", "kept", status=1).err


def test_spans(recollect, spans):
    report = recollect("eval", "spans", spans, "--json").json
    assert list(report) == ["metrics", "budget_chars", "questions"]
    assert list(report["metrics"]) == ["recall", "precision", "iou"]
    assert (report["metrics"]["recall"], report["budget_chars"], report["questions"]) == (1, 4000, 1)
    small = recollect("eval", "spans", spans, "--passages", "1", "--chunk-size", "45", "--json").json
    assert 0 < small["metrics"]["recall"] <= 1 and small["budget_chars"] is None
    assert recollect("eval", "spans", spans, "--budget", "1", "--json").json["metrics"]["recall"] == 0
    assert "1 questions, 2 passages each" in recollect("eval", "spans", spans, "--passages", "2").out


def test_pages_are_looked_for_in_their_document_and_in_all(recollect, pages):
    outcome = recollect("eval", "pages", pages, "--mode", "lexical", "--json")
    report = outcome.json
    assert list(report) == ["metrics", "questions", "documents", "chunks", "seconds"]
    assert list(report["metrics"]) == ["document", "collection"]
    assert (report["questions"], report["documents"]) == (4, 2) and report["chunks"] >= 2
    for figures in report["metrics"].values():
        assert list(figures) == ["hit@1", "hit@5", "hit@10"]
        assert 0 <= figures["hit@1"] <= figures["hit@5"] <= figures["hit@10"] < 1, "of one question there is no file"
    assert report["metrics"]["collection"]["hit@1"] < report["metrics"]["document"]["hit@1"]
    assert "broken.pdf" in outcome.err and nothing_left(recollect)
    printed = recollect("eval", "pages", pages, "--mode", "lexical").out
    assert "in its document" in printed and "in all documents" in printed and "hit@10" in printed
    assert "4 questions on 2 documents" in printed


def test_turns_are_remembered_asked_for_and_removed(recollect, talks):
    report = recollect("eval", "memory", talks, "--json").json
    assert list(report["metrics"]) == [
        "evidence_recall@5",
        "evidence_recall@10",
        "evidence_recall@20",
        "session_hit@10",
    ]
    assert list(report["metrics"].values()) == [0.5, 0.5, 0.5, 1.0]
    assert report["by_category"] == {"1": report["metrics"]} and set(report["by_conversation"]) == {"first", "second"}
    assert (report["questions"], report["turns"], report["unanswered"], report["unknown_evidence"]) == (2, 5, 2, 2)
    shown = recollect("eval", "memory", talks, "--mode", "lexical")
    for words in ("recall@10", "2 questions on 5 turns", "2 questions that name no evidence", "2 pieces of evidence"):
        assert words in shown.out
    assert "1 sessions have no date" in shown.err
    assert recollect("sessions", "list", "--json").json["sessions"] == []


def test_every_kind_is_judged_and_compared_with_what_was_saved(recollect, beir, spans, pages, talks, tmp_path):
    saved = tmp_path / "baseline.json"
    first = recollect("eval", "all", beir, spans, pages, talks, "--mode", "lexical", "--save", saved, "--json").json
    assert list(first) == ["sets", "worst", "seconds"] and first["worst"] is None
    assert [(one["set"], one["kind"], one["metric"], one["value"]) for one in first["sets"]] == [
        ("beir", "beir", "nDCG@10", 1),
        ("spans", "spans", "recall, 5 passages", 1),
        ("spans", "spans", "IoU, 5 passages", pytest.approx(41 / 86, abs=0.1)),
        ("spans", "spans", "recall, 4,000 characters", 1),
        ("pages", "pages", "hit@10, document", 0.75),
        ("pages", "pages", "hit@10, collection", 0.75),
        ("talks.json", "memory", "evidence_recall@10", 0.5),
        ("talks.json", "memory", "session_hit@10", 1),
    ]
    # A better past: this is a loss then, and the worst of them is told, and can be refused.
    before = json.loads(saved.read_text())
    before["sets"]["beir"]["nDCG@10"] = 1.25
    before["sets"]["spans"]["recall, 5 passages"] = 1.1
    saved.write_text(json.dumps(before))
    some = (f"beir={beir}", spans, "--mode", "lexical", "--baseline", saved)
    second = recollect("eval", "all", *some, "--json").json
    assert second["worst"] == {"set": "beir", "metric": "nDCG@10", "change": pytest.approx(-0.2)}
    printed = recollect("eval", "all", *some, "--most-loss", "19", status=1).out
    assert "worst: -20.0 % (beir, nDCG@10)" in printed
    # What is saved beside other sets leaves them alone.
    recollect("eval", "all", beir, "--mode", "lexical", "--save", saved, "--baseline", saved, "--most-loss", "21")
    after = json.loads(saved.read_text())["sets"]
    assert after["beir"] == {"nDCG@10": 1} and set(after) == set(before["sets"])


def test_what_is_no_data_set_is_named(recollect, beir, spans, tmp_path):
    def refused(*arguments):
        return " ".join(recollect("eval", *arguments, status=None).err.split())

    (tmp_path / "empty").mkdir()
    assert "is no data set" in refused("all", tmp_path / "empty")
    assert "does not exist" in refused("all", tmp_path / "nowhere")
    assert "Two data sets are called 'beir'" in refused("all", beir, f"beir={spans}")
    assert "--save" in refused("all", beir, "--baseline", tmp_path / "none.json")
    (tmp_path / "other.json").write_text("[]")
    assert "is no baseline" in refused("all", beir, "--baseline", tmp_path / "other.json")
    assert "--baseline" in refused("all", beir, "--most-loss", "1")
    for kind in ("beir", "spans", "pages"):
        assert "nowhere is not a folder" in refused(kind, tmp_path / "nowhere")
    assert "pdf is not a folder" in refused("pages", tmp_path)
    assert "missing.json is missing" in refused("memory", tmp_path / "missing.json")
    for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"):
        content = (beir / name).read_bytes()
        (beir / name).unlink()
        assert f"{name}" in refused("beir", beir) and "is missing" in refused("beir", beir)
        (beir / name).write_bytes(content)


@pytest.mark.parametrize(
    ("kind", "file", "wrong"),
    [
        (
            "beir",
            "queries.jsonl",
            [
                (b'{"_id": "q1", "text": "a"}\n{broken\n', "queries.jsonl:2: Invalid JSON"),
                (b"[" * 100_000, "queries.jsonl:1: Invalid JSON"),
                (b"[1]\n", "queries.jsonl:1: must be a mapping"),
                (b'\n{"_id": "q1"}\n', "queries.jsonl:2: text: is missing"),
                (b'{"_id": "q1", "text": 3}\n', "queries.jsonl:1: text: must be text: put '3' in quotes"),
                (b'{"_id": "", "text": "a"}\n', "queries.jsonl:1: _id: is empty"),
                (b'{"_id": "q1", "text": "a"}\n' * 2, "queries.jsonl:2: the query 'q1' is there twice"),
                (b'{"_id": "q1", "text": "\xff"}\n', "queries.jsonl:1: not UTF-8"),
                (b'{"_id": "q7", "text": "a"}\n', "no query of queries.jsonl has judgements"),
            ],
        ),
        (
            "beir",
            "qrels.tsv",
            [
                (b"query-id\tcorpus-id\tscore\nq1\td1\tgood\n", "qrels.tsv:2: expected"),
                (b"q1\td1\t1\nq1\td1\n", "qrels.tsv:2: expected"),
                (b"q1\td1\t1\nq1\td1\t0.5\n", "qrels.tsv:2: expected"),
                (b"q1\td1\t1\nq1\td1\tinf\n", "qrels.tsv:2: expected"),
            ],
        ),
        ("beir", "corpus.jsonl", [(b'{"_id": "d1", "text": "a"}\n{"text": "b"}\n', "corpus.jsonl:2: _id: is missing")]),
        ("spans", "corpora/rules.md", [(b"\xff\xfe", "rules.md: not UTF-8")]),
        ("spans", "questions.jsonl", [(b"", "no question")]),
        (
            "pages",
            "questions.jsonl",
            [
                (b'{"question": "q", "document": "none.pdf", "pages": [1]}', ":1: the document 'none.pdf' is not in"),
                (b'{"question": "q", "document": "../questions.jsonl", "pages": [1]}', "is not in"),
                (b'{"question": "q", "document": "pay.pdf", "pages": [0]}', "pages.0: Input should be greater than"),
                (b'{"question": "q", "document": "pay.pdf", "pages": []}', "pages: there must be one at least"),
                (b'{"document": "pay.pdf", "pages": [1]}', "question: is missing"),
                (b"", "no question"),
            ],
        ),
    ],
)
def test_a_line_that_is_wrong_is_named(recollect, request, kind, file, wrong):
    folder = request.getfixturevalue(kind)
    for content, complaint in wrong:
        (folder / file).write_bytes(content)
        assert complaint in " ".join(recollect("eval", kind, folder, status=2).err.split()), content
    assert nothing_left(recollect)


def test_a_question_about_characters_that_are_not_there_is_named(recollect, spans):
    good = json.loads((spans / "questions.jsonl").read_text())
    for change, complaint in [
        ({"document": "b.md"}, "questions.jsonl:1: the document 'b.md' is not in corpora/"),
        ({"references": []}, "there must be one at least"),
        ({"references": "0-3"}, "references: must be a list"),
        ({"references": [{"start": 3, "end": 800}]}, "3 to 800 is no range of characters"),
        ({"references": [{"start": 3, "end": 3}]}, "3 to 3 is no range of characters"),
        ({"references": [{"start": -1, "end": 3}]}, "references.0.start: Input should be greater than"),
        ({"references": [{"start": True, "end": 3}]}, "references.0.start: Input should be a valid integer"),
        ({"question": None}, "question: must be text"),
    ]:
        lines(spans / "questions.jsonl", good | change)
        assert complaint in " ".join(recollect("eval", "spans", spans, status=2).err.split())


def test_a_file_of_conversations_that_is_wrong_says_where(recollect, tmp_path):
    file = tmp_path / "memory.json"
    turn = {"id": "1", "speaker": "A", "text": "a"}

    def broken(**changes: object) -> str:
        return json.dumps([talk("c", "Oslo", **changes)])

    for content, complaint in [
        ("{", "Invalid JSON"),
        ("[]", "no question names the turns"),
        ('{"conversations": {}}', "conversations: must be a list"),
        ('["x"]', "conversations.0: must be a mapping"),
        (broken(sessions=None), "conversations.0.sessions: must be a list"),
        (broken(questions=[{"question": "x", "evidence": "1"}]), "questions.0.evidence: must be a list"),
        (broken(questions=[{"question": " ", "evidence": []}]), "questions.0.question: is empty"),
        (broken(id=""), "conversations.0.id: is empty"),
        (broken(sessions=[{"id": "s", "turns": [turn, turn]}]), "two turns have the id '1'"),
        (broken(sessions=[{"id": "s", "turns": [{"id": "1", "text": "a"}]}]), "turns.0.speaker: is missing"),
        (json.dumps([talk("c", "Oslo")] * 2), "two conversations have the same id"),
    ]:
        file.write_text(content, encoding="utf-8")
        assert complaint in " ".join(recollect("eval", "memory", file, status=2).err.split()), content
    file.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in recollect("eval", "memory", file, status=2).err


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the conversations beside the checkout")
def test_evidence_is_found_in_a_long_conversation(recollect_with_model, tmp_path: Path):
    # One of the five: 19 sessions of 369 turns, and 105 questions.
    conversations = json.loads((SHARED / "conversations/locomo-dev.json").read_text(encoding="utf-8"))["conversations"]
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"conversations": [one for one in conversations if one["id"] == "conv-30"]}))
    figures = recollect_with_model("eval", "memory", path, "--json").json
    assert figures["questions"] == 105
    assert figures["metrics"]["evidence_recall@10"] >= 0.80
    assert figures["metrics"]["session_hit@10"] >= 0.98
