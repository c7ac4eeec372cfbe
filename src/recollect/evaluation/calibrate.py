"""Where to refuse: a threshold found on test cases with and without an answer, and what it costs. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from recollect.answer.refusal import RefusalRule
from recollect.errors import UsageError

#: The score of a case that is refused whatever the threshold.
ALWAYS_REFUSED = -1.0

# Thresholds are whole ten-thousandths.
_STEPS = 10_000
_FOLDS = 5
_REPEATS = 20


#: Shares of cases judged wrongly, 0 to 1: ``false_answers`` of those without an answer, ``false_refusals`` of others.
Errors = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A threshold and what it does.

    Attributes:
        threshold: Refuse below this probability.
        target: The share of false answers aimed at.
        answerable: How many cases have an answer.
        unanswerable: How many have none.
        before: Errors on the cases with the threshold that held before.
        fitted: Errors on the cases that the threshold was found on: too kind to it.
        held_out: Errors on cases left out of the search for the threshold, averaged over repeated folds; None where
            there are too few cases.
        enough_cases: Whether there are enough cases without an answer for the target to be promised at all.
    """

    threshold: float
    target: float
    answerable: int
    unanswerable: int
    before: Errors
    fitted: Errors
    held_out: Errors | None
    enough_cases: bool


def calibrate(
    answerable: Sequence[float],
    unanswerable: Sequence[float],
    *,
    target: float = 0.05,
    before: float = 0.5,
    seed: int = 0,
) -> Calibration:
    """Find the threshold that keeps false answers at the target.

    It is the lowest one with this property: of questions without an answer, drawn like those of the cases, at most the
    share ``target`` is answered, on average (split conformal prediction; Vovk et al. 2005). So it leaves room for
    having seen few questions: with fewer than ``1 / target - 1`` cases without an answer (19 for 5 %), all of them are
    refused and the target cannot be promised.

    Args:
        answerable: Of each case with an answer, the rule's probability that the evidence answers it; `ALWAYS_REFUSED`
            where it is refused regardless. At least one.
        unanswerable: The same of each case without an answer.
        target: Share of false answers allowed, from 0 to below 1.
        before: The threshold that holds so far, for comparison.
        seed: Of the random folds.

    Raises:
        UsageError: ``target`` is out of range, or one of the two kinds of cases is missing.
    """
    if not 0 <= target < 1:
        raise UsageError(f"the target of false answers must be from 0 to below 1, not {target!r}")
    good, bad = np.array(answerable), np.array(unanswerable)
    if not len(good) or not len(bad):
        raise UsageError(
            f"calibrating needs cases with an answer and cases without (answerable: false); there are {len(good)} and "
            f"{len(bad)}"
        )
    threshold = find_threshold(bad, target)
    return Calibration(
        threshold=threshold,
        target=target,
        answerable=len(good),
        unanswerable=len(bad),
        before=errors(good, bad, before),
        fitted=errors(good, bad, threshold),
        held_out=_held_out(good, bad, target, seed),
        enough_cases=_allowed(len(bad), target) >= 0,
    )


def find_threshold(unanswerable: Sequence[float] | np.ndarray, target: float) -> float:
    """The lowest threshold, in ten-thousandths, that false answers stay at ``target`` with; at most 1.

    Args:
        unanswerable: Scores of cases without an answer.
        target: Share of false answers allowed.
    """
    ordered = sorted((float(score) for score in unanswerable), reverse=True)
    limit = ordered[max(0, _allowed(len(ordered), target))]
    # A case is refused below the threshold. Its score differs in the last digits from one computation to the next,
    # since models compute in 32 bits: so the threshold is the next round number above it, not the next number.
    return min(1.0, max(0.0, (math.floor(limit * _STEPS) + 1) / _STEPS))


def errors(answerable: np.ndarray, unanswerable: np.ndarray, threshold: float) -> Errors:
    """Return the errors of a threshold.

    Args:
        answerable: Scores of cases with an answer.
        unanswerable: Scores of cases without.
        threshold: Refuse below it.
    """
    return {
        "false_answers": float((unanswerable >= threshold).mean()),
        "false_refusals": float((answerable < threshold).mean()),
    }


def stored_rule(
    rule: RefusalRule, calibration: Calibration, *, embedding_model: str, reranker: str
) -> dict[str, object]:
    """Return the rule that a collection stores, and how it was found.

    Args:
        rule: Its weights; the threshold is the calibration's.
        calibration: From `calibrate`.
        embedding_model: That the similarities come from: with another, the rule means nothing.
        reranker: That chose the passages.
    """
    return {
        **asdict(rule),
        "threshold": calibration.threshold,
        "embedding_model": embedding_model,
        "reranker": reranker,
        "target": calibration.target,
        "answerable": calibration.answerable,
        "unanswerable": calibration.unanswerable,
        "held_out": calibration.held_out,
    }


def _allowed(count: int, target: float) -> int:
    """How many of ``count`` cases without an answer may be answered; -1: not even none is few enough."""
    return math.floor(target * (count + 1) + 1e-9) - 1


def _held_out(good: np.ndarray, bad: np.ndarray, target: float, seed: int) -> Errors | None:
    if len(good) < _FOLDS or len(bad) < _FOLDS:
        return None
    random = np.random.default_rng(seed)
    answered: list[float] = []
    refused: list[float] = []
    for _ in range(_REPEATS):
        for bad_part, good_part in zip(_folds(len(bad), random), _folds(len(good), random), strict=True):
            threshold = find_threshold(np.delete(bad, bad_part), target)
            answered.extend(bad[bad_part] >= threshold)
            refused.extend(good[good_part] < threshold)
    return {"false_answers": float(np.mean(answered)), "false_refusals": float(np.mean(refused))}


def _folds(count: int, random: np.random.Generator) -> list[np.ndarray]:
    return np.array_split(random.permutation(count), _FOLDS)
