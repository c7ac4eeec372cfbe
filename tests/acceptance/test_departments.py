"""Whatever names a document in JSON says its department, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

LEAVE = "Every employee working five days a week is entitled to {} days of paid annual leave per calendar year.\n"
FILES = {
    "hr/leave-2023.md": f"# Leave\n\n{LEAVE.format(28)}",
    "hr/leave-2024.md": f"# Leave\n\n{LEAVE.format(30)}",
    "it/errors.md": "# Errors\n\nERR-4012 means that too many sessions are open.\n",
    "readme.txt": "This folder holds the rules of the office.\n",
}
CASES = """
cases:
- {name: leave, query: annual leave of an employee, must_have: [hr/leave-2024.md], answerable: true}
"""
PERSONAS = "personas: {eve: {user: eve, department: it}}"

# Three kinds of output name something like a document and no department. Receipts and the audit hold ids, and nothing
# of what was erased. `ingest` and `import` name files that became no document. `eval make` writes test cases in the
# form that `rag-test` reads, where a source is what to look for.


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _objects(one)


def _names_a_document(one: dict[str, Any]) -> bool:
    # A fact is a source of its own (`fact:7`), and stands in no document.
    named = "document_id" in one or isinstance(one.get("document"), str) or ("source" in one and "title" in one)
    return named and "fact" not in one


def _departments(told: Any) -> list[str | None]:
    """Of every document that is named; fails where one is named without."""
    named = [one for one in _objects(told) if _names_a_document(one)]
    assert [one for one in named if "department" not in one] == []
    return [one["department"] for one in named]


@pytest.fixture
def filled(recollect, write):
    """Two editions of one document, two versions of another, a session with a document, a turn, and test cases."""
    docs = write(FILES)
    recollect("ingest", docs)
    (docs / "it" / "errors.md").write_text("# Errors\n\nERR-4012 means that a session hangs.\n", encoding="utf-8")
    recollect("ingest", docs)
    recollect("sessions", "create", "chat")
    recollect("ingest", docs, "--session", "chat")
    recollect("remember", "chat", "My annual leave begins in July.", "--user", "ada")
    (recollect.folder / "cases.yaml").write_text(CASES, encoding="utf-8")
    (recollect.folder / "personas.yaml").write_text(PERSONAS, encoding="utf-8")
    return recollect


QUESTION = "How many days of annual leave has an employee?"
COMMANDS: list[tuple[tuple[str, ...], set[str | None]]] = [
    (("query", QUESTION), {"hr", "it", None}),
    (("query", QUESTION, "--everywhere"), {"hr", "it", None}),
    (("query", QUESTION, "--session", "chat"), {"hr", "it", None}),
    (("query", QUESTION, "--context"), {"hr", "it", None}),
    (("query", QUESTION, "--as-of", "2100-01-01"), {"hr", "it", None}),
    (
        ("ask", "Every employee is entitled to how many days of paid annual leave per calendar year?"),
        {"hr", "it", None},
    ),
    (("ask", "Who walked on the moon?", "--explain"), {"hr", "it", None}),
    (("context", QUESTION, "--user", "ada"), {"hr", "it", None}),
    (("why-not", QUESTION, "it/errors.md"), {"it"}),
    (("diff", QUESTION, "--from", "2001-01-01"), {"hr", "it", None}),
    (("documents", "list"), {"hr", "it", None}),
    (("documents", "show", "it/errors.md"), {"it"}),
    (("documents", "history", "it/errors.md"), {"it"}),
    (("documents", "diff", "it/errors.md"), {"it"}),
    (("documents", "restore", "it/errors.md", "1"), {"it"}),
    (("documents", "ttl", "it/errors.md", "30d"), {"it"}),
    (("grants", "list", "hr/leave-2023.md", "readme.txt"), {"hr", None}),
    (("grants", "add", "--who", "user:ann", "it/errors.md"), {"it"}),
    (("grants", "deny", "--who", "user:ann", "it/errors.md"), {"it"}),
    (("grants", "remove", "--who", "user:ann", "it/errors.md"), {"it"}),
    (("sessions", "show", "chat"), {"hr", "it", None}),
    (("sessions", "list"), set()),
    (("status",), set()),
    (("collections", "list"), set()),
    (("recall", "leave", "--user", "ada"), set()),
    (("facts", "list"), set()),
    (("rag-test", "cases.yaml"), set()),
    (("eval", "make", "--out", "drafted.yaml"), set()),
    (("ingest", "docs"), set()),
    (("documents", "delete", "it/errors.md"), set()),
]


def test_every_command_says_the_department_of_the_documents_it_names(filled):
    for arguments, expected in COMMANDS:
        told = filled(*arguments, "--json").json
        found = set(_departments(told))
        # Which of the documents a search finds is not the subject here.
        assert found <= expected and bool(found) == bool(expected), (arguments, found)


def test_a_newer_document_and_test_cases_have_their_departments(filled):
    results = filled("query", QUESTION, "--json").json["results"]
    (note,) = next(one["notes"] for one in results if one["source"] == "hr/leave-2023.md")
    assert (note["source"], note["department"]) == ("hr/leave-2024.md", "hr")
    (case,) = filled("rag-test", "cases.yaml", "--json").json["cases"]
    assert dict(zip(case["found"], case["departments"], strict=True))["hr/leave-2024.md"] == "hr"

    filled("grants", "add", "--who", "department:hr", "--only", "hr/leave-2024.md")
    loose = type(filled)(filled.folder, filled.environment | {"RECOLLECT_ACCESS__MODE": "preference"})
    told = loose("rag-test", "cases.yaml", "--as-each", "personas.yaml", "--json", status=1).json
    assert {(one["source"], one["department"]) for one in told["leaked"]} == {("hr/leave-2024.md", "hr")}
    (persona,) = told["personas"]
    (case,) = persona["results"]
    assert len(case["found"]) == len(case["departments"]) and "hr" in case["departments"]


def test_exports_and_imports_keep_departments(filled):
    filled("export", "all.jsonl")
    lines = [json.loads(line) for line in (filled.folder / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    exported = {line["source"]: line["department"] for line in lines}
    assert exported == {"hr/leave-2023.md": "hr", "hr/leave-2024.md": "hr", "it/errors.md": "it", "readme.txt": None}
    filled("import", "all.jsonl", "--collection", "copy")
    copies = filled("documents", "list", "--collection", "copy", "--json").json["items"]
    assert {one["source"]: one["department"] for one in copies} == exported


def test_receipts_and_the_audit_tell_no_department(filled):
    receipt = filled("documents", "erase", "it/errors.md", "readme.txt", "--yes", "--json")
    assert all(set(one) == {"document_id", "versions", "hashes"} for one in receipt.json["documents"])
    for told in (receipt, filled("documents", "receipts", "--json"), filled("audit", "list", "--json")):
        assert '"it"' not in told.out and "department" not in told.out
