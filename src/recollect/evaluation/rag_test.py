"""Runs test cases against a function that searches and one that answers, and judges them by their thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import fmean, median
from typing import TypeVar, get_args

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.case_files import Case, CaseSearch, Evidence, Suite, Thresholds
from recollect.model import Answer, Outcome, RetrievedContext

_T = TypeVar("_T")

#: Called after each question with how many are done, and how many there are.
Progress = Callable[[int, int], None]
#: Finds the passages that a case asks for, best first.
Search = Callable[[CaseSearch], Sequence[RetrievedContext]]
#: Answers what a case asks.
Ask = Callable[[CaseSearch], Answer]

_WITHOUT_ANSWER = {
    "passages": "showed passages, though it has an answer",
    "none": "refused, though it has an answer",
}
_SCORES = ("precision", "recall", "mrr")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a case that was searched or answered.

    Attributes:
        case: The case.
        metrics: Figures by name, averages over the runs; None where one cannot be measured.
        milliseconds: Of each search, or of the answer.
        failures: Why it fails, in words; empty for a case that passes.
        missing: Must-haves that no passage of some run met, or facts that the answer does not hold, in words.
        answer: None where it was not asked, or the model failed.
        found: The first run's passages, best first.
        forbidden: Must-not-haves that a passage of some run met, in words.
        stable: Whether all runs found the same passages in the same order.
    """

    case: Case
    metrics: Mapping[str, float | None]
    milliseconds: tuple[float, ...]
    failures: tuple[str, ...]
    missing: tuple[str, ...] = ()
    answer: Answer | None = None
    found: tuple[RetrievedContext, ...] = ()
    forbidden: tuple[str, ...] = ()
    stable: bool = True

    @property
    def passed(self) -> bool:
        """Whether it meets all its thresholds."""
        return not self.failures

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of ``ask``; None where it was not asked, or the model failed."""
        return None if self.answer is None else self.answer.outcome

    @property
    def refused(self) -> bool | None:
        """Whether ``ask`` refused; None where there is no answer."""
        return None if self.answer is None else self.answer.refused

    @property
    def latency_ms(self) -> float:
        """The median."""
        return median(self.milliseconds)

    def as_json(self) -> dict[str, object]:
        """Return the result of a search as plain values for ``json.dumps``."""
        return {
            "name": self.case.name,
            "query": self.case.query,
            "passed": self.passed,
            "failures": list(self.failures),
            **self.metrics,
            "answerable": self.case.answerable,
            "outcome": self.outcome,
            "refused": self.refused,
            "latency_ms": round(self.latency_ms, 3),
            "stable": self.stable,
            "missing": list(self.missing),
            "forbidden": list(self.forbidden),
            "found": [passage.source for passage in self.found],
            "departments": [passage.department for passage in self.found],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """The results of all cases.

    Attributes:
        results: In the cases' order.
        runs: How often each was searched.
    """

    results: tuple[CaseResult, ...]
    runs: int = 1

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(result.passed for result in self.results)

    def mean(self, metric: str) -> float | None:
        """A metric's average over the cases that it could be measured of; None where it could of none."""
        values = [value for result in self.results if (value := result.metrics[metric]) is not None]
        return fmean(values) if values else None

    def latency_ms(self, share: float) -> float:
        """The time that this share of all searches or answers, 0 to 1, stays below."""
        ordered = sorted(one for result in self.results for one in result.milliseconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def counts(self) -> dict[str, int]:
        """How many cases there are, passed and failed."""
        passed = sum(result.passed for result in self.results)
        return {"cases": len(self.results), "passed": passed, "failed": len(self.results) - passed}

    def outcomes(self) -> dict[str, int]:
        """How often cases that have an answer were answered, got passages, and got nothing."""
        ended = [result.outcome for result in self.results if result.case.answerable is not False]
        return {outcome: ended.count(outcome) for outcome in get_args(Outcome)}

    def latencies(self) -> dict[str, float]:
        """The median and the 95th percentile of the times."""
        return {"p50": round(self.latency_ms(0.5), 3), "p95": round(self.latency_ms(0.95), 3)}

    def as_json(self) -> dict[str, object]:
        """Return the results of searches as plain values for ``json.dumps``."""
        means = {name: self.mean(name) for name in _SCORES}
        return {
            "passed": self.passed,
            "summary": {**self.counts(), "runs": self.runs, **means, "latency_ms": self.latencies()},
            "cases": [result.as_json() for result in self.results],
        }


def tracked(items: Sequence[_T], progress: Progress | None) -> Iterator[_T]:
    """The items, one after the other; ``progress`` is told about each that is done."""
    for done, item in enumerate(items, start=1):
        yield item
        if progress is not None:
            progress(done, len(items))


def selected(suite: Suite, names: Sequence[str]) -> tuple[Case, ...]:
    """The cases that a person means.

    Args:
        suite: All there are.
        names: Names, or patterns of names with ``*`` and ``?``; none: every case.

    Raises:
        NotFoundError: A name or pattern fits no case.
    """
    for name in names:
        if not any(_fits(case, name) for case in suite.cases):
            known = ", ".join(case.name for case in suite.cases[:20])
            raise NotFoundError(f"No case is named {name!r}. There are: {known}{' …' if len(suite.cases) > 20 else ''}")
    return tuple(case for case in suite.cases if not names or any(_fits(case, name) for name in names))


def run_suite(
    suite: Suite,
    *,
    search: Search,
    ask: Ask,
    cases: Sequence[Case] | None = None,
    runs: int = 1,
    progress: Progress | None = None,
) -> SuiteResult:
    """Run test cases one after the other.

    Args:
        suite: The file's defaults and personas.
        search: Finds passages, best first.
        ask: Answers; called for cases that say whether they are answerable.
        cases: Some of the suite's; None: all.
        runs: How often each case is searched, 1 to 10,000; scores are averaged, latencies are kept.
        progress: Told about each finished case.

    Raises:
        UsageError: ``runs`` is out of range, or a case contradicts its persona.
    """
    if not 1 <= runs <= 10_000:
        raise UsageError(f"runs must be 1 to 10,000, not {runs!r}")
    chosen = suite.cases if cases is None else cases
    results = tuple(_run_case(suite, case, search, ask, runs) for case in tracked(chosen, progress))
    return SuiteResult(results=results, runs=runs)


def score(case: Case, found: Sequence[RetrievedContext]) -> dict[str, float]:
    """How well passages meet a case with must-haves, each 0 to 1.

    A passage is relevant if it meets any of the must-haves. Precision is the share of relevant ones among the passages
    found, recall the share of must-haves that are met, MRR 1 divided by the rank of the first relevant passage.

    Args:
        case: What is expected.
        found: Best first.
    """
    met = [[meets(passage, wanted) for wanted in case.must_have] for passage in found]
    relevant = [any(one) for one in met]
    return {
        "precision": sum(relevant) / len(relevant) if relevant else 0.0,
        "recall": sum(map(any, zip(*met, strict=True))) / len(case.must_have),
        "mrr": 1 / (relevant.index(True) + 1) if any(relevant) else 0.0,
    }


def meets(passage: RetrievedContext, wanted: Evidence) -> bool:
    """Whether a passage has what a must-have, or must-not-have, asks for."""
    return (not wanted.source or passage.source in wanted.source) and wanted.words_in(passage.content)


def below(thresholds: Thresholds, metrics: Mapping[str, float | None], missing: Sequence[str]) -> list[str]:
    """The metrics that do not reach their thresholds, in words.

    Args:
        thresholds: What is to be reached.
        metrics: By name.
        missing: What a low recall has missed.
    """
    failures = []
    for name, value in metrics.items():
        least = getattr(thresholds, name, None)
        # What is 2/3 to a person is no failure at 0.667.
        if least is not None and value is not None and value < least - 1e-3:
            detail = f" (missing: {'; '.join(missing)})" if name in ("recall", "fact_recall") and missing else ""
            failures.append(f"{name} {value:.2f} is below {least:g}{detail}")
    return failures


def misjudged(case: Case, answer: Answer) -> list[str]:
    """Whether a question that has an answer gets none, or one that has none is answered, in words.

    A question without an answer may end in passages as well as in nothing.
    """
    if case.answerable is False:
        return ["answered, though it has no answer"] if answer.outcome == "answer" else []
    return [] if answer.outcome == "answer" else [_WITHOUT_ANSWER[answer.outcome]]


def _run_case(suite: Suite, case: Case, search: Search, ask: Ask, runs: int) -> CaseResult:
    asked = suite.search(case)
    latencies, replies = [], []
    for _ in range(runs):
        started = time.perf_counter()
        replies.append(tuple(search(asked)))
        latencies.append((time.perf_counter() - started) * 1000)
    shown = [tuple((hit.source, hit.content) for hit in reply) for reply in replies]
    different = dict(zip(shown, replies, strict=True))
    metrics: dict[str, float | None] = dict.fromkeys(_SCORES)
    if case.must_have:
        scores = {key: score(case, reply) for key, reply in different.items()}
        metrics = {name: fmean(scores[key][name] for key in shown) for name in _SCORES}
    answer = None if case.answerable is None else ask(asked)
    met = [
        {wanted for wanted in (*case.must_have, *case.must_not_have) if any(meets(hit, wanted) for hit in reply)}
        for reply in different.values()
    ]
    missing = tuple(str(wanted) for wanted in case.must_have if not all(wanted in one for one in met))
    forbidden = tuple(str(banned) for banned in case.must_not_have if any(banned in one for one in met))
    thresholds, latency = suite.thresholds(case), median(latencies)
    failures = [f"found what it must not: {evidence}" for evidence in forbidden]
    failures += [] if answer is None else misjudged(case, answer)
    failures += below(thresholds, metrics, missing)
    if thresholds.latency_ms is not None and latency > thresholds.latency_ms:
        failures.append(f"took {latency:,.1f} ms, more than {thresholds.latency_ms:g}")
    return CaseResult(
        case=case,
        metrics=metrics,
        milliseconds=tuple(latencies),
        failures=tuple(failures),
        missing=missing,
        answer=answer,
        found=replies[0],
        forbidden=forbidden,
        stable=len(different) == 1,
    )


def _fits(case: Case, name: str) -> bool:
    return case.name == name or fnmatchcase(case.name, name)
