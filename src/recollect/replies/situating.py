"""What situating the chunks of a collection in their documents would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.replies._shape import Shape

if TYPE_CHECKING:
    from recollect.model.contexts import ContextEstimate


class ContextEstimateJson(Shape):
    """What would be asked of a language model."""

    model: str
    """Which, as `provider/model`."""
    documents: int
    """With a chunk that this model was not asked about."""
    chunks: int
    """Of these documents."""
    input_tokens: int
    """About; a quarter of the bytes."""
    output_tokens: int
    """About."""
    cost: float | None
    """Of these, by the configured prices; null: they are not known."""


def context_estimate_json(estimate: ContextEstimate) -> ContextEstimateJson:
    """An estimate."""
    return {
        "model": estimate.model,
        "documents": estimate.documents,
        "chunks": estimate.chunks,
        "input_tokens": estimate.input_tokens,
        "output_tokens": estimate.output_tokens,
        "cost": estimate.cost,
    }
