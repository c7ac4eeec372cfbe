"""What one system made of every query: figures, times, what was looked for and what was found.

A system is handed over as a function that searches. What is measured depends on the data: rankings of documents (BEIR
form), characters shown (span form) or must-haves found (test cases).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from recollect.errors import UsageError
from recollect.evaluation.cases import Case, CaseSearch, Suite
from recollect.evaluation.datasets import BeirDataset, SpanDataset, SpanQuestion
from recollect.evaluation.metrics import SpanScores, query_metrics, span_scores
from recollect.evaluation.rag_test import Found, Progress, meets, score
from recollect.evaluation.runner import ShownPassage, fitting

#: Passages counted, for the curves of rankings and of test cases.
DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
#: Characters shown, for the curves of spans.
BUDGETS = (500, 1000, 2000, 4000, 8000)

_FOUND_SHOWN = 5
_TEXT_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that a search returned: ``text`` stands at ``start`` to ``end`` of ``document``."""

    document: str
    start: int
    end: int
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class ShownHit:
    """One of the best passages, for people, and whether it is one that was looked for."""

    place: str
    text: str
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """What one system made of one query.

    Attributes:
        query_id: As in the data.
        query: Its text.
        metrics: Figures by name, each better when higher.
        milliseconds: How long the search took.
        curve: Recall at each of the task's points.
        expected: What was looked for, in words.
        found: The best passages.
    """

    query_id: str
    query: str
    metrics: Mapping[str, float]
    milliseconds: float
    curve: tuple[float, ...]
    expected: tuple[str, ...]
    found: tuple[ShownHit, ...]


def rank_documents(
    dataset: BeirDataset, search: Callable[[str], Sequence[Hit]], *, progress: Progress | None = None
) -> list[QueryOutcome]:
    """Run the queries of a BEIR data set; figures are those of `ranking_metrics`, by query.

    Args:
        dataset: The queries and their judgements; the corpus must be in the system already.
        search: Finds passages, best first; a document ranks by its best one.
        progress: Told about each finished query.
    """
    timed = _timed(search, [query.text for query in dataset.queries], progress)
    rankings = {
        query.query_id: list(dict.fromkeys(hit.document for hit in hits))
        for query, (hits, _) in zip(dataset.queries, timed, strict=True)
    }
    figures = _ranking_figures(
        rankings, {query.query_id: dataset.judgements[query.query_id] for query in dataset.queries}
    )
    outcomes = []
    for query, (hits, milliseconds) in zip(dataset.queries, timed, strict=True):
        wanted = {name for name, grade in dataset.judgements[query.query_id].items() if grade > 0}
        ranking = rankings[query.query_id]
        outcomes.append(
            QueryOutcome(
                query_id=query.query_id,
                query=query.text,
                metrics=figures[query.query_id],
                milliseconds=milliseconds,
                curve=tuple(len(wanted & set(ranking[:depth])) / max(1, len(wanted)) for depth in DEPTHS),
                expected=tuple(f"document {name}" for name in sorted(wanted)[:10]),
                found=_shown(hits, [hit.document in wanted for hit in hits]),
            )
        )
    return outcomes


def cover_spans(
    dataset: SpanDataset,
    search: Callable[[str], Sequence[Hit]],
    *,
    budget_chars: int = 4000,
    passages: int | None = None,
    progress: Progress | None = None,
) -> list[QueryOutcome]:
    """Ask the questions of a span data set; figures are recall, precision and IoU of characters.

    Args:
        dataset: The questions; the texts must be in the system already.
        search: Finds passages, best first, enough of them to fill the largest budget.
        budget_chars: Show the passages that fit in this many characters.
        passages: Show this many passages instead.
        progress: Told about each finished question.
    """
    timed = _timed(search, [question.text for question in dataset.questions], progress)
    return [
        _span_outcome(question, dataset.documents[question.document], hits, milliseconds, budget_chars, passages)
        for question, (hits, milliseconds) in zip(dataset.questions, timed, strict=True)
    ]


def check_cases(
    suite: Suite,
    search: Callable[[CaseSearch], Sequence[Hit]],
    *,
    progress: Progress | None = None,
) -> list[QueryOutcome]:
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
    outcomes = []
    for done, case in enumerate(cases, start=1):
        asked = suite.search(case)
        started = time.perf_counter()
        hits = search(asked)
        milliseconds = (time.perf_counter() - started) * 1000
        deep = search(replace(asked, top_k=DEPTHS[-1]))
        outcomes.append(_case_outcome(case, hits, deep, milliseconds))
        if progress is not None:
            progress(done, len(cases))
    return outcomes


def _case_outcome(case: Case, hits: Sequence[Hit], deep: Sequence[Hit], milliseconds: float) -> QueryOutcome:
    found, further = ([Found(hit.document, hit.text) for hit in some] for some in (hits, deep))
    scores = score(case, found)
    assert scores is not None, "only cases with must-haves come here"
    return QueryOutcome(
        query_id=case.name,
        query=case.query,
        metrics=asdict(scores),
        milliseconds=milliseconds,
        curve=tuple(reached.recall for depth in DEPTHS if (reached := score(case, further[:depth]))),
        expected=tuple(str(wanted) for wanted in case.must_have),
        found=_shown(hits, [any(meets(passage, wanted) for wanted in case.must_have) for passage in found]),
    )


def _span_outcome(
    question: SpanQuestion,
    content: str,
    hits: Sequence[Hit],
    milliseconds: float,
    budget_chars: int,
    passages: int | None,
) -> QueryOutcome:
    spans = [ShownPassage(hit.document, hit.start, hit.end) for hit in hits]
    shown = fitting(spans, budget_chars) if passages is None else spans[:passages]
    good = [
        hit.document == question.document and any(a < hit.end and hit.start < b for a, b in question.references)
        for hit in hits
    ]
    return QueryOutcome(
        query_id=question.question_id,
        query=question.text,
        metrics=asdict(_span_scores(question, shown)),
        milliseconds=milliseconds,
        curve=tuple(_span_scores(question, fitting(spans, budget)).recall for budget in BUDGETS),
        expected=tuple(f"{question.document}: {_short(content[a:b])}" for a, b in question.references),
        found=_shown(hits, good),
    )


def _span_scores(question: SpanQuestion, shown: Sequence[ShownPassage]) -> SpanScores:
    here = [(one.start, one.end) for one in shown if one.document == question.document]
    elsewhere = sum(one.end - one.start for one in shown if one.document != question.document)
    return span_scores(question.references, here, shown_elsewhere=elsewhere)


def _ranking_figures(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    return {query_id: query_metrics(rankings.get(query_id, ()), grades) for query_id, grades in judgements.items()}


def _timed(
    search: Callable[[str], Sequence[Hit]], queries: Sequence[str], progress: Progress | None
) -> list[tuple[Sequence[Hit], float]]:
    timed = []
    for done, query in enumerate(queries, start=1):
        started = time.perf_counter()
        hits = search(query)
        timed.append((hits, (time.perf_counter() - started) * 1000))
        if progress is not None:
            progress(done, len(queries))
    return timed


def _shown(hits: Sequence[Hit], good: Iterable[bool]) -> tuple[ShownHit, ...]:
    best = list(zip(hits, good, strict=True))[:_FOUND_SHOWN]
    return tuple(ShownHit(hit.place or hit.document, _short(hit.text), fits) for hit, fits in best)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_SHOWN else line[: _TEXT_SHOWN - 1] + "…"
