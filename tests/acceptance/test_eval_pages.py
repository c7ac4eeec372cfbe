"""``recollect eval pages`` on files that are made here, and on filings where they are."""

from __future__ import annotations

import json

import pytest

from unit.documents.made_files import pdf

PAGES = {
    "leave.pdf": ["Every employee has thirty days of annual leave.", "Whoever is ill brings a certificate."],
    "pay.pdf": ["Salaries are paid on the 25th.", "Travel is paid within a month.", "Annual leave is paid as well."],
}


@pytest.fixture
def folder(tmp_path):
    files = tmp_path / "set/pdf"
    files.mkdir(parents=True)
    for name, pages in PAGES.items():
        (files / name).write_bytes(pdf([[page] for page in pages]))
    return files.parent


def ask(folder, *questions):
    lines = (json.dumps({"question": text, "document": name, "pages": pages}) for text, name, pages in questions)
    (folder / "questions.jsonl").write_text("\n".join(lines))


def test_pages_are_found_in_their_document_and_among_all(recollect, folder):
    ask(
        folder,
        ("When are salaries paid?", "pay.pdf", [1]),
        # All words of it stand in the other document, on a page that nobody asked for.
        ("Every employee has thirty days of annual leave", "pay.pdf", [3]),
        ("certificate", "leave.pdf", [1]),
    )
    report = recollect("eval", "pages", folder, "--mode", "lexical", "--json").json
    assert list(report) == ["metrics", "questions", "documents", "chunks", "seconds"]
    assert list(report["metrics"]) == ["document", "collection"]
    assert (report["questions"], report["documents"]) == (3, 2) and report["chunks"] >= 2
    for figures in report["metrics"].values():
        assert list(figures) == ["hit@1", "hit@5", "hit@10"]
        assert 0 <= figures["hit@1"] <= figures["hit@5"] <= figures["hit@10"] <= 1
    assert report["metrics"]["collection"]["hit@1"] < report["metrics"]["document"]["hit@1"]
    assert [one["name"] for one in recollect("collections", "list", "--json").json["collections"]] == []


def test_what_it_prints_is_a_table(recollect, folder):
    ask(folder, ("When are salaries paid?", "pay.pdf", [1, 2]))
    printed = recollect("eval", "pages", folder, "--mode", "lexical").out
    assert "in its document" in printed and "in all documents" in printed and "hit@10" in printed
    assert "1 questions on 2 documents" in printed


def test_a_file_that_cannot_be_read_is_told(recollect, folder):
    (folder / "pdf/broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    ask(folder, ("When are salaries paid?", "broken.pdf", [1]))
    outcome = recollect("eval", "pages", folder, "--mode", "lexical", "--json")
    assert "broken.pdf" in outcome.err
    assert outcome.json["documents"] == 2 and outcome.json["metrics"]["document"]["hit@10"] == 0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"question": "q", "document": "none.pdf", "pages": [1]}', "questions.jsonl:1: the document 'none.pdf'"),
        ('{"question": "q", "document": "../questions.jsonl", "pages": [1]}', "is not in"),
        ('{"question": "q", "document": "pay.pdf", "pages": [0]}', "whole number from 1"),
        ('{"question": "q", "document": "pay.pdf", "pages": []}', "at least one"),
        ('{"document": "pay.pdf", "pages": [1]}', "no 'question'"),
        ("pay.pdf", "not a line of JSON"),
        ("", "no question"),
    ],
)
def test_a_line_that_is_wrong_is_named(recollect, folder, line, says):
    (folder / "questions.jsonl").write_text(line)
    assert says in recollect("eval", "pages", folder, status=2).err.replace("\n", "")


def test_a_folder_without_files_is_named(recollect, tmp_path):
    assert "pdf is not a folder" in recollect("eval", "pages", tmp_path, status=1).err.replace("\n", "")
