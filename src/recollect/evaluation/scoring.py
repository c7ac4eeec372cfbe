"""Questions of data sets and test cases, searched one by one, timed and scored: outcomes and their figures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from recollect.errors import UsageError
from recollect.evaluation.case_files import Case, CaseSearch, Suite
from recollect.evaluation.datasets import Conversation, MemoryQuestion, Question, shortened
from recollect.evaluation.rag_test import Progress, meets, score, tracked
from recollect.model import RetrievedContext, ShownPassage

_T = TypeVar("_T")
_F = TypeVar("_F")
_O = TypeVar("_O")

#: Passages counted, for the curves of rankings and of test cases.
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
#: Characters shown, for the curves of spans.
BUDGETS = (500, 1000, 2000, 4000, 8000)
#: Passages among which an answering page is looked for.
PAGE_DEPTHS = (1, 5, 10)
#: Turns among which recall is measured.
TURN_DEPTHS = (5, 10, 20)
#: A session is found when it is among so many distinct ones.
SESSIONS = 10

_FOUND_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One of the best passages, for people, and whether it is one that was looked for."""

    place: str
    text: str
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one system for one question.

    Attributes:
        query_id: As in the data.
        query: Its text.
        metrics: Figures by name, each better when higher.
        milliseconds: How long the search took.
        curve: Recall at each of the points of its kind of data.
        expected: What was looked for, in words.
        found: The best passages.
    """

    query_id: str
    query: str
    metrics: Mapping[str, float]
    milliseconds: float
    curve: tuple[float, ...] = ()
    expected: tuple[str, ...] = ()
    found: tuple[ShownHit, ...] = ()


def run(
    questions: Sequence[_T],
    search: Callable[[_T], _F],
    outcome: Callable[[_T, _F, float], _O],
    progress: Progress | None = None,
) -> list[_O]:
    """Search every question, one after the other.

    Args:
        questions: Of any kind.
        search: Finds what answers one; this is timed.
        outcome: Scores what was found; its last argument is the milliseconds that the search took.
        progress: Told about each finished question.
    """
    outcomes = []
    for question in tracked(questions, progress):
        started = time.perf_counter()
        found = search(question)
        milliseconds = (time.perf_counter() - started) * 1000
        outcomes.append(outcome(question, found, milliseconds))
    return outcomes


def means(
    figures: Sequence[Mapping[str, float]], total: Callable[[list[float]], float] = math.fsum
) -> dict[str, float]:
    """Average figures by name; ``total`` adds them up. Nothing where there are none."""
    names = list(figures[0]) if figures else []
    return {name: float(total([one[name] for one in figures]) / len(figures)) for name in names}


def times(milliseconds: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile."""
    p50, p95 = np.percentile(milliseconds, [50, 95]).tolist()
    return {"p50": round(p50, 3), "p95": round(p95, 3)}


def rank_documents(question: Question, found: Sequence[RetrievedContext], milliseconds: float) -> Outcome:
    """Score the documents found by `query_metrics`; a document ranks by its best passage."""
    ranking = list(dict.fromkeys(hit.source for hit in found))
    wanted = {name for name, grade in question.answers.items() if grade > 0}
    return Outcome(
        query_id=question.question_id,
        query=question.text,
        metrics=query_metrics(ranking, question.answers),
        milliseconds=milliseconds,
        curve=tuple(len(wanted & set(ranking[:depth])) / max(1, len(wanted)) for depth in DEPTHS),
        expected=question.expected,
        found=_shown(found, [hit.source in wanted for hit in found]),
    )


def cover_spans(
    question: Question,
    found: Sequence[RetrievedContext],
    milliseconds: float,
    *,
    budget_chars: int,
    passages: int | None = None,
) -> Outcome:
    """Score the characters shown by `span_scores`.

    Args:
        question: What was asked.
        found: Best first, enough to fill the largest budget.
        milliseconds: What the search took.
        budget_chars: Show the passages that fit in this many characters.
        passages: Show this many passages instead.
    """
    ((document, references),) = question.answers.items()
    spans = [(hit.source, (hit.start_offset, hit.end_offset)) for hit in found]

    def scores(shown: Sequence[tuple[str, Span]]) -> dict[str, float]:
        here = [span for source, span in shown if source == document]
        elsewhere = sum(end - start for source, (start, end) in shown if source != document)
        return span_scores(references, here, shown_elsewhere=elsewhere)

    def answers(source: str, span: Span) -> bool:
        return source == document and any(start < span[1] and span[0] < end for start, end in references)

    return Outcome(
        query_id=question.question_id,
        query=question.text,
        metrics=scores(fitting(spans, budget_chars) if passages is None else spans[:passages]),
        milliseconds=milliseconds,
        curve=tuple(scores(fitting(spans, budget))["recall"] for budget in BUDGETS),
        expected=question.expected,
        found=_shown(found, [answers(*one) for one in spans]),
    )


def fitting(found: Sequence[tuple[str, Span]], budget_chars: int) -> list[tuple[str, Span]]:
    """The passages, best first, up to the first that would exceed the budget.

    That one is neither cut nor skipped in favour of a shorter one further down: a cut passage could not be cited, and
    skipping would reward an engine for the length of its worse results.

    Args:
        found: Documents and their characters, best first.
        budget_chars: How many characters may be shown, repeated ones counted each time.
    """
    shown = []
    room = budget_chars
    for document, (start, end) in found:
        room -= end - start
        if room < 0:
            break
        shown.append((document, (start, end)))
    return shown


def hit_pages(question: Question, found: Mapping[str, Sequence[RetrievedContext]], milliseconds: float) -> Outcome:
    """Look for a passage with an answering page among the first ones of each search."""
    ((document, pages),) = question.answers.items()
    metrics: dict[str, float] = {}
    for place, passages in found.items():
        hits = [
            hit.source == document and any(part.page in pages for part in hit.parts if part.page is not None)
            for hit in passages
        ]
        metrics |= {f"hit@{depth}, {place}": float(any(hits[:depth])) for depth in PAGE_DEPTHS}
    return Outcome(query_id=question.question_id, query=question.text, metrics=metrics, milliseconds=milliseconds)


def recall_turns(
    talk: Conversation, question: MemoryQuestion, found: Sequence[tuple[str, str]], milliseconds: float
) -> Outcome:
    """Measure what memory recalled of a conversation.

    Args:
        talk: The conversation.
        question: With at least one turn that answers it.
        found: Sessions and turns by id, best first; of a turn named twice, the first place counts.
        milliseconds: What recalling took.
    """
    turns = list(dict.fromkeys(turn for _, turn in found))
    sessions = list(dict.fromkeys(session for session, _ in found))[:SESSIONS]
    wanted = set(question.evidence)
    metrics = {f"evidence_recall@{depth}": len(wanted & set(turns[:depth])) / len(wanted) for depth in TURN_DEPTHS}
    holding = {session.id for session in talk.sessions if wanted & {turn.id for turn in session.turns}}
    metrics[f"session_hit@{SESSIONS}"] = float(not holding.isdisjoint(sessions))
    return Outcome(query_id=talk.id, query=question.question, metrics=metrics, milliseconds=milliseconds)


def by_group(names: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Average figures by group; ``names`` are the groups of the outcomes."""
    groups: dict[str, list[Mapping[str, float]]] = {}
    for name, one in zip(names, outcomes, strict=True):
        groups.setdefault(name, []).append(one.metrics)
    return {name: means(groups[name]) for name in sorted(groups)}


def check_cases(
    suite: Suite,
    search: Callable[[CaseSearch], Sequence[RetrievedContext]],
    *,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run the test cases that have must-haves; figures are precision, recall and MRR.

    Each is searched once more, deeply and untimed, for the curve of recall.

    Args:
        suite: The cases; their documents must be in the system already.
        search: Finds the passages that a case asks for, best first.
        progress: Told about each finished case.

    Raises:
        UsageError: No case has must-haves.
    """
    cases = [case for case in suite.cases if case.must_have]
    if not cases:
        raise UsageError("no case has must_have: there is nothing to compare")

    def outcome(case: Case, found: Sequence[RetrievedContext], milliseconds: float) -> Outcome:
        deep = search(replace(suite.search(case), top_k=DEPTHS[-1]))
        return Outcome(
            query_id=case.name,
            query=case.query,
            metrics=score(case, found),
            milliseconds=milliseconds,
            curve=tuple(score(case, deep[:depth])["recall"] for depth in DEPTHS),
            expected=tuple(str(wanted) for wanted in case.must_have),
            found=_shown(found, [any(meets(hit, wanted) for wanted in case.must_have) for hit in found]),
        )

    return run(cases, lambda case: search(suite.search(case)), outcome, progress)


def place_of(passage: RetrievedContext | ShownPassage) -> str:
    """Where a passage is, for people: source › section, page."""
    titles = [title for title in (passage.section or "").split(" > ") if title.strip()]
    page = "" if passage.page is None else f", p. {passage.page}"
    return " › ".join(" ".join(part.split()) for part in (passage.source, *titles)) + page


def _shown(found: Sequence[RetrievedContext], good: Iterable[bool]) -> tuple[ShownHit, ...]:
    best = list(zip(found, good, strict=True))[:_FOUND_SHOWN]
    return tuple(ShownHit(place_of(hit), shortened(hit.content), fits) for hit, fits in best)


Span = tuple[int, int]

#: The measures of :func:`ranking_metrics`, named as ``ir_measures`` names them.
RANKING_METRICS = ("nDCG@10", "R@100", "RR@10", "AP")


def ranking_metrics(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """nDCG@10, recall@100, reciprocal rank@10 and average precision, averaged over the judged queries.

    Defined as ``trec_eval`` defines them, and tested against it; computed here, because the packages that bring it
    would make up a quarter of an installation. nDCG (Järvelin & Kekäläinen 2002) takes the grades as gains; the others
    count every grade of 1 or more as relevant, and documents without judgement as not relevant.

    Args:
        rankings: By query id, the document ids best first; of a document named twice, the first place counts.
        judgements: By query id, grades by document id. A query that is not here is left out of the average; one that
            is here without a ranking, or without a relevant document, counts as 0.

    Returns:
        Figures by the names in ``RANKING_METRICS``, 0 where nothing is judged.
    """
    figures = [query_metrics(rankings.get(query_id, ()), grades) for query_id, grades in judgements.items()]
    count = max(1, len(figures))
    return {name: math.fsum(figure[name] for figure in figures) / count for name in RANKING_METRICS}


def query_metrics(ranking: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    """The measures of a single query, as in `ranking_metrics`."""
    distinct = list(dict.fromkeys(ranking))
    relevant = {document for document, grade in grades.items() if grade >= 1}
    places = [place for place, document in enumerate(distinct, 1) if document in relevant]
    total = len(relevant)
    return {
        "nDCG@10": _ndcg([max(0, grades.get(document, 0)) for document in distinct[:10]], grades.values()),
        "R@100": sum(place <= 100 for place in places) / total if total else 0.0,
        "RR@10": 1 / places[0] if places and places[0] <= 10 else 0.0,
        "AP": math.fsum(found / place for found, place in enumerate(places, 1)) / total if total else 0.0,
    }


def _ndcg(gains: Sequence[int], grades: Iterable[int], *, cutoff: int = 10) -> float:
    ideal = _discounted(sorted((grade for grade in grades if grade > 0), reverse=True)[:cutoff])
    return _discounted(gains) / ideal if ideal else 0.0


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


def span_scores(references: Iterable[Span], shown: Iterable[Span], *, shown_elsewhere: int = 0) -> dict[str, float]:
    """``recall``, ``precision`` and ``iou`` (intersection over union) of characters, each 0 to 1.

    Args:
        references: Ranges of a document that answer a question; characters in several of them count once.
        shown: Ranges of the same document that were retrieved. A character that is shown twice counts twice among
            the characters shown, and once among those found.
        shown_elsewhere: Characters shown of other documents.
    """
    wanted = _union(references)
    shown = list(shown)
    total_wanted = _length(wanted)
    total_shown = _length(shown) + shown_elsewhere
    found = _common_length(wanted, _union(shown))
    joined = total_wanted + total_shown - found
    return {
        "recall": found / total_wanted if total_wanted else 0.0,
        "precision": found / total_shown if total_shown else 0.0,
        "iou": found / joined if joined else 0.0,
    }


def _union(spans: Iterable[Span]) -> list[Span]:
    """The same characters as ranges that do not touch, in order."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _length(spans: Iterable[Span]) -> int:
    return sum(max(0, end - start) for start, end in spans)


def _common_length(left: Sequence[Span], right: Sequence[Span]) -> int:
    """Characters in both of two unions."""
    total = i = j = 0
    while i < len(left) and j < len(right):
        total += max(0, min(left[i][1], right[j][1]) - max(left[i][0], right[j][0]))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return total
