"""Answers with their citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired

from recollect.model.answer import Citation, UnsupportedSentence
from recollect.model.outline import PageBox
from recollect.model.record import json_of
from recollect.model.usage import TokenUsage
from recollect.replies._shape import Shape, rounded

if TYPE_CHECKING:
    from recollect.model import Answer
    from recollect.model.answer import Nearest


class NearestJson(Shape):
    """The evidence that came closest to supporting an answer, and fell short."""

    document_id: int
    source: str
    department: str | None
    section: str | None
    """Titles of the headings that the quote stands under, joined by ` > `; null outside any section."""
    page: int | None
    """That the quote begins on, from 1; null where the format has no pages."""
    last_page: int | None
    """That it ends on."""
    start_offset: int
    """Where the quote begins in the document's content, in characters."""
    end_offset: int
    """Just behind its last character."""
    quote: str
    """Exactly the characters `start_offset` to `end_offset` of the document's content."""
    boxes: NotRequired[list[PageBox]]
    """Where the lines of the quote stand on their pages, of PDF files and of pages whose text was recognised."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""

    probability: float
    """Estimated probability that the evidence answers the question, 0 to 1."""
    threshold: float
    """What the probability had to reach."""
    missing_identifier: bool
    """Whether it fell short because the question names an identifier that no passage holds."""


class AnswerJson(Shape):
    """An answer with the characters that it rests on, or a refusal."""

    question: str
    """As asked."""
    answer: str
    """With markers such as `[1]`; the refusal sentence where nothing supports an answer."""
    refused: bool
    citations: Sequence[Citation]
    """In order of their markers; empty for a refusal."""
    model: str | None
    """The language model that was asked for it; null where none was."""
    generated_by: str | None
    """The language model that wrote the text; null: it is quoted from documents."""
    usage: TokenUsage | None
    """What that cost; null where none was asked."""
    unsupported: Sequence[UnsupportedSentence]
    """The sentences that the sources do not support, in order."""
    rewritten_question: str | None
    """The question that was searched for and answered, where it is another than was asked."""
    timings_ms: dict[str, float]
    """Milliseconds by stage."""
    nearest: NotRequired[NearestJson | None]
    """What came nearest to a refusal's answer; where an explanation was asked for."""
    warnings: NotRequired[list[str]]
    """Names servers and parts that failed or did not reply, and says why nothing was found."""


def answer_json(answer: Answer, *, explain: bool = False, warnings: Sequence[str] = ()) -> AnswerJson:
    """An answer.

    Args:
        answer: To a question.
        explain: Whether what came nearest to a refusal's answer is shown.
        warnings: Why nothing was found.
    """
    shown: AnswerJson = {
        "question": answer.question,
        "answer": answer.text,
        "refused": answer.refused,
        "citations": json_of(answer.citations),
        "model": answer.model,
        "generated_by": answer.model,
        "usage": json_of(answer.usage),
        "unsupported": json_of(answer.unsupported),
        "rewritten_question": answer.rewritten_question,
        "timings_ms": rounded(answer.timings_ms),
    }
    if explain and answer.refused:
        shown["nearest"] = None if answer.nearest is None else _nearest(answer.nearest)
    if answer.warnings or warnings:
        shown["warnings"] = [*answer.warnings, *warnings]
    return shown


def _nearest(nearest: Nearest) -> NearestJson:
    told = json_of(nearest.evidence)
    return {
        **{key: told[key] for key in NearestJson.__annotations__ if key in told},  # type: ignore[typeddict-item]
        "probability": round(nearest.probability, 4),
        "threshold": nearest.threshold,
        "missing_identifier": nearest.missing_identifier,
    }
