"""What searches, answers and requests came to: counts and times, added up by the minute."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from recollect.model.passage import SearchReply

#: What is counted, and its labels. ``search``: times of its stages, ``total`` among them; ``cache``: ``hit``, ``miss``;
#: ``found``: ``nothing``, ``low``, ``some``; ``answer``: ``answered``, ``refused``; ``feedback``: ``helpful``, ``not``;
#: ``limit``: requests that were refused because there were too many, by kind; ``size``: bytes of the ``database``.
ActivityName = Literal["search", "cache", "found", "answer", "feedback", "limit", "size"]

#: Results whose best relevance is below this answer little of a question.
LOW_RELEVANCE = 0.25

# Each step of the scale of times is so much longer than the one before: a percentile is off by a tenth at most.
_FIRST_MS = 0.05
_FACTOR = 1.2
_STEPS = 100


@dataclass(slots=True)
class Tally:
    """How often something happened, and how long it took.

    Attributes:
        count: How often.
        total: Milliseconds together, or whatever is measured.
        histogram: How many lay within each step of time.
    """

    count: int = 0
    total: float = 0.0
    histogram: dict[int, int] = field(default_factory=dict)

    def add(self, milliseconds: float | None = None) -> None:
        """Count one more."""
        self.count += 1
        if milliseconds is not None:
            self.total += milliseconds
            step = step_of(milliseconds)
            self.histogram[step] = self.histogram.get(step, 0) + 1

    def merge(self, other: Tally) -> None:
        """Count what another has counted."""
        self.count += other.count
        self.total += other.total
        for step, count in other.histogram.items():
            self.histogram[step] = self.histogram.get(step, 0) + count

    def percentile(self, share: float) -> float | None:
        """The milliseconds that this share of them took at most, about; None where none was timed."""
        return percentile(self.histogram, share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityRow:
    """What happened within a while.

    Attributes:
        at: When it begins.
        name: What.
        label: Of which kind.
        tally: How often, and how long it took.
    """

    at: datetime
    name: str
    label: str
    tally: Tally


def step_of(milliseconds: float) -> int:
    """The step of the scale that a time lies within."""
    if milliseconds <= _FIRST_MS:
        return 0
    return min(_STEPS - 1, math.ceil(math.log(milliseconds / _FIRST_MS, _FACTOR)))


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """The milliseconds that this share of what was counted took at most, about; None where nothing was."""
    wanted, passed = share * sum(histogram.values()), 0
    for step in sorted(histogram):
        passed += histogram[step]
        if passed >= wanted:
            return _FIRST_MS * _FACTOR ** (step - 0.5) if step else _FIRST_MS
    return None


def outcome_of(reply: SearchReply) -> str | None:
    """What a search leaves unanswered: ``nothing`` was found, or the best has ``low`` relevance; None: neither."""
    if not reply.results:
        return "nothing"
    relevances = [one.relevance for one in reply.results if one.relevance is not None]
    return "low" if relevances and max(relevances) < LOW_RELEVANCE else None
