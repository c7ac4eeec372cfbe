"""Fusion: two rankings of chunks into one. Pure: no I/O, no clock, no randomness.

The reasoning and the measurements behind the defaults are in ``docs/explanation/fusion.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError

#: A chunk's id and a retriever's score for it.
Scored = tuple[int, float]

Floats = npt.NDArray[np.float64]

RRF_K = 60
DENSE_WEIGHT = 0.55
RRF_DENSE_WEIGHT = 0.5

_SCORE = itemgetter(1)


def rrf(
    rankings: Sequence[Sequence[Scored]], *, k: int = RRF_K, weights: Sequence[float] | None = None
) -> list[Scored]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): the sum of ``weight / (k + rank)``.

    Args:
        rankings: One ranking per retriever, best first. The scores are not looked at; of a chunk that is named twice,
            the first place counts.
        k: The greater, the less the first places matter.
        weights: One per ranking, 0 or more; None: 1 each.

    Returns:
        Every chunk that any ranking names, with its fused score, best first; of equal ones, the smaller id.

    Raises:
        UsageError: ``k`` is negative, or ``weights`` has another length than ``rankings`` or a negative number.
    """
    if k < 0:
        message = f"rrf_k must be 0 or more, not {k!r}"
        raise UsageError(message)
    shares = [1.0] * len(rankings) if weights is None else list(weights)
    if len(shares) != len(rankings) or not all(share >= 0 for share in shares):
        message = f"weights must be {len(rankings)} numbers of 0 or more, one per ranking, not {weights!r}"
        raise UsageError(message)
    totals: dict[int, list[float]] = {}
    for ranking, share in zip(rankings, shares, strict=True):
        for rank, chunk_id in enumerate(dict.fromkeys(chunk_id for chunk_id, _ in ranking), start=1):
            totals.setdefault(chunk_id, []).append(share / (k + rank))
    return _ordered((chunk_id, math.fsum(parts)) for chunk_id, parts in totals.items())


def weighted(
    dense: Sequence[Scored],
    lexical: Sequence[Scored],
    *,
    dense_weight: float = DENSE_WEIGHT,
    known_dense: Mapping[int, float] | None = None,
    known_lexical: Mapping[int, float] | None = None,
) -> list[Scored]:
    """Score fusion: a weighted sum of both retrievers' scores, each standardised over the candidates of this query.

    Standardising (subtracting the mean, dividing by the standard deviation) makes the result independent of the
    scale and offset of either retriever's scores, which differ between embedding models and between queries.

    Args:
        dense: The dense retriever's candidates with their cosine similarities, in any order.
        lexical: The lexical retriever's candidates with their BM25 scores, in any order.
        dense_weight: Share of the dense retriever, 0 to 1; at 0 and 1 only one retriever decides.
        known_dense: Similarities of chunks that only the lexical retriever found. What is missing here too counts as
            the lowest similarity known.
        known_lexical: BM25 scores of chunks that only the dense retriever found. What is missing here too counts as 0,
            the score of a chunk that shares no word with the query.

    Returns:
        Every chunk of ``dense`` and ``lexical`` with its fused score, best first; of equal ones, the smaller id. An
        retriever in which all candidates score the same has no say. Scores that are not finite count as missing.

    Raises:
        UsageError: ``dense_weight`` lies outside 0 to 1.
    """
    if not 0 <= dense_weight <= 1:
        message = f"dense_weight must lie between 0 and 1, not {dense_weight!r}"
        raise UsageError(message)
    near, worded = dict(dense), dict(lexical)
    candidates = sorted(near.keys() | worded.keys())
    similarities = _finite(known_dense or {}, near)
    bm25_scores = _finite(known_lexical or {}, worded)
    from_dense = _standardised(candidates, similarities, missing=min(similarities.values(), default=0.0))
    from_lexical = _standardised(candidates, bm25_scores, missing=0.0)
    fused = dense_weight * from_dense + (1 - dense_weight) * from_lexical
    # Of equal scores, the order before stays.
    order = (-fused).argsort(kind="stable")
    return list(zip([candidates[place] for place in order.tolist()], fused[order].tolist(), strict=True))


def _finite(known: Mapping[int, float], scored: Mapping[int, float]) -> dict[int, float]:
    scores = {**known, **scored}
    # A sum with anything in it that is not finite is not either.
    if math.isfinite(sum(scores.values())):
        return scores
    given = (*known.items(), *scored.items())
    return {chunk_id: score for chunk_id, score in given if math.isfinite(score)}


def _standardised(candidates: Sequence[int], scores: Mapping[int, float], *, missing: float) -> Floats:
    values = np.fromiter(map(scores.get, candidates, repeat(missing)), np.float64, len(candidates))
    if values.size == 0:
        return values
    # As `mean` and `std` compute them, which take longer to get there than to add up a hundred numbers.
    apart = values - np.add.reduce(values) / values.size
    deviation = math.sqrt(np.add.reduce(apart * apart) / values.size)
    # Below this, what differs is rounding, not relevance.
    if deviation <= 1e-9 * max(1.0, float(np.maximum.reduce(np.abs(values)))):
        return np.zeros(values.size)
    standardised: Floats = apart / deviation
    return standardised


def _ordered(scored: Iterable[Scored]) -> list[Scored]:
    ordered = sorted(scored)
    # Of equal scores, the order before stays.
    ordered.sort(key=_SCORE, reverse=True)
    return ordered


def presented(ranking: Iterable[Scored]) -> list[Scored]:
    """Standard scores, which lie around 0, as people and thresholds expect them: from 0 to 1, in the same order."""
    return [(chunk_id, 1 / (1 + math.exp(-score))) for chunk_id, score in ranking]
