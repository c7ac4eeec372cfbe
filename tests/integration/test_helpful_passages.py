"""Passages that a question without an exact answer shows: the documents' own characters, of what may be read alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect import (
    Document,
    Principal,
    RAGPipeline,
    RetrievalOptions,
    SearchReply,
    SessionRAG,
    View,
)
from recollect.answer.absence import OFFERS
from recollect.answer.writing import Decided
from recollect.evaluation.case_files import parse_suite
from recollect.model import Answer, ShownPassage
from recollect.pipeline.persona_audit import evaluate_personas

LEAVE = "# Leave\n\n## Annual\n\nAnnual leave is 30 days for everybody.\n\n- Ask your manager.\n- Use the form LV-77.\n"
BOARD = "# Board\n\nAnnual leave of the board is 99 days."
#: On the subject, with an identifier that no document holds.
QUESTION = "How many days is annual leave under regulation RQ-404?"
ANN, BOB = Principal(user_id="ann", roles=("clerk",)), Principal(user_id="bob")


@pytest.fixture
def rag(pipeline: RAGPipeline) -> RAGPipeline:
    pipeline.ingest(Document(content=LEAVE, source="leave.md", department="hr", id="L-1"))
    pipeline.ingest(Document(content=BOARD, source="board.md", department="board", permissions=("role:clerk",)))
    return pipeline


def shown(view: View, question: str = QUESTION, **options: object) -> tuple[ShownPassage, ...]:
    """The passages of a question, each of which is what its document says there."""
    answer = view.ask(question, RetrievalOptions(**options))
    assert (answer.outcome, answer.text, answer.citations) == ("passages", OFFERS["en"], ())
    assert answer.refused and answer.nearest is not None
    for one in answer.passages:
        seen = view if one.collection is None else view.view(collections=one.collection)
        read = seen.contents.read(one.document_id, start=one.start_offset, length=one.end_offset - one.start_offset)
        assert (read.text, read.source) == (one.text, one.source)
        assert all(one.start_offset <= part.start_offset < part.end_offset <= one.end_offset for part in one.highlights)
    return answer.passages


def test_they_are_exact_and_stand_under_their_section(rag: RAGPipeline):
    (one,) = (one for one in shown(rag) if one.source == "leave.md")
    (part,) = one.highlights
    assert LEAVE[part.start_offset : part.end_offset] == "Annual leave is 30 days for everybody."
    assert "Use the form LV-77." in one.text
    assert (one.section, one.department, one.id, one.collection, one.server) == (
        "Leave > Annual",
        "hr",
        "L-1",
        None,
        None,
    )


def test_what_nothing_is_relevant_to_shows_none(rag: RAGPipeline):
    for question in ("Who was king of Spain in 1700?", "xqzv blorp fnarg?"):
        answer = rag.ask(question)
        assert (answer.outcome, answer.passages) == ("none", ())
    empty = rag.view(collections="empty")
    empty.ingest(Document(content="A lamp.", source="lamp.md"))
    assert empty.ask(QUESTION).outcome == "none"


def test_they_are_of_what_somebody_may_read_alone(rag: RAGPipeline):
    assert {one.source for one in shown(rag.view(principal=ANN))} == {"leave.md", "board.md"}
    assert {one.source for one in shown(rag.view(principal=BOB))} == {"leave.md"}
    assert {one.source for one in shown(rag, department=("board",))} == {"board.md"}
    about_the_board = "How many days is annual leave of the board under RQ-404?"
    assert "99 days" not in str(rag.view(principal=BOB).ask(about_the_board))


def test_an_audit_of_permissions_looks_at_them(rag: RAGPipeline, monkeypatch: pytest.MonkeyPatch):
    suite = parse_suite(f"cases: [{{query: {QUESTION!r}, answerable: false}}]")
    assert evaluate_personas(rag, suite, {"bob": BOB}).leaks == ()
    as_owner = rag.ask(QUESTION)
    monkeypatch.setattr(View, "ask", lambda *_, **__: as_owner)
    assert {leak.source for leak in evaluate_personas(rag, suite, {"bob": BOB}).leaks} == {"board.md"}


def test_of_several_collections_each_says_which(rag: RAGPipeline):
    rag.view(collections="plant").ingest(Document(content="Annual leave in the plant is 31 days.", source="plant.md"))
    found = shown(rag.view(collections=["default", "plant"]))
    assert {(one.source, one.collection) for one in found} >= {("plant.md", "plant"), ("leave.md", "default")}
    assert [one.marker for one in found] == list(range(1, len(found) + 1))


def test_of_a_session_and_of_a_tenant(rag: RAGPipeline):
    sessions = SessionRAG(rag)
    sessions.create_session("mine")
    sessions.ingest_to_session("mine", Document(content="Annual leave of mine is 7 days.", source="mine.md"))
    assert [one.source for one in sessions.ask_session("mine", QUESTION).passages] == ["mine.md"]
    rag.tenants.create("acme")
    acme = rag.view(tenant="acme")
    acme.ingest(Document(content="Annual leave at Acme is 12 days.", source="acme.md"))
    assert [one.source for one in shown(acme)] == ["acme.md"]


def test_the_past_shows_what_was_known_then(rag: RAGPipeline):
    then = datetime.now(UTC)
    rag.ingest(Document(content="Annual leave is 32 days from now on.", source="leave.md", id="L-1"))
    assert "30 days" in {one.source: one.text for one in shown(rag.view(as_of=then))}["leave.md"]
    assert "32 days" in {one.source: one.text for one in shown(rag)}["leave.md"]


def test_events_tell_the_outcome_before_the_text(rag: RAGPipeline):
    events = list(rag.ask_events(QUESTION))
    answer = events[-1]
    assert isinstance(answer, Answer) and [one for one in events if isinstance(one, str)] == [answer.text]
    assert events.index(Decided("passages")) < events.index(answer.text)
    assert sum(isinstance(one, SearchReply) for one in events) == 1
