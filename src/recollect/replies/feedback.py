"""What feedback on contexts makes of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.context.hybrid import RetrievalWeights
from recollect.model.feedback import FeedbackCounts
from recollect.model.record import json_of
from recollect.replies._shape import Shape

if TYPE_CHECKING:
    from recollect.context import WeightAdaptation


class WeightAdaptationJson(Shape):
    """How feedback has moved the weights of contexts."""

    on: bool
    """Whether contexts use it."""
    weights: RetrievalWeights
    """As used."""
    base: RetrievalWeights
    """As configured."""
    shift: float
    """What was added to memory's weight, and taken from documents'."""
    tenant: FeedbackCounts
    """The feedback on contexts of no conversation in particular."""
    session: FeedbackCounts
    """The feedback on contexts of the conversation."""
    explanation: str
    """The same in words."""


class ForgottenFeedbackJson(Shape):
    """Feedback that was forgotten."""

    forgotten: int
    """On how many passages it was."""


class JudgementJson(Shape):
    """Whether what was said of an answer was counted."""

    counted: bool
    """False: something was said of it before, which stays."""


def weight_adaptation_json(adaptation: WeightAdaptation, *, on: bool) -> WeightAdaptationJson:
    """How feedback has moved the weights of contexts.

    Args:
        adaptation: By the feedback that there is.
        on: Whether contexts use it.
    """
    told: WeightAdaptationJson = json_of(adaptation)
    told["on"] = on
    return told


def forgotten_feedback_json(count: int) -> ForgottenFeedbackJson:
    """Feedback on so many passages, forgotten."""
    return {"forgotten": count}
