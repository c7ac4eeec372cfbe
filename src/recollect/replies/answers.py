"""Answers with their citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired

from recollect.model.answer import UnsupportedReason
from recollect.replies._shape import Shape, rounded
from recollect.replies.passages import PassageNoteJson, passage_notes_json

if TYPE_CHECKING:
    from recollect.model import Answer
    from recollect.model.answer import Citation, Nearest
    from recollect.model.usage import TokenUsage


class PageBoxJson(Shape):
    """A rectangle on a page, as shares of its width and height from its upper left corner, 0 to 1."""

    page: int
    """From 1."""
    left: float
    top: float
    right: float
    bottom: float


class QuotedPlaceJson(Shape):
    """A quote, and where it stands in its document."""

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
    boxes: NotRequired[list[PageBoxJson]]
    """Where the lines of the quote stand on their pages, of PDF files and of pages whose text was recognised."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""


class CitationJson(QuotedPlaceJson):
    """What a marker in an answer's text rests on."""

    marker: int
    """The number in brackets in the answer's text, from 1."""
    support: NotRequired[float]
    """How well the quote supports what cites it, 0 to 1; of answers that a model wrote."""
    collection: NotRequired[str]
    """Where the document is, in an answer from several collections."""
    server: NotRequired[str]
    """The remote whose document it is; `document_id` is negative then, and `source` names it there."""
    notes: NotRequired[list[PassageNoteJson]]
    """Why what is quoted is not the last word."""


class TokenUsageJson(Shape):
    """What an answer cost its language model."""

    input_tokens: int
    """Of all prompts."""
    output_tokens: int
    """Of all that the model wrote."""
    requests: int
    """How often it was asked."""
    estimated: bool
    """Whether the numbers are counted here, because the model's server did not tell."""


class UnsupportedSentenceJson(Shape):
    """A sentence that a language model wrote and the sources do not support."""

    text: str
    """As it stands in the answer, or stood before it was removed."""
    start_offset: int | None
    """Where it begins in the answer's text; null where it was removed."""
    end_offset: int | None
    """Just behind it; null where it was removed."""
    reason: UnsupportedReason
    detail: str
    """The reason in words."""


class NearestJson(QuotedPlaceJson):
    """The evidence that came closest to supporting an answer, and fell short."""

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
    citations: list[CitationJson]
    """In order of their markers; empty for a refusal."""
    model: str | None
    """The language model that was asked for it; null where none was."""
    generated_by: str | None
    """The language model that wrote the text; null: it is quoted from documents."""
    usage: TokenUsageJson | None
    """What that cost; null where none was asked."""
    unsupported: list[UnsupportedSentenceJson]
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
        "citations": [citation_json(citation) for citation in answer.citations],
        "model": answer.model,
        "generated_by": answer.model,
        "usage": None if answer.usage is None else token_usage_json(answer.usage),
        "unsupported": [
            {
                "text": one.text,
                "start_offset": one.start_offset,
                "end_offset": one.end_offset,
                "reason": one.reason,
                "detail": one.detail,
            }
            for one in answer.unsupported
        ],
        "rewritten_question": answer.rewritten_question,
        "timings_ms": rounded(answer.timings_ms),
    }
    if explain and answer.refused:
        shown["nearest"] = None if answer.nearest is None else _nearest(answer.nearest)
    if answer.warnings or warnings:
        shown["warnings"] = [*answer.warnings, *warnings]
    return shown


def citation_json(citation: Citation) -> CitationJson:
    """A citation of an answer."""
    shown: CitationJson = {
        "marker": citation.marker,
        **_quoted_place(citation),  # type: ignore[typeddict-item]  # it has none of the optional keys
    }
    if citation.support is not None:
        shown["support"] = citation.support
    if citation.collection is not None:
        shown["collection"] = citation.collection
    if citation.server is not None:
        shown["server"] = citation.server
    if citation.notes:
        shown["notes"] = passage_notes_json(citation.notes)
    return shown


def token_usage_json(usage: TokenUsage) -> TokenUsageJson:
    """What an answer, or a conversation, cost its language model."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "requests": usage.requests,
        "estimated": usage.estimated,
    }


def _quoted_place(citation: Citation) -> QuotedPlaceJson:
    shown: QuotedPlaceJson = {
        "document_id": citation.document_id,
        "source": citation.source,
        "department": citation.department,
        "section": citation.section,
        "page": citation.page,
        "last_page": citation.last_page,
        "start_offset": citation.start_offset,
        "end_offset": citation.end_offset,
        "quote": citation.quote,
    }
    if citation.id is not None:
        shown["id"] = citation.id
    if citation.boxes:
        shown["boxes"] = [
            {"page": one.page, "left": one.left, "top": one.top, "right": one.right, "bottom": one.bottom}
            for one in citation.boxes
        ]
    return shown


def _nearest(nearest: Nearest) -> NearestJson:
    return {
        **_quoted_place(nearest.evidence),
        "probability": round(nearest.probability, 4),
        "threshold": nearest.threshold,
        "missing_identifier": nearest.missing_identifier,
    }
