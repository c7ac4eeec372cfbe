"""Permissions, as a person meets them: grants, other people's eyes, and test cases as every persona."""

from __future__ import annotations

import json

import pytest

EVE = ("--as", "eve", "--department", "it", "--roles", "clerk,driver", "--groups", "project-x")
ANN = ("--as", "ann", "--department", "hr")


@pytest.fixture
def guarded(recollect, office):
    """The office, where pay is for its department and the errors are for nobody but a group."""
    recollect("ingest", office)
    recollect("grants", "add", "--who", "department:hr", "--only", "hr/pay.txt")
    recollect("grants", "add", "--who", "group:project-x", "--only", "it/errors.md")
    return recollect


def sources(recollect, *arguments: str) -> set[str]:
    return {one["source"] for one in recollect("query", *arguments, "--json").json["results"]}


def test_query_and_ask_as_somebody_else(guarded):
    assert {"hr/pay.txt", "it/errors.md"} <= sources(guarded, "salaries and sessions")
    assert "hr/pay.txt" in sources(guarded, "salaries and sessions", *ANN)
    assert "it/errors.md" not in sources(guarded, "salaries and sessions", *ANN)
    assert sources(guarded, "salaries and sessions", *EVE) == {"hr/leave.md", "it/errors.md", "readme.txt"}
    # Without --as the department filters, as ever.
    assert sources(guarded, "salaries and sessions", "--department", "hr") == {"hr/leave.md", "hr/pay.txt"}
    asked = guarded("ask", "When are salaries paid?", *EVE, "--json").json
    assert "25th" not in json.dumps(asked)
    assert "25th" in guarded("ask", "When are salaries paid?", *ANN, "--json").json["answer"]
    assert "Salaries" not in guarded("query", "salaries paid", *EVE, "--context").out
    assert "Salaries" in guarded("query", "salaries paid", *ANN, "--context").out


def test_everything_that_somebody_may_read_at_once(guarded):
    (guarded.folder / "board.jsonl").write_text('{"content": "Salaries of the board are paid late.", "source": "b"}')
    guarded("import", "board.jsonl", "--collection", "board")
    guarded("grants", "collection", "--collection", "board", "--reader", "role:driver")

    def found(*options: str) -> set[tuple[str, str]]:
        results = guarded("query", "salaries", "--everywhere", "--json", *options).json["results"]
        return {(one["collection"], one["source"]) for one in results}

    assert {("board", "b"), ("default", "hr/pay.txt")} <= found()
    assert ("board", "b") in found(*EVE) and ("default", "hr/pay.txt") not in found(*EVE)
    assert ("default", "hr/pay.txt") in found(*ANN) and ("board", "b") not in found(*ANN)
    assert "board" in guarded("query", "salaries", "--everywhere").out
    assert "--everywhere" in guarded("query", "salaries", "--everywhere", "--collection", "board", status=2).err


def test_grants_are_listed_changed_and_taken_back(guarded):
    (pay,) = guarded("grants", "list", "hr/pay.txt", "--json").json["documents"]
    assert (pay["grants"], pay["denials"], pay["inherited"]) == (["department:hr"], [], False)
    told = guarded("grants", "deny", "--who", "user:ann", "hr/pay.txt", "--json").json
    assert (told["changed"], told["documents"][0]["denials"]) == (1, ["user:ann"])
    assert "hr/pay.txt" not in sources(guarded, "salaries", *ANN)
    assert "user:ann" in guarded("grants", "list", "hr/pay.txt").out
    guarded("grants", "remove", "--who", "!user:ann", "hr/pay.txt")
    assert "hr/pay.txt" in sources(guarded, "salaries", *ANN)
    guarded("grants", "remove", "--who", "*", "--default")
    assert sources(guarded, "salaries", *ANN) == {"hr/pay.txt"}
    owners = guarded("grants", "collection", "--owner", "user:eve", "--reader", "department:hr", "--json").json
    assert (owners["owners"], owners["readers"], owners["default"]["grants"]) == (["user:eve"], ["department:hr"], [])
    assert "hr/pay.txt" in sources(guarded, "salaries", *EVE)
    assert sources(guarded, "salaries", "--as", "bob") == set()
    assert guarded("grants", "list").out.count("eve") == 1


def test_grants_of_an_ingest_and_of_a_source(guarded, office):
    guarded("ingest", office, "--grant", "role:boss", "--grant", "!user:ann")
    assert sources(guarded, "salaries", *ANN) == set()
    assert len(sources(guarded, "salaries", "--as", "x", "--roles", "boss")) == 4
    told = guarded("grants", "add", "--who", "user:x", "--source", str(office.resolve()), "--json").json
    assert told["changed"] == 4
    assert len(sources(guarded, "salaries", "--as", "x")) == 4


def test_what_cannot_be_meant_is_refused(guarded):
    for arguments, complaint in [
        (["query", "pay", "--roles", "boss"], "--as"),
        (["query", "pay", "--as", " "], "user_id"),
        (["query", "pay", "--as", "a", "--department", "hr", "--department", "it"], "one"),
        (["grants", "add", "--who", "boss", "hr/pay.txt"], "role:NAME"),
        (["grants", "add", "--who", "role:boss"], "--source"),
        (["grants", "add", "--who", "role:boss", "--default", "hr/pay.txt"], "one of them"),
        (["ingest", "docs", "--grant", "boss"], "--grant"),
    ]:
        assert complaint in guarded(*arguments, status=2).err


def test_what_does_not_exist_is_named(guarded):
    assert "nothing.txt" in guarded("grants", "deny", "--who", "*", "nothing.txt", status=1).err
    assert "nowhere" in guarded("grants", "list", "--collection", "nowhere", status=1).err


CASES = """
cases:
- {name: leave, query: "How many days of annual leave?", must_have: [{text: 30 days}]}
- {name: pay, query: "When are salaries paid?", must_have: [hr/pay.txt], answerable: true}
- {name: moon, query: "Who walked on the moon?", answerable: false}
"""
PERSONAS = """
personas:
  ann: {user: ann, department: hr}
  eve: {user: eve, department: it}
"""


def test_cases_as_every_persona(guarded, office):
    (guarded.folder / "cases.yaml").write_text(CASES)
    (guarded.folder / "personas.yaml").write_text(PERSONAS)
    shown = guarded("rag-test", "cases.yaml", "--as-each", "personas.yaml")
    assert "nobody was shown" in shown.out
    result = guarded("rag-test", "cases.yaml", "--as-each", "personas.yaml", "--json").json
    assert (result["passed"], result["leaks"], result["leaked"]) == (True, 0, [])
    ann, eve = result["personas"]
    assert (ann["name"], ann["readable_documents"], ann["cases_within_rights"], ann["recall"]) == ("ann", 3, 2, 1.0)
    assert (eve["readable_documents"], eve["cases_within_rights"], eve["recall"]) == (2, 1, 1.0)
    assert eve["withheld"] > ann["withheld"] > 0

    # Where permissions are not enforced, they leak, and the command says so.
    loose = guarded.environment | {"RECOLLECT_ACCESS__MODE": "preference"}
    leaky = type(guarded)(guarded.folder, loose)(
        "rag-test", "cases.yaml", "--as-each", "personas.yaml", "--json", status=1
    )
    assert not leaky.json["passed"]
    assert {(one["persona"], one["source"]) for one in leaky.json["leaked"]} == {
        ("ann", "it/errors.md"), ("eve", "it/errors.md"), ("eve", "hr/pay.txt")
    }  # fmt: skip
    assert {one["place"] for one in leaky.json["leaked"]} == {"search", "answer"}


def test_personas_bring_grants_for_a_folder_that_is_ingested_for_the_test(recollect, office):
    (recollect.folder / "cases.yaml").write_text(CASES)
    (recollect.folder / "personas.yaml").write_text(f"{PERSONAS}grants:\n  hr/*: department:hr\n  it/*: '!user:ann'\n")
    options = ("rag-test", "cases.yaml", "--as-each", "personas.yaml")
    ann, eve = recollect(*options, "--ingest", office, "--json").json["personas"]
    assert [one["readable_documents"] for one in (ann, eve)] == [3, 2]
    assert recollect("collections", "list", "--json").json["items"] == []
    assert "--ingest" in recollect(*options, status=2).err
    assert "--runs" in recollect(*options, "--ingest", office, "--runs", "2", status=2).err
    (recollect.folder / "personas.yaml").write_text(f"{PERSONAS}grants:\n  nothing/*: '*'\n")
    assert "nothing/*" in recollect(*options, "--ingest", office, status=2).err


def test_nobody_takes_over_by_his_commands(guarded, office):
    before = guarded("documents", "list", "--json").json["items"]
    assert guarded("ingest", office, *EVE, status=1).err.count("writer") == 1
    guarded("grants", "collection", "--writer", "user:eve")
    told = guarded("ingest", office, *EVE, "--json").json
    assert (told["added"], told["updated"], told["unchanged"], told["failed"]) == (len(before), 0, 0, 0)
    guarded("documents", "delete", "hr/pay.txt", *EVE)  # her own of that name
    assert "Salaries" in guarded("documents", "show", "hr/pay.txt", *ANN).out
    assert "may not change" in guarded("documents", "delete", "hr/pay.txt", *ANN, status=1).err
    after = guarded("documents", "list", "--json").json["items"]
    assert [one for one in after if one["document_id"] in {old["document_id"] for old in before}] == before


def test_a_folder_that_is_ingested_into_a_store_that_was_imported_opens_nothing(recollect, clone, write):
    docs = write({"pay.txt": "Salaries are paid on the 25th.", "readme.txt": "Welcome."})
    recollect("ingest", docs)
    recollect("grants", "add", "--who", "role:clerk", "--only", "pay.txt")
    recollect("grants", "deny", "--who", "user:eve", "pay.txt")
    recollect("export", "all.jsonl")
    with clone() as dsn:
        other = type(recollect)(recollect.folder, recollect.environment | {"RECOLLECT_DSN": dsn})
        assert other("import", "all.jsonl", "--json").json["added"] == 2
        assert other("ingest", docs, "--json").json["updated"] == 2
        assert len(other("documents", "list", "--json").json["items"]) == 2
        assert sources(other, "salaries", *EVE) == {"readme.txt"}
        assert "25th" not in other("query", "salaries", "--as", "sam", "--json").out
        assert "25th" in other("query", "salaries", "--as", "ann", "--roles", "clerk", "--json").out
