"""Several systems on the same queries, and whether the differences between them are real."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.evaluation.case_files import Suite
from recollect.evaluation.rag_test import Search
from recollect.evaluation.scoring import Outcome, check_cases, means, run, times

# Whether a difference between two systems is more than chance. Pure: paired figures in, a verdict out.


Values = npt.NDArray[np.float64]

#: Fewer differing queries than this are tried in every combination of signs.
_EXACT_BELOW = 13
# Draws made at once; bounds the memory to a few megabytes for thousands of queries.
_BLOCK_VALUES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The difference between two systems on the same queries: second minus first.

    Attributes:
        difference: Mean of the second system less mean of the first.
        interval: The ends of the bootstrap interval of the difference.
        confidence: Share of bootstrap means that the interval holds.
        p_value: Probability of a difference at least this large, in either direction, if only chance told the systems
            apart.
        better: Queries on which the second system scores higher.
        worse: Queries on which it scores lower.
    """

    difference: float
    interval: tuple[float, float]
    confidence: float
    p_value: float
    better: int
    worse: int


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    samples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> PairedDifference:
    """Compare two systems by their figures on the same queries.

    The p-value is that of Fisher's randomisation test (Smucker, Allan and Carterette 2007): if the systems were alike,
    each query's difference could as well have the opposite sign. Up to 12 differing queries are tried exactly; beyond
    that, ``samples`` random assignments of signs are, and the observed one counts among them: a p-value is never 0. The
    interval is the percentile bootstrap over queries (Efron 1979).

    Args:
        first: A figure per query.
        second: Those of the other system, in the same order.
        samples: Random draws for each of the two, 100 to 10 million.
        confidence: Share of bootstrap means that the interval holds, above 0 and below 1.
        seed: Of the random numbers: the same seed gives the same result.

    Raises:
        UsageError: The lengths differ, there are no figures or some that are not finite, or an option is out of range.
    """
    if not 100 <= samples <= 10_000_000 or not 0 < confidence < 1:
        raise UsageError(
            f"samples must be 100 to 10,000,000 and confidence between 0 and 1, not {samples} and {confidence}"
        )
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != two.shape or not len(one):
        raise UsageError(f"a paired comparison needs as many figures of both systems, not {len(one)} and {len(two)}")
    differences = two - one
    if not np.isfinite(differences).all():
        raise UsageError("a paired comparison needs finite figures")
    random = np.random.default_rng(seed)
    tails = [100 * (1 - confidence) / 2, 100 * (1 + confidence) / 2]
    low, high = np.percentile(_bootstrap_means(differences, samples, random), tails).tolist()
    return PairedDifference(
        difference=float(differences.mean()),
        interval=(low, high),
        confidence=confidence,
        p_value=_randomisation_p(differences, samples, random),
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm 1979): below the level, each may be believed at that level.

    Args:
        p_values: Of tests that are looked at together, in any order; the result has the same order.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for done, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - done) * p_values[index]))
        corrected[index] = highest
    return corrected


def _randomisation_p(differences: Values, samples: int, random: np.random.Generator) -> float:
    differing = differences[differences != 0]
    count = len(differing)
    if not count:
        return 1.0
    # Sums that are equal on paper may differ in their last bits: those count as reached.
    reach = abs(float(differing.sum())) - 1e-12 * float(np.abs(differing).sum())
    if count < _EXACT_BELOW:
        numbers = np.arange(2**count)
        signs = 1.0 - 2.0 * ((numbers[:, None] >> np.arange(count)) & 1)
        return float((np.abs(signs @ differing) >= reach).mean())
    reached = 0
    for size in _blocks(samples, count):
        signs = 1.0 - 2.0 * random.integers(0, 2, size=(size, count), dtype=np.int8)
        reached += int((np.abs(signs @ differing) >= reach).sum())
    return (reached + 1) / (samples + 1)


def _bootstrap_means(differences: Values, samples: int, random: np.random.Generator) -> Values:
    count = len(differences)
    means = [
        differences[random.integers(0, count, size=(size, count))].mean(axis=1) for size in _blocks(samples, count)
    ]
    return np.concatenate(means)


def _blocks(samples: int, width: int) -> list[int]:
    size = max(1, _BLOCK_VALUES // width)
    return [min(size, samples - start) for start in range(0, samples, size)]


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
        interval = " … ".join(f"{end:+.4f}" for end in self.result.interval)
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
                    **asdict(verdict.result),
                    "corrected_p_value": verdict.corrected_p,
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


# How a collection is searched in two vector spaces: on test cases, or on questions drawn from its own chunks.


#: Passages that are compared.
TOP = 10

_OVERLAP = f"overlap@{TOP}"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """A question drawn from a chunk, which an answer should hold."""

    chunk_id: int
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceComparison:
    """The results of the same questions in two vector spaces, the one in use and another.

    Attributes:
        of: What was asked: ``cases`` that somebody wrote, or ``samples``, drawn from the collection's own chunks.
        comparison: Figures of both, the one that is used first, and what paired tests say of them.
        overlap: Share of the best passages that both find; None: of cases, where each says what is right.
    """

    of: Literal["cases", "samples"]
    comparison: Comparison
    overlap: float | None = None

    def figures(self) -> dict[str, float]:
        """Return the figures of the other space by name."""
        shared = {} if self.overlap is None else {_OVERLAP: self.overlap}
        return self.comparison.runs[-1].means() | shared

    def below(self, minimum: Mapping[str, float]) -> tuple[str, ...]:
        """The figures of the other space that do not reach what is wanted of them, in words.

        Raises:
            UsageError: There is no such figure.
        """
        found = self.figures()
        if unknown := sorted(set(minimum) - set(found)):
            raise UsageError(f"There is no figure {unknown[0]!r} to reach: there are {', '.join(sorted(found))}.")
        return tuple(
            f"{name} is {found[name]:.3f}, below {least:g}" for name, least in minimum.items() if found[name] < least
        )

    def as_json(self) -> dict[str, object]:
        """Plain values for ``json.dumps``."""
        shared = {} if self.overlap is None else {_OVERLAP: self.overlap}
        return {"of": self.of, **shared, **self.comparison.as_json()}


def sample_of(chunk_id: int, title: str, section: Sequence[str], text: str) -> Sample:
    """A question that a chunk should answer: the heading it stands under with what it begins with."""
    first = _SENTENCE.split(" ".join(text.split()), maxsplit=1)[0][:_MOST_CHARACTERS]
    heading = section[-1] if section else title
    return Sample(chunk_id, first if heading in first else f"{heading}: {first}")


def compare_samples(
    samples: Sequence[Sample],
    first: Callable[[str], Sequence[int]],
    second: Callable[[str], Sequence[int]],
    *,
    names: tuple[str, str],
) -> SpaceComparison:
    """Ask the questions in both spaces.

    Args:
        samples: At least one.
        first: Gives the best chunks by the vectors of the space that is used.
        second: Those of the other.
        names: Of both models.
    """

    def asked(search: Callable[[str], Sequence[int]]) -> list[tuple[Outcome, Sequence[int]]]:
        return run(samples, lambda sample: list(search(sample.query))[:TOP], _outcome)

    found = [asked(first), asked(second)]
    shared = [len(set(one) & set(two)) / max(len(one), len(two), 1) for (_, one), (_, two) in zip(*found, strict=True)]
    runs = [
        SystemRun(name=name, outcomes=tuple(outcome for outcome, _ in own))
        for name, own in zip(names, found, strict=True)
    ]
    return SpaceComparison(of="samples", comparison=compare(runs), overlap=float(np.mean(shared)))


def compare_cases(suite: Suite, first: Search, second: Search, *, names: tuple[str, str]) -> SpaceComparison:
    """Run test cases in both spaces.

    Args:
        suite: With cases that have must-haves.
        first: Finds passages with the space that is used.
        second: Finds them with the other.
        names: Of both models.

    Raises:
        UsageError: No case has must-haves.
    """
    runs = [
        SystemRun(name=name, outcomes=tuple(check_cases(suite, search)))
        for name, search in zip(names, (first, second), strict=True)
    ]
    return SpaceComparison(of="cases", comparison=compare(runs))


def _outcome(sample: Sample, chunk_ids: Sequence[int], milliseconds: float) -> tuple[Outcome, Sequence[int]]:
    rank = chunk_ids.index(sample.chunk_id) + 1 if sample.chunk_id in chunk_ids else None
    metrics = {f"found@{TOP}": float(rank is not None), "mrr": 0.0 if rank is None else 1 / rank}
    outcome = Outcome(query_id=str(sample.chunk_id), query=sample.query, metrics=metrics, milliseconds=milliseconds)
    return outcome, chunk_ids
