"""The numbers of retrieval quality. Pure: rankings and judgements in, figures out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

#: The measures of :func:`ranking_metrics`, as ``ir_measures`` names them.
RANKING_METRICS = ("nDCG@10", "R@100", "RR@10", "AP")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanScores:
    """How well the characters shown cover the characters that answer; each 0 to 1."""

    recall: float
    precision: float
    iou: float


def ranking_metrics(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """nDCG@10, recall@100, reciprocal rank@10 and average precision, averaged over the judged queries.

    Computed by ``trec_eval`` through ``ir_measures``. nDCG takes the grades as gains; the others count every grade of 1
    or more as relevant, and documents without judgement as not relevant.

    Args:
        rankings: By query id, the document ids best first; of a document named twice, the first place counts.
        judgements: By query id, grades by document id. A query that is not here is left out of the average; one that
            is here without a ranking, or without a relevant document, counts as 0.

    Returns:
        Figures by the names in ``RANKING_METRICS``, 0 where nothing is judged.
    """
    import ir_measures  # lazily: only an evaluation needs it

    if not judgements:
        return dict.fromkeys(RANKING_METRICS, 0.0)
    measures = [ir_measures.parse_measure(name) for name in RANKING_METRICS]
    run = {}
    for query_id in judgements:
        # Scores made from ranks: trec_eval orders by score, and would order ties its own way.
        distinct = list(dict.fromkeys(rankings.get(query_id, ())))
        run[query_id] = {document_id: float(-place) for place, document_id in enumerate(distinct)}
    figures = ir_measures.calc_aggregate(measures, {key: dict(grades) for key, grades in judgements.items()}, run)
    return {name: float(figures[measure]) for name, measure in zip(RANKING_METRICS, measures, strict=True)}


def span_scores(references: Iterable[Span], shown: Iterable[Span], *, shown_elsewhere: int = 0) -> SpanScores:
    """Recall, precision and intersection over union of characters.

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
    return SpanScores(
        recall=found / total_wanted if total_wanted else 0.0,
        precision=found / total_shown if total_shown else 0.0,
        iou=found / joined if joined else 0.0,
    )


def mean_span_scores(scores: Sequence[SpanScores]) -> SpanScores:
    """The average over questions; zeros where there are none."""
    count = max(1, len(scores))
    return SpanScores(
        recall=sum(score.recall for score in scores) / count,
        precision=sum(score.precision for score in scores) / count,
        iou=sum(score.iou for score in scores) / count,
    )


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
