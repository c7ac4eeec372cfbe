"""Reranking a search's candidates under a time limit, without ever failing the search."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.interruption import TimedCalls
from recollect.retrieval.rerank.base import Candidate, Reranker

logger = logging.getLogger(__name__)

#: How long a search waits for its reranker unless told otherwise.
TIMEOUT_SECONDS = 10.0

#: Calls of rerankers that may be under way at once in this process, those that nobody waits for any more included.
MAX_CALLS = 8

_CALLS = TimedCalls("rerankers", most=MAX_CALLS)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RerankedCandidate:
    """A candidate in its final place.

    Attributes:
        candidate: As the first stage gave it.
        score: What the order follows: standard scores mixed, or the first stage's score where nothing was reranked.
        rerank_score: The reranker's own; None where nothing was reranked.
    """

    candidate: Candidate
    score: float
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankOutcome:
    """What became of a list of candidates.

    Attributes:
        ranking: Every candidate, best first; in the first stage's order where ``reranked`` is False.
        reranked: Whether the reranker had a say.
        reason: Why not, in words for a person; empty where it had.
        failed: Whether that is because the reranker failed.
        milliseconds: How long the search waited.
    """

    ranking: tuple[RerankedCandidate, ...]
    reranked: bool
    reason: str = ""
    failed: bool = False
    milliseconds: float = 0.0


def apply(
    reranker: Reranker,
    query: str,
    candidates: Sequence[Candidate],
    *,
    weight: float,
    timeout_seconds: float = TIMEOUT_SECONDS,
    own_thread: bool = True,
) -> RerankOutcome:
    """Rerank candidates; whatever goes wrong, there is a ranking.

    The final score is ``weight · reranker + (1 − weight) · first stage``, both as standard scores over the candidates
    (minus their mean, divided by their standard deviation). Mixing measured better than replacing, see
    ``docs/how-to/reranking.md``.

    A reranker that raises, returns something else than one finite number a candidate, or takes too long is logged as
    a warning, and the candidates come back in their first order. One that hangs keeps its thread until it returns;
    with `MAX_CALLS` of them under way, further searches do without reranking rather than start more.

    Args:
        reranker: Scores the candidates.
        query: The question, as asked.
        candidates: In any order.
        weight: The reranker's share, 0 to 1; with 0 it is not asked, with 1 it decides alone.
        timeout_seconds: How long to wait for it.
        own_thread: Whether it runs in a thread of its own, which the time limit needs; without one it is waited for.

    Raises:
        UsageError: ``weight`` or ``timeout_seconds`` is out of range.
    """
    if not 0 <= weight <= 1:
        raise UsageError(f"weight must lie between 0 and 1, not {weight!r}")
    if not timeout_seconds > 0:
        raise UsageError(f"timeout_seconds must be more than 0, not {timeout_seconds!r}")
    started = time.perf_counter()
    if weight == 0 or not candidates:
        reason = "there is nothing to rerank" if weight else "its weight is 0"
        return RerankOutcome(ranking=_first_order(candidates), reranked=False, reason=reason)
    try:
        given = (
            _scores(reranker, query, candidates, timeout_seconds) if own_thread else reranker.rerank(query, candidates)
        )
        scores = _checked(given, len(candidates))
    except Exception as exc:  # noqa: BLE001 - see above
        reason = f"{type(exc).__name__}: {exc}"
        logger.warning("The reranker %s failed, so the results are not reranked. %s", reranker.name, reason)
        return RerankOutcome(
            ranking=_first_order(candidates), reranked=False, reason=reason, failed=True, milliseconds=_since(started)
        )
    return RerankOutcome(ranking=_mixed(candidates, scores, weight), reranked=True, milliseconds=_since(started))


def apply_to_parts(
    parts: Sequence[tuple[Reranker, Sequence[Candidate]]],
    query: str,
    *,
    weight: float,
    timeout_seconds: float = TIMEOUT_SECONDS,
    own_thread: bool = True,
) -> RerankOutcome:
    """Rerank candidates of which each part has a reranker of its own, whose scores say nothing beside another's.

    Each part is mixed within itself, as in `apply`, and keeps the mean and the deviation that its first scores have
    among all of them. Where one reranker fails, nothing is reranked. The arguments are those of `apply`.
    """
    if len(parts) == 1:
        ((reranker, candidates),) = parts
        return apply(reranker, query, candidates, weight=weight, timeout_seconds=timeout_seconds, own_thread=own_thread)
    started = time.perf_counter()
    everything = [candidate for _, candidates in parts for candidate in candidates]
    ranking: list[RerankedCandidate] = []
    scores = standardised([one.score for one in everything]).tolist()
    first = {one.chunk_id: score for one, score in zip(everything, scores, strict=True)}
    for reranker, candidates in parts:
        left = max(timeout_seconds - _since(started) / 1000, timeout_seconds / 100)
        outcome = apply(reranker, query, candidates, weight=weight, timeout_seconds=left, own_thread=own_thread)
        if not outcome.reranked:
            return replace(outcome, ranking=_first_order(everything), milliseconds=_since(started))
        own = np.array([first[one.chunk_id] for one in candidates])
        middle, spread = float(own.mean()), float(own.std())
        ranking += [replace(one, score=middle + spread * one.score) for one in outcome.ranking]
    ranking.sort(key=lambda item: (-item.score, -item.candidate.score, item.candidate.chunk_id))
    return RerankOutcome(ranking=tuple(ranking), reranked=True, milliseconds=_since(started))


def _scores(reranker: Reranker, query: str, candidates: Sequence[Candidate], timeout_seconds: float) -> Sequence[float]:
    call = _CALLS.start(partial(reranker.rerank, query, candidates), name=f"recollect-rerank-{reranker.name}")
    return call.wait(timeout_seconds)


def _checked(given: Sequence[float], count: int) -> list[float]:
    scores = list(given)
    if len(scores) != count:
        raise ValueError(f"it gave {len(scores)} scores for {count} candidates")
    checked = [float(score) for score in scores]
    if not all(map(math.isfinite, checked)):
        raise ValueError("it gave scores that are no finite numbers")
    return checked


def _mixed(candidates: Sequence[Candidate], scores: Sequence[float], weight: float) -> tuple[RerankedCandidate, ...]:
    first = standardised([candidate.score for candidate in candidates])
    second = standardised(scores)
    mixed = (weight * second + (1 - weight) * first).tolist()
    ranked = [
        RerankedCandidate(candidate, total, score)
        for candidate, total, score in zip(candidates, mixed, scores, strict=True)
    ]
    # Where the reranker alone decides, equals keep the first stage's order.
    return tuple(sorted(ranked, key=lambda item: (-item.score, -item.candidate.score, item.candidate.chunk_id)))


def _first_order(candidates: Sequence[Candidate]) -> tuple[RerankedCandidate, ...]:
    ordered = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.chunk_id))
    return tuple(RerankedCandidate(candidate, candidate.score) for candidate in ordered)


def standardised(values: Sequence[float]) -> Floats:
    """Standard scores: minus the mean, divided by the standard deviation; zeros where all values are equal.

    Args:
        values: Finite numbers.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.size == 0:
        return given
    deviation = float(given.std())
    # Below this, what differs is rounding.
    if deviation <= 1e-9 * max(1.0, float(np.abs(given).max())):
        return np.zeros_like(given)
    result: Floats = (given - given.mean()) / deviation
    return result


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
