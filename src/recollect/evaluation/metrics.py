"""The numbers of retrieval quality. Pure: rankings and judgements in, figures out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

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
