"""Runs a data set through an engine that is handed over as two plain functions: one ingests, one searches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from recollect.errors import UsageError
from recollect.evaluation.datasets import BeirDataset, BeirDocument, SpanDataset
from recollect.evaluation.metrics import mean_span_scores, ranking_metrics, span_scores
from recollect.evaluation.report import BeirReport, QueryTimes, SpanReport

#: Called after each query with how many are done, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that a search returned: characters ``start`` to ``end`` of the document of that name."""

    document: str
    start: int
    end: int


def run_beir(
    dataset: BeirDataset,
    *,
    ingest: Callable[[Iterable[BeirDocument]], int],
    search: Callable[[str], Sequence[str]],
    progress: Progress | None = None,
) -> BeirReport:
    """Ingest a corpus, run its judged queries one after the other, and score the rankings.

    Args:
        dataset: From :func:`recollect.evaluation.datasets.load_beir`.
        ingest: Stores the documents, which are read as it iterates, and returns how many there are.
        search: Returns for a query's text the document ids of the chunks found, best first. A document ranks by its
            best chunk, so it may be named repeatedly; for ``R@100`` at least 100 distinct ones are needed.
        progress: Told about each finished query.

    Returns:
        The figures, with the wall time of ingest and queries together.
    """
    started = time.perf_counter()
    documents = ingest(dataset.documents())
    rankings: dict[str, list[str]] = {}
    milliseconds: list[float] = []
    for done, query in enumerate(dataset.queries, start=1):
        before = time.perf_counter()
        found = search(query.text)
        milliseconds.append((time.perf_counter() - before) * 1000)
        rankings[query.query_id] = list(dict.fromkeys(found))
        if progress is not None:
            progress(done, len(dataset.queries))
    p50, p95 = np.percentile(milliseconds, [50, 95]).tolist()
    seconds = time.perf_counter() - started
    judgements = {query.query_id: dataset.judgements[query.query_id] for query in dataset.queries}
    return BeirReport(
        metrics=ranking_metrics(rankings, judgements),
        queries=len(dataset.queries),
        documents=documents,
        seconds=seconds,
        query_ms=QueryTimes(p50=p50, p95=p95),
    )


def run_spans(
    dataset: SpanDataset,
    *,
    ingest: Callable[[Mapping[str, str]], object],
    search: Callable[[str], Sequence[ShownPassage]],
    budget_chars: int = 4000,
    passages: int | None = None,
    progress: Progress | None = None,
) -> SpanReport:
    """Ingest the texts, ask every question, and compare the characters shown with those that answer.

    Args:
        dataset: From :func:`recollect.evaluation.datasets.load_spans`.
        ingest: Stores the texts (content by name) unchanged, so that offsets stay valid.
        search: Returns the passages found for a question, best first, enough of them to fill the limit.
        budget_chars: Show the passages that fit in this many characters, see :func:`fitting`.
        passages: Show this many passages instead, whatever their length.
        progress: Told about each finished question.

    Raises:
        UsageError: ``budget_chars`` or ``passages`` is less than 1.
    """
    if budget_chars < 1 or (passages is not None and passages < 1):
        message = f"budget_chars ({budget_chars!r}) and passages ({passages!r}) must be at least 1"
        raise UsageError(message)
    ingest(dataset.documents)
    scores = []
    for done, question in enumerate(dataset.questions, start=1):
        found = search(question.text)
        shown = fitting(found, budget_chars) if passages is None else list(found[:passages])
        here = [(passage.start, passage.end) for passage in shown if passage.document == question.document]
        elsewhere = sum(passage.end - passage.start for passage in shown if passage.document != question.document)
        scores.append(span_scores(question.references, here, shown_elsewhere=elsewhere))
        if progress is not None:
            progress(done, len(dataset.questions))
    return SpanReport(
        metrics=asdict(mean_span_scores(scores)),
        budget_chars=budget_chars if passages is None else None,
        passages=passages,
        questions=len(dataset.questions),
    )


def fitting(found: Sequence[ShownPassage], budget_chars: int) -> list[ShownPassage]:
    """The passages, best first, up to the first that would exceed the budget.

    That one is neither cut nor skipped in favour of a shorter one further down: a cut passage could not be cited, and
    skipping would reward an engine for the length of its worse results.

    Args:
        found: Best first.
        budget_chars: How many characters may be shown, repeated ones counted each time.
    """
    shown: list[ShownPassage] = []
    room = budget_chars
    for passage in found:
        room -= passage.end - passage.start
        if room < 0:
            break
        shown.append(passage)
    return shown
