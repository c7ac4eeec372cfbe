"""Bodies about the embedding model of a collection."""

from __future__ import annotations

from pydantic import Field

from recollect.operations.values import Name
from recollect.server.schemas.base import Body


class ReembedBody(Body):
    """A model that a collection is to be embedded with; the fields are the options of `recollect reembed`."""

    model: Name = Field(description="As its provider names it, or as collections show theirs.")
    provider: Name | None = Field(None, description="Whose model it is; left out: the configured one's.")
    dimensions: int | None = Field(None, ge=1, le=100_000, description="The length of a vector; left out: its own.")
    samples: int = Field(100, ge=0, le=1_000, description="Questions to compare both models by; 0: no comparison.")
    minimum: dict[Name, float] = Field(
        default_factory=dict,
        max_length=100,
        description="What figures of the new model must reach, by name.",
        # Of the names, pydantic says only which of them have these values.
        json_schema_extra={"additionalProperties": False},
    )
    switch: bool = Field(True, description="Whether to change to it in the end.")
    pause: float = Field(1.0, ge=0, le=1_000, description="Rest after each batch, in multiples of what it took.")


class RollbackBody(Body):
    """A change back to the model before."""

    pause: float = Field(0.0, ge=0, le=1_000, description="Rest after each batch, in multiples of what it took.")
