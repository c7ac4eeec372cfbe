"""What feedback on contexts makes of the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.replies._shape import Shape
from recollect.replies.contexts import WeightsJson, weights_json

if TYPE_CHECKING:
    from recollect.context import WeightAdaptation
    from recollect.model.feedback import FeedbackCounts


class FeedbackCountsJson(Shape):
    """How many passages helped and how many did not, of documents and of memory."""

    documents_helpful: int
    documents_not: int
    memory_helpful: int
    memory_not: int


class WeightAdaptationJson(Shape):
    """How feedback has moved the weights of contexts."""

    on: bool
    """Whether contexts use it."""
    weights: WeightsJson
    """As used."""
    base: WeightsJson
    """As configured."""
    shift: float
    """What was added to memory's weight, and taken from documents'."""
    tenant: FeedbackCountsJson
    """The feedback on contexts of no conversation in particular."""
    session: FeedbackCountsJson
    """The feedback on contexts of the conversation."""
    explanation: str
    """The same in words."""


class ForgottenFeedbackJson(Shape):
    """Feedback that was forgotten."""

    forgotten: int
    """On how many passages it was."""


def weight_adaptation_json(adaptation: WeightAdaptation, *, on: bool) -> WeightAdaptationJson:
    """How feedback has moved the weights of contexts.

    Args:
        adaptation: By the feedback that there is.
        on: Whether contexts use it.
    """
    return {
        "on": on,
        "weights": weights_json(adaptation.weights),
        "base": weights_json(adaptation.base),
        "shift": adaptation.shift,
        "tenant": _counts(adaptation.tenant),
        "session": _counts(adaptation.session),
        "explanation": adaptation.explanation,
    }


def forgotten_feedback_json(count: int) -> ForgottenFeedbackJson:
    """Feedback on so many passages, forgotten."""
    return {"forgotten": count}


def _counts(counts: FeedbackCounts) -> FeedbackCountsJson:
    return {
        "documents_helpful": counts.documents_helpful,
        "documents_not": counts.documents_not,
        "memory_helpful": counts.memory_helpful,
        "memory_not": counts.memory_not,
    }
