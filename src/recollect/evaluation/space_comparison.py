"""How a collection is searched in two vector spaces: on test cases, or on questions drawn from its own chunks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recollect.errors import UsageError
from recollect.evaluation.cases import Suite
from recollect.evaluation.compare import Comparison, SystemRun, compare
from recollect.evaluation.outcomes import Outcome, check_cases, run
from recollect.evaluation.rag_test import Search

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
