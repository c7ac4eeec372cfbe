"""Test cases as every persona, against engines that keep the rules and engines that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from recollect.evaluation.case_files import CaseSearch, parse_suite
from recollect.evaluation.persona_audit import CollectionRights, DocumentRights, Shown, may_read, run_persona_audit
from recollect.model import PassageNote, RetrievedContext
from recollect.model.principal import Permissions, Principal, read_permissions
from unit.answer.samples import passage

SUITE = parse_suite(
    """
cases:
- {name: leave, query: leave, must_have: [leave.md]}
- {name: pay, query: pay, must_have: [{source: [pay.md, bank.md]}, {text: "the  25TH"}]}
- {name: pets, query: pets, answerable: false}
"""
)
TEXTS = {"leave.md": "30 days of leave", "pay.md": "paid on the 25th", "board.md": "the board on pets and pay"}
GRANTS = {"leave.md": "*", "pay.md": "department:hr, !user:bob", "board.md": "role:board"}
ANN, BOB, EVE = (
    Principal(user_id="ann", department="hr"),
    Principal(user_id="bob", department="hr"),
    Principal(user_id="eve", roles=("board",)),
)
IDS = {source: number for number, source in enumerate(TEXTS, start=1)}
DOCUMENTS = {
    IDS[source]: DocumentRights(document_id=IDS[source], source=source, permissions=read_permissions(GRANTS[source]))
    for source in TEXTS
}


def hit(source: str, text: str, document_id: int) -> RetrievedContext:
    return passage(text, source=source, document_id=document_id)


class Shelf:
    """Finds every text that has a word of the query; keeps the rules, or shows one document to everybody."""

    def __init__(self, shown: str | None = None, cited: str | None = None, owners=(), readers=("*",)) -> None:
        self.shown, self.cited = shown, cited
        self.known = CollectionRights(
            owners=owners,
            readers=readers,
            documents=tuple(DOCUMENTS.values()),
            find=DOCUMENTS.get,
            text=lambda number: TEXTS[DOCUMENTS[number].source],
        )

    def search(self, asked: CaseSearch, principal: Principal | None) -> Sequence[RetrievedContext]:
        return [
            hit(source, text, IDS[source])
            for source, text in TEXTS.items()
            if source == self.shown
            or (
                (asked.query in text or "25th" in text)
                and (principal is None or may_read(principal, DOCUMENTS[IDS[source]], self.known))
            )
        ]

    def evidence(self, asked: CaseSearch, principal: Principal) -> Sequence[Shown]:
        assert asked.query == "pets", "others do not say whether they are answerable"
        return [] if self.cited is None else [(self.cited, IDS[self.cited])]

    def rights(self, tenant_id: int | None) -> CollectionRights:
        assert tenant_id is None
        return self.known


def test_recall_is_of_what_each_may_read():
    result = run_persona_audit(SUITE, {"ann": ANN, "bob": BOB, "eve": EVE}, Shelf())
    assert (result.passed, result.leaks) == (True, ())
    ann, bob, eve = result.personas
    assert [one.readable_documents for one in result.personas] == [2, 1, 2]
    assert [case.recall for case in ann.cases] == [1.0, 1.0, None]
    assert [case.recall for case in bob.cases] == [1.0, None, None]
    assert [len(case.readable) for case in eve.cases] == [1, 0, 0]
    assert (ann.recall, bob.recall) == (1.0, 1.0)
    # The owner finds pay.md for all three, and the board's for two of them.
    assert [one.withheld for one in result.personas] == [2, 5, 3]


def test_what_is_not_found_counts_only_where_it_may_be_read():
    class Blind(Shelf):
        def search(self, asked, principal):
            return [one for one in super().search(asked, principal) if one.source != "pay.md" or principal is None]

    ann, bob = run_persona_audit(SUITE, {"ann": ANN, "bob": BOB}, Blind()).personas
    assert (ann.recall, ann.cases[1].recall, len(ann.cases[1].missing)) == (0.5, 0.0, 2)
    assert (bob.recall, bob.cases[1].recall) == (1.0, None)


@pytest.mark.parametrize(
    ("shelf", "leaks"),
    [
        (Shelf(shown="pay.md"), {("bob", "leave", "search"), ("bob", "pay", "search"), ("bob", "pets", "search"),
                                 ("eve", "leave", "search"), ("eve", "pay", "search"), ("eve", "pets", "search")}),
        (Shelf(cited="board.md"), {("ann", "pets", "answer"), ("bob", "pets", "answer")}),
        (Shelf(shown="board.md", readers=("role:board",)), {(one, case, "search") for one in ("ann", "bob")
                                                            for case in ("leave", "pay", "pets")}),
        (Shelf(shown="board.md", owners=("department:hr",)), set()),
    ],
)  # fmt: skip
def test_whatever_somebody_may_not_read_is_a_leak(shelf: Shelf, leaks):
    result = run_persona_audit(SUITE, {"ann": ANN, "bob": BOB, "eve": EVE}, shelf)
    assert {(leak.persona, leak.case, leak.place) for leak in result.leaks} == leaks
    assert result.passed == (not leaks)
    assert result.as_json()["leaks"] == len(leaks)


def test_a_passage_of_no_known_document_is_a_leak_but_to_owners():
    class Ghost(Shelf):
        def search(self, asked, principal):
            return [hit("ghost", "boo", 99), hit("ghost", "again", 99)]

    (result,) = run_persona_audit(SUITE, {"ann": ANN}, Ghost()).personas
    assert [(leak.source, leak.document_id) for leak in result.cases[0].leaks] == [("ghost", 99)]
    assert run_persona_audit(SUITE, {"ann": ANN}, Ghost(owners=("user:ann",))).passed


def test_a_document_that_is_only_mentioned_is_a_leak_too():
    class Gossip(Shelf):
        def search(self, asked, principal):
            note = PassageNote(kind="newer_document", text="", document_id=IDS["board.md"], source="board.md")
            return [replace(hit("leave.md", "leave", IDS["leave.md"]), notes=(note,))]

    ann, eve = run_persona_audit(SUITE, {"ann": ANN, "eve": EVE}, Gossip()).personas
    assert {leak.source for leak in ann.leaks} == {"board.md"} and eve.leaks == ()


def test_progress_counts_every_case_of_every_persona():
    told: list[tuple[int, int]] = []
    run_persona_audit(SUITE, {"ann": ANN, "bob": BOB}, Shelf(), progress=lambda done, total: told.append((done, total)))
    assert told == [(number, 6) for number in range(1, 7)]


@pytest.mark.parametrize(
    ("principal", "grants", "denials", "allowed"),
    [
        (Principal(), ("*",), (), True),
        (Principal(), (), (), False),
        (ANN, ("user:ann",), (), True),
        (ANN, ("user:an",), (), False),
        (ANN, ("*", "user:ann"), ("department:hr",), False),
        (ANN, ("*",), ("*",), False),
        (EVE, ("role:board",), ("role:boards", "group:board"), True),
        (Principal(groups=("g",)), ("group:g",), (), True),
        (Principal(user_id="*"), ("role:x",), (), False),
    ],
)
def test_the_rules(principal: Principal, grants, denials, allowed: bool):
    document = DocumentRights(document_id=1, source="s", permissions=Permissions(grants=grants, denials=denials))
    assert may_read(principal, document, Shelf().known) == allowed
