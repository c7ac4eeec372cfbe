"""How well memory finds the turns that answer questions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.evaluation.memory_files import Conversation, MemoryDataset, MemoryQuestion
from recollect.evaluation.report import QueryTimes
from recollect.evaluation.runner import Progress

#: Recall is measured among so many turns.
DEPTHS = (5, 10, 20)

#: A session is found when it is among so many distinct ones.
SESSIONS = 10


@dataclass(frozen=True, slots=True)
class RecalledTurn:
    """A turn that memory returned, by the ids of the file."""

    session_id: str
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryReport:
    """The outcome of a file of conversations.

    Attributes:
        metrics: ``evidence_recall@5``, ``@10``, ``@20`` and ``session_hit@10``, averaged over all questions.
        by_category: The same for each category of questions.
        by_conversation: The same for each conversation.
        questions: How many were asked.
        unanswered: Questions that name no evidence and were left out.
        unknown_evidence: Evidence that names no turn of its conversation; it counts as not found.
        turns: How many were remembered.
        seconds: Wall time of remembering and recalling together.
        query_ms: Time per question.
    """

    metrics: Mapping[str, float]
    by_category: Mapping[str, Mapping[str, float]]
    by_conversation: Mapping[str, Mapping[str, float]]
    questions: int
    unanswered: int
    unknown_evidence: int
    turns: int
    seconds: float
    query_ms: QueryTimes

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "metrics": dict(self.metrics),
            "by_category": {name: dict(figures) for name, figures in self.by_category.items()},
            "by_conversation": {name: dict(figures) for name, figures in self.by_conversation.items()},
            "questions": self.questions,
            "unanswered": self.unanswered,
            "unknown_evidence": self.unknown_evidence,
            "turns": self.turns,
            "seconds": round(self.seconds, 3),
            "query_ms": {"p50": round(self.query_ms.p50, 3), "p95": round(self.query_ms.p95, 3)},
        }


@dataclass(frozen=True, slots=True)
class _Outcome:
    conversation: str
    category: str
    figures: Mapping[str, float]


def question_metrics(
    found: Sequence[RecalledTurn], evidence: Sequence[str], evidence_sessions: frozenset[str]
) -> dict[str, float]:
    """The measures of a single question.

    Args:
        found: What memory returned, best first; of a turn named twice, the first place counts.
        evidence: The turns that answer, at least one.
        evidence_sessions: The sessions that hold one of them.
    """
    turns = list(dict.fromkeys(turn.turn_id for turn in found))
    sessions = list(dict.fromkeys(turn.session_id for turn in found))[:SESSIONS]
    wanted = set(evidence)
    figures = {f"evidence_recall@{depth}": len(wanted.intersection(turns[:depth])) / len(wanted) for depth in DEPTHS}
    figures[f"session_hit@{SESSIONS}"] = float(not evidence_sessions.isdisjoint(sessions))
    return figures


def run_memory(
    dataset: MemoryDataset,
    *,
    remember: Callable[[Conversation], int],
    recall: Callable[[Conversation, str], Sequence[RecalledTurn]],
    progress: Progress | None = None,
) -> MemoryReport:
    """Have every conversation remembered, ask its questions, and score what is recalled.

    Args:
        dataset: From `recollect.evaluation.memory_files.load_memory`.
        remember: Stores a conversation, and returns how many turns it has that say something.
        recall: Returns for a question the turns of its conversation, best first, at least twenty of ten sessions where
            there are as many.
        progress: Told about each finished question.
    """
    started = time.perf_counter()
    total = sum(len(conversation.questions) for conversation in dataset.conversations)
    turns = unknown = 0
    outcomes: list[_Outcome] = []
    milliseconds: list[float] = []
    for conversation in dataset.conversations:
        turns += remember(conversation)
        sessions = {turn.turn_id: one.session_id for one in conversation.sessions for turn in one.turns}
        for question in conversation.questions:
            before = time.perf_counter()
            found = recall(conversation, question.text)
            milliseconds.append((time.perf_counter() - before) * 1000)
            unknown += sum(turn_id not in sessions for turn_id in question.evidence)
            outcomes.append(_outcome(conversation, question, found, sessions))
            if progress is not None:
                progress(len(outcomes), total)
    p50, p95 = np.percentile(milliseconds, [50, 95]).tolist()
    return MemoryReport(
        metrics=_means([outcome.figures for outcome in outcomes]),
        by_category=_grouped(outcomes, lambda outcome: outcome.category),
        by_conversation=_grouped(outcomes, lambda outcome: outcome.conversation),
        questions=len(outcomes),
        unanswered=dataset.unanswered,
        unknown_evidence=unknown,
        turns=turns,
        seconds=time.perf_counter() - started,
        query_ms=QueryTimes(p50=p50, p95=p95),
    )


def _outcome(
    conversation: Conversation, question: MemoryQuestion, found: Sequence[RecalledTurn], sessions: Mapping[str, str]
) -> _Outcome:
    holding = frozenset(sessions[turn_id] for turn_id in question.evidence if turn_id in sessions)
    figures = question_metrics(found, question.evidence, holding)
    return _Outcome(conversation.conversation_id, question.category, figures)


def _grouped(outcomes: Sequence[_Outcome], name: Callable[[_Outcome], str]) -> dict[str, dict[str, float]]:
    groups: dict[str, list[Mapping[str, float]]] = {}
    for outcome in outcomes:
        groups.setdefault(name(outcome), []).append(outcome.figures)
    return {group: _means(groups[group]) for group in sorted(groups)}


def _means(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: math.fsum(one[name] for one in figures) / len(figures) for name in figures[0]}
