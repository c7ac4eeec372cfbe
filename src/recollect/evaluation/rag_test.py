"""Runs test cases against an engine that is handed over as two plain functions, and judges them by their thresholds."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import fmean, median

from recollect.errors import NotFoundError, UsageError
from recollect.evaluation.cases import Case, CaseSearch, Evidence, Suite, Thresholds

#: Called after each case with how many are done, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a search returned.

    Attributes:
        source: Its document's.
        text: What it says.
        place: For people: source, section, page.
        document_id: Its document.
        mentions: Other documents that are named beside it, by source and id: a newer one, for instance.
        department: Its document's.
    """

    source: str
    text: str
    place: str = ""
    document_id: int | None = None
    mentions: tuple[tuple[str, int], ...] = ()
    department: str | None = None


#: Finds the passages that a case asks for, best first.
Search = Callable[[CaseSearch], Sequence[Found]]
#: Answers what a case asks; returns whether the answer is a refusal.
Refuses = Callable[[CaseSearch], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How well passages meet a case, each 0 to 1."""

    precision: float
    recall: float
    mrr: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of a case.

    Attributes:
        case: The case.
        scores: Averages over the runs; None for a case without must-haves.
        refused: Whether ``ask`` refused; None where it was not asked.
        latencies_ms: Milliseconds of each search.
        found: The first run's passages, best first.
        missing: Must-haves that no passage of some run met.
        forbidden: Must-not-haves that a passage of some run met.
        stable: Whether all runs found the same passages in the same order.
        failures: Why it fails, in words; empty for a case that passes.
    """

    case: Case
    scores: Scores | None
    refused: bool | None
    latencies_ms: tuple[float, ...]
    found: tuple[Found, ...]
    missing: tuple[Evidence, ...]
    forbidden: tuple[Evidence, ...]
    stable: bool
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether it meets all its thresholds."""
        return not self.failures

    @property
    def latency_ms(self) -> float:
        """The median search."""
        return median(self.latencies_ms)

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        scores = self.scores
        return {
            "name": self.case.name,
            "query": self.case.query,
            "passed": self.passed,
            "failures": list(self.failures),
            "precision": scores.precision if scores else None,
            "recall": scores.recall if scores else None,
            "mrr": scores.mrr if scores else None,
            "answerable": self.case.answerable,
            "refused": self.refused,
            "latency_ms": round(self.latency_ms, 3),
            "stable": self.stable,
            "missing": [str(evidence) for evidence in self.missing],
            "forbidden": [str(evidence) for evidence in self.forbidden],
            "found": [passage.source for passage in self.found],
            "departments": [passage.department for passage in self.found],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """What became of all cases.

    Attributes:
        results: In the cases' order.
        runs: How often each was searched.
    """

    results: tuple[CaseResult, ...]
    runs: int

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(result.passed for result in self.results)

    def means(self) -> Scores | None:
        """Averages over the cases that have must-haves; None where none has."""
        scores = [result.scores for result in self.results if result.scores]
        if not scores:
            return None
        return Scores(
            precision=fmean(score.precision for score in scores),
            recall=fmean(score.recall for score in scores),
            mrr=fmean(score.mrr for score in scores),
        )

    def latency_ms(self, share: float) -> float:
        """The search time that this share of all searches, 0 to 1, stays below."""
        ordered = sorted(latency for result in self.results for latency in result.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        means = self.means()
        passed = sum(result.passed for result in self.results)
        return {
            "passed": self.passed,
            "summary": {
                "cases": len(self.results),
                "passed": passed,
                "failed": len(self.results) - passed,
                "runs": self.runs,
                "precision": means.precision if means else None,
                "recall": means.recall if means else None,
                "mrr": means.mrr if means else None,
                "latency_ms": {"p50": round(self.latency_ms(0.5), 3), "p95": round(self.latency_ms(0.95), 3)},
            },
            "cases": [result.as_json() for result in self.results],
        }


def selected(suite: Suite, names: Sequence[str]) -> tuple[Case, ...]:
    """The cases that a person means.

    Args:
        suite: All there are.
        names: Names, or patterns of names with ``*`` and ``?``; none: every case.

    Raises:
        NotFoundError: A name or pattern fits no case.
    """
    if not names:
        return suite.cases
    for name in names:
        if not any(_fits(case, name) for case in suite.cases):
            known = ", ".join(case.name for case in suite.cases[:20])
            raise NotFoundError(f"No case is named {name!r}. There are: {known}{' …' if len(suite.cases) > 20 else ''}")
    return tuple(case for case in suite.cases if any(_fits(case, name) for name in names))


def run_suite(
    suite: Suite,
    *,
    search: Search,
    refuses: Refuses,
    cases: Sequence[Case] | None = None,
    runs: int = 1,
    progress: Progress | None = None,
) -> SuiteResult:
    """Run test cases one after the other.

    Args:
        suite: The file's defaults and personas.
        search: Finds passages, best first.
        refuses: Answers and says whether it refused; called for cases that say whether they are answerable.
        cases: Some of the suite's; None: all.
        runs: How often each case is searched, 1 to 10,000; scores are averaged, latencies are kept.
        progress: Told about each finished case.

    Raises:
        UsageError: ``runs`` is out of range, or a case contradicts its persona.
    """
    if not 1 <= runs <= 10_000:
        raise UsageError(f"runs must be 1 to 10,000, not {runs!r}")
    chosen = suite.cases if cases is None else cases
    results = []
    for done, case in enumerate(chosen, start=1):
        results.append(_run_case(suite, case, search, refuses, runs))
        if progress is not None:
            progress(done, len(chosen))
    return SuiteResult(results=tuple(results), runs=runs)


def score(case: Case, found: Sequence[Found]) -> Scores | None:
    """How well passages meet a case; None for a case without must-haves.

    A passage is relevant if it meets any of the must-haves. Precision is the share of relevant ones among the passages
    found, recall the share of must-haves that are met, MRR 1 divided by the rank of the first relevant passage.

    Args:
        case: What is expected.
        found: Best first.
    """
    if not case.must_have:
        return None
    prepared = [(passage.source, plain(passage.text)) for passage in found]
    relevant = [any(_meets(passage, wanted) for wanted in case.must_have) for passage in prepared]
    met = sum(any(_meets(passage, wanted) for passage in prepared) for wanted in case.must_have)
    return Scores(
        precision=sum(relevant) / len(relevant) if relevant else 0.0,
        recall=met / len(case.must_have),
        mrr=1 / (relevant.index(True) + 1) if any(relevant) else 0.0,
    )


def meets(passage: Found, wanted: Evidence) -> bool:
    """Whether a passage has what a must-have, or must-not-have, asks for."""
    return _meets((passage.source, plain(passage.text)), wanted)


def plain(text: str) -> str:
    """A text as it is compared: compatible characters and case unified, runs of blanks as one."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _meets(passage: tuple[str, str], wanted: Evidence) -> bool:
    source, text = passage
    return (not wanted.source or source in wanted.source) and (
        not wanted.text or any(plain(words) in text for words in wanted.text)
    )


def _run_case(suite: Suite, case: Case, search: Search, refuses: Refuses, runs: int) -> CaseResult:
    asked = suite.search(case)
    latencies, replies = [], []
    for _ in range(runs):
        started = time.perf_counter()
        replies.append(tuple(search(asked)))
        latencies.append((time.perf_counter() - started) * 1000)
    scores = _averaged(case, replies)
    refused = None if case.answerable is None else refuses(asked)
    missing = _some(case.must_have, lambda wanted: any(not any(meets(p, wanted) for p in r) for r in set(replies)))
    forbidden = _some(case.must_not_have, lambda banned: any(meets(p, banned) for r in set(replies) for p in r))
    failures = [f"found what it must not: {evidence}" for evidence in forbidden]
    failures += _refusal_failures(case, refused)
    failures += _below(suite.thresholds(case), scores, median(latencies), missing)
    return CaseResult(
        case=case,
        scores=scores,
        refused=refused,
        latencies_ms=tuple(latencies),
        found=replies[0],
        missing=missing,
        forbidden=forbidden,
        stable=len(set(replies)) == 1,
        failures=tuple(failures),
    )


def _averaged(case: Case, replies: Sequence[tuple[Found, ...]]) -> Scores | None:
    by_reply = {reply: score(case, reply) for reply in set(replies)}
    scores = [found for reply in replies if (found := by_reply[reply]) is not None]
    if not scores:
        return None
    return Scores(
        precision=fmean(one.precision for one in scores),
        recall=fmean(one.recall for one in scores),
        mrr=fmean(one.mrr for one in scores),
    )


def _some(evidence: Iterable[Evidence], fits: Callable[[Evidence], bool]) -> tuple[Evidence, ...]:
    return tuple(one for one in evidence if fits(one))


def _refusal_failures(case: Case, refused: bool | None) -> list[str]:
    if refused is None or refused != case.answerable:
        return []
    return ["refused, though it has an answer" if refused else "answered, though it has no answer"]


def _below(thresholds: Thresholds, scores: Scores | None, latency_ms: float, missing: Sequence[Evidence]) -> list[str]:
    failures = []
    reached: Mapping[str, float] = (
        {"precision": scores.precision, "recall": scores.recall, "mrr": scores.mrr} if scores else {}
    )
    for name, value in reached.items():
        least: float | None = getattr(thresholds, name)
        # What is 2/3 to a person is no failure at 0.667.
        if least is not None and value < least - 1e-3:
            detail = f" (missing: {'; '.join(map(str, missing))})" if name == "recall" and missing else ""
            failures.append(f"{name} {value:.2f} is below {least:g}{detail}")
    if thresholds.latency_ms is not None and latency_ms > thresholds.latency_ms:
        failures.append(f"took {latency_ms:,.1f} ms, more than {thresholds.latency_ms:g}")
    return failures


def _fits(case: Case, name: str) -> bool:
    return case.name == name or fnmatchcase(case.name, name)
