"""Several systems on the same queries, and whether the differences between them are real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from recollect.errors import UsageError
from recollect.evaluation.outcomes import Outcome, means, times
from recollect.evaluation.significance import PairedDifference, holm, paired_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRun:
    """One system on all queries of a task.

    Attributes:
        name: Of the system.
        outcomes: One a query, in the task's order.
    """

    name: str
    outcomes: tuple[Outcome, ...]

    def means(self) -> dict[str, float]:
        """Average figures by name."""
        return means([outcome.metrics for outcome in self.outcomes], np.sum)

    def times(self) -> dict[str, float]:
        """The median and the 95th percentile of the milliseconds of its searches."""
        return times([outcome.milliseconds for outcome in self.outcomes])

    def curve(self) -> list[float]:
        """Average recall at each of the task's points."""
        return [float(value) for value in np.mean([outcome.curve for outcome in self.outcomes], axis=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether two systems differ in a metric.

    Attributes:
        metric: Its name.
        first: Name of one system.
        second: Name of the other.
        result: What the paired tests say.
        corrected_p: The p-value, corrected for the number of pairs of systems.
    """

    metric: str
    first: str
    second: str
    result: PairedDifference
    corrected_p: float

    @property
    def real(self) -> bool:
        """Whether the difference is significant at 5 %."""
        return self.corrected_p < 0.05

    @property
    def winner(self) -> str | None:
        """The better system; None where no difference is shown."""
        if not self.real:
            return None
        return self.second if self.result.difference > 0 else self.first

    def figures(self) -> tuple[str, str, str]:
        """The difference, its interval and the corrected p, for people."""
        interval = f"{self.result.low:+.4f} … {self.result.high:+.4f}"
        p = "< 0.001" if self.corrected_p < 0.001 else f"{self.corrected_p:.3f}"
        return f"{self.result.difference:+.4f}", interval, p

    def in_words(self) -> str:
        """The verdict, for people."""
        return f"{self.winner} is better" if self.winner else "no difference shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several systems on the same queries.

    Attributes:
        runs: The systems, in the order given.
        verdicts: For every metric, every pair of systems.
        confidence: Of the intervals.
    """

    runs: tuple[SystemRun, ...]
    verdicts: tuple[Verdict, ...]
    confidence: float = 0.95

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        return {
            "queries": len(self.runs[0].outcomes),
            "systems": [{"name": run.name, "metrics": run.means(), "query_ms": run.times()} for run in self.runs],
            "comparisons": [
                {
                    "metric": verdict.metric,
                    "first": verdict.first,
                    "second": verdict.second,
                    "difference": verdict.result.difference,
                    "interval": [verdict.result.low, verdict.result.high],
                    "confidence": self.confidence,
                    "p_value": verdict.result.p_value,
                    "corrected_p_value": verdict.corrected_p,
                    "better": verdict.result.better,
                    "worse": verdict.result.worse,
                    "significant": verdict.real,
                }
                for verdict in self.verdicts
            ],
        }


def compare(runs: Sequence[SystemRun], *, samples: int = 10_000, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Test every pair of systems in every metric, by `paired_difference`.

    p-values are corrected by Holm's method for the pairs of systems, not for the metrics: choose the metric that counts
    before you look.

    Args:
        runs: Two or more systems on the same queries.
        samples: Random draws of each test.
        confidence: Of the bootstrap intervals.
        seed: Of the random numbers.

    Raises:
        UsageError: There is only one system, two have one name, or they ran on different queries.
    """
    names = [run.name for run in runs]
    if len(set(names)) != len(names) or len(runs) < 2:
        raise UsageError(f"a comparison needs two or more systems of different names, not {names}")
    queries = [[outcome.query_id for outcome in run.outcomes] for run in runs]
    if not queries[0] or any(other != queries[0] for other in queries):
        raise UsageError("the systems ran on different queries, or on none: nothing can be compared")
    verdicts: list[Verdict] = []
    for metric in runs[0].means():
        pairs = list(combinations(runs, 2))
        figures = {run.name: [outcome.metrics[metric] for outcome in run.outcomes] for run in runs}
        results = [
            paired_difference(figures[a.name], figures[b.name], samples=samples, confidence=confidence, seed=seed)
            for a, b in pairs
        ]
        corrected = holm([result.p_value for result in results])
        verdicts += [
            Verdict(metric=metric, first=a.name, second=b.name, result=result, corrected_p=p)
            for (a, b), result, p in zip(pairs, results, corrected, strict=True)
        ]
    return Comparison(runs=tuple(runs), verdicts=tuple(verdicts), confidence=confidence)
