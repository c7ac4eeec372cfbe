"""What documents and memory weigh in a context, and how feedback moves that. Pure: no I/O, no clock, no chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from recollect.errors import UsageError
from recollect.model.arguments import checked
from recollect.model.feedback import FeedbackCounts
from recollect.model.record import Public, Record, public

_TOLERANCE = 0.01

#: So many more helpful passages of one side than of the other move the weights half as far as they may.
HALFWAY = 10

#: Neither side's weight becomes less by feedback.
LEAST = 0.1


@checked
@dataclass(frozen=True, slots=True)
class RetrievalWeights(Record):
    """What documents and memory weigh, which is also their share of the budget; both add up to 1.

    Attributes:
        rag: Of documents, 0 to 1.
        memory: Of conversations, 0 to 1.

    Raises:
        UsageError: One of them lies outside 0 to 1, or they do not add up to 1 (within 0.01).

    Example:
        >>> RetrievalWeights.rag_focused()
        RetrievalWeights(rag=0.7, memory=0.3)
    """

    rag: Public[float]
    memory: Public[float]

    def __post_init__(self) -> None:
        for name, weight in (("rag", self.rag), ("memory", self.memory)):
            if not 0 <= weight <= 1:
                raise UsageError(f"The weight {name!r} must lie between 0 and 1, not {weight!r}.")
        # A hair more than the tolerance, for 0.51 + 0.5 is not 1.01 in binary.
        if abs(self.rag + self.memory - 1) > _TOLERANCE + 1e-9:
            raise UsageError(
                f"The weights must add up to 1: rag {self.rag!r} and memory {self.memory!r} are "
                f"{self.rag + self.memory:g}."
            )

    @classmethod
    def balanced(cls) -> RetrievalWeights:
        """Half and half."""
        return cls(0.5, 0.5)

    @classmethod
    def rag_focused(cls) -> RetrievalWeights:
        """Documents 70 %, memory 30 %."""
        return cls(0.7, 0.3)

    @classmethod
    def memory_focused(cls) -> RetrievalWeights:
        """Documents 40 %, memory 60 %."""
        return cls(0.4, 0.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightAdaptation(Record):
    """How feedback has moved weights.

    Attributes:
        base: As configured.
        weights: As used.
        shift: What was added to memory's weight, and taken from documents'.
        tenant: The feedback on contexts of no session in particular.
        session: The feedback on contexts of the session.
    """

    base: Public[RetrievalWeights]
    weights: Public[RetrievalWeights]
    shift: Public[float]
    tenant: Public[FeedbackCounts]
    session: Public[FeedbackCounts]

    @property
    @public
    def explanation(self) -> str:
        """In words, for ``explain``."""
        if not (self.tenant.total or self.session.total):
            return "no feedback yet: the weights are as configured"
        return (
            f"memory {self.base.memory:.2f} {'+' if self.shift >= 0 else '-'} {abs(self.shift):.2f}; "
            f"in general: {_words(self.tenant)}; in this session: {_words(self.session)}"
        )


#: Says what feedback makes of weights in a session, or, where there is none, in general.
Adapt: TypeAlias = Callable[[RetrievalWeights, str | None], WeightAdaptation]


def adapted(
    base: RetrievalWeights, *, tenant: FeedbackCounts, session: FeedbackCounts, max_shift: float
) -> WeightAdaptation:
    """Weights moved towards the side whose passages have helped more.

    What has helped and what has not is counted, and the shift computed from the counts alone: it does not depend on the
    order in which feedback came, one piece is undone by its opposite, and all of it by forgetting the counts. It grows
    with the difference d between the sides as d / (|d| + `HALFWAY`), so that no amount of feedback passes the bounds.

    Args:
        base: As configured; where one side weighs nothing, it stays so.
        tenant: Feedback on contexts of no session in particular.
        session: Feedback on contexts of the session.
        max_shift: How far memory's weight may move at most, 0 to 1.
    """
    shift = 0.0
    if base.rag > 0 and base.memory > 0:
        wanted = max_shift * (_leaning(tenant) + _leaning(session))
        # A side that weighs less than the least already does not lose any more.
        lowest, highest = min(LEAST, base.memory), max(1 - LEAST, base.memory)
        shift = min(max(base.memory + min(max(wanted, -max_shift), max_shift), lowest), highest) - base.memory
    memory = base.memory + shift
    return WeightAdaptation(
        base=base,
        weights=base if shift == 0 else RetrievalWeights(max(0.0, 1 - memory), memory),
        shift=shift,
        tenant=tenant,
        session=session,
    )


def _leaning(counts: FeedbackCounts) -> float:
    """Towards memory, -1 to 1."""
    difference = (counts.memory_helpful - counts.memory_not) - (counts.documents_helpful - counts.documents_not)
    return difference / (abs(difference) + HALFWAY)


def _words(counts: FeedbackCounts) -> str:
    if not counts.total:
        return "none"
    return (
        f"documents {counts.documents_helpful} helpful, {counts.documents_not} not, "
        f"memory {counts.memory_helpful} helpful, {counts.memory_not} not"
    )
