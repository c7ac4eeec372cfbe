"""Sentences that situate chunks in their documents: what writing them takes, and took."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.model.record import Public, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEstimate(Record):
    """What would be asked of a language model.

    Attributes:
        model: Which, as ``provider/model``.
        documents: With a chunk that this model and the present prompt were not asked about.
        chunks: Of these documents.
        input_tokens: About; a quarter of the bytes.
        output_tokens: About.
        cost: Of these, by the configured prices; None: they are not known.
    """

    model: Public[str]
    documents: Public[int]
    chunks: Public[int]
    input_tokens: Public[int]
    output_tokens: Public[int]
    cost: Public[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport(Record):
    """What was written.

    Attributes:
        documents: That were contextualised.
        chunks: Of these.
        without: Chunks for which the model gave no sentence that could be used.
    """

    documents: Public[int]
    chunks: Public[int]
    without: Public[int]
