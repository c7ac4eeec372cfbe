"""Recall of the turns that answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.evaluation.memory import RecalledTurn, question_metrics, run_memory
from recollect.evaluation.memory_files import Conversation, DatedSession, DatedTurn, MemoryDataset, MemoryQuestion


def found(*turns: str) -> list[RecalledTurn]:
    return [RecalledTurn(turn.split(":")[0], turn) for turn in turns]


def test_recall_counts_the_evidence_among_the_first():
    ranked = found("a:1", "a:2", "a:3", "a:4", "b:5", "b:6", "b:7")
    figures = question_metrics(ranked, ["a:2", "b:6", "z:1"], frozenset({"b"}))
    assert figures["evidence_recall@5"] == pytest.approx(1 / 3)
    assert figures["evidence_recall@10"] == pytest.approx(2 / 3)
    assert figures["session_hit@10"] == 1.0


def test_a_turn_named_twice_takes_one_place():
    ranked = found("a:1", "a:1", "a:1", "a:1", "a:1", "a:2")
    assert question_metrics(ranked, ["a:2"], frozenset({"a"}))["evidence_recall@5"] == 1.0


def test_the_eleventh_session_is_not_found():
    ranked = found(*(f"s{number}:1" for number in range(11)))
    assert question_metrics(ranked, ["x"], frozenset({"s9"}))["session_hit@10"] == 1.0
    assert question_metrics(ranked, ["x"], frozenset({"s10"}))["session_hit@10"] == 0.0


@given(st.lists(st.sampled_from(["a:1", "a:2", "b:1", "c:1"])), st.sets(st.sampled_from(["a:1", "b:1"]), min_size=1))
def test_deeper_recall_is_never_less(ranked: list[str], evidence: set[str]):
    figures = question_metrics(found(*ranked), sorted(evidence), frozenset({"a"}))
    recalls = [figures[f"evidence_recall@{depth}"] for depth in (5, 10, 20)]
    assert recalls == sorted(recalls)
    assert recalls[-1] == len(evidence & set(ranked)) / len(evidence)


def test_a_run_averages_over_questions_and_counts_what_cannot_be_found():
    turns = tuple(DatedTurn(turn_id=f"t{number}", speaker="Ada", text="x") for number in range(3))
    session = DatedSession(session_id="s", at=None, turns=turns)
    questions = (
        MemoryQuestion(text="first", category="1", evidence=("t0",)),
        MemoryQuestion(text="second", category="2", evidence=("t2", "nowhere")),
    )
    conversation = Conversation(conversation_id="c", sessions=(session,), questions=questions)
    told: list[tuple[int, int]] = []
    report = run_memory(
        MemoryDataset(conversations=(conversation,), unanswered=4, undated=1),
        remember=lambda one: len(one.turn_ids),
        recall=lambda _, question: [RecalledTurn("s", "t0" if question == "first" else "t2")],
        progress=lambda done, total: told.append((done, total)),
    )
    assert report.metrics["evidence_recall@10"] == pytest.approx(0.75)
    assert report.by_category["2"]["evidence_recall@10"] == pytest.approx(0.5)
    assert report.by_conversation["c"] == report.metrics
    assert (report.questions, report.unanswered, report.unknown_evidence, report.turns) == (2, 4, 1, 3)
    assert told == [(1, 2), (2, 2)]
    assert report.as_json()["metrics"] == report.metrics
