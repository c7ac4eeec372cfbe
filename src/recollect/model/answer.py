"""An answer and the characters that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.model.passage import PassageNote

REFUSAL = "I don't have information about that in the approved knowledge base."


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Where a quoted piece of an answer stands.

    ``quote`` is exactly ``content[start_offset:end_offset]`` of the document's current version.

    Attributes:
        marker: The number in brackets in the answer's text, from 1.
        section: Titles of the headings that the quote stands under, joined by `` > ``; None outside any section.
        page: The page that the quote begins on, from 1; None where the format has no pages.
        last_page: The page that it ends on.
        department: The document's.
        notes: Why what is quoted is not the last word; see `recollect.model.PassageNote`.
    """

    marker: int
    document_id: int
    source: str
    section: str | None
    page: int | None
    start_offset: int
    end_offset: int
    quote: str
    department: str | None = None
    last_page: int | None = None
    notes: tuple[PassageNote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The evidence that came closest to supporting an answer, and fell short.

    Attributes:
        evidence: The best quotable piece; its marker is 0, since no text cites it.
        probability: Estimated probability that the evidence answers the question, 0 to 1.
        threshold: What the probability had to reach.
        missing_identifier: Whether it fell short because the question names an identifier that no passage holds.
    """

    evidence: Citation
    probability: float
    threshold: float
    missing_identifier: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What ``ask`` replies.

    Attributes:
        question: As asked.
        text: The answer, with markers such as ``[1]``; the refusal sentence where nothing supports one.
        refused: Whether it is a refusal.
        citations: In order of their markers; empty for a refusal.
        timings_ms: Milliseconds by stage.
        nearest: For a refusal without a language model: the evidence that fell short; None where there was none.
    """

    question: str
    text: str
    refused: bool
    citations: tuple[Citation, ...]
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    nearest: Nearest | None = None
