"""An answer and the characters that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from recollect.model.outline import PageBox
from recollect.model.passage import PassageNote, TokenUsage
from recollect.model.record import Public, PublicIfAny, PublicIfKnown, Record, public, public_as

REFUSAL = "I don't have information about that in the approved knowledge base."

#: What became of a question. ``answer``: the evidence is strong, and the text answers; ``passages``: no exact answer
#: was found, and the passages that came nearest are shown; ``none``: nothing relevant was found.
Outcome = Literal["answer", "passages", "none"]

#: Why a sentence of a language model counts as unsupported. ``uncited``: the whole answer cites nothing; ``no_source``:
#: a marker names no source that was given; ``wrong_source``: the source cited does not say it, or does not speak of it;
#: ``no_evidence``: no source says it; ``number``, ``date``, ``name``, ``identifier``: one of them is not in the
#: evidence, or is said there of something else; ``contradiction``: the evidence says the opposite.
UnsupportedReason = Literal[
    "uncited", "no_source", "wrong_source", "no_evidence", "number", "date", "name", "identifier", "contradiction"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation(Record):
    """Where a quoted piece of an answer stands.

    ``quote`` is exactly ``content[start_offset:end_offset]`` of the document's current version.

    Attributes:
        marker: The number in brackets in the answer's text, from 1.
        section: Titles of the headings that the quote stands under, joined by `` > ``; None outside any section.
        page: The page that the quote begins on, from 1; None where the format has no pages.
        last_page: The page that it ends on.
        department: The document's.
        notes: Why what is quoted is not the last word; see `recollect.model.PassageNote`.
        collection: Where the document is, in an answer from several collections; None: in the one that was asked.
        boxes: Where the lines of the quote stand on their pages, of PDF files and of pages whose text was recognised.
        support: How well the quote supports what cites it, 0 to 1; of an answer without a language model, whose
            sentences are the quotes, None.
        server: The remote whose document it is; None: this store's. ``document_id`` is negative then.
        id: The id that the document was given (`Document.id`); None: its source identifies it.
    """

    marker: Public[int]
    document_id: Public[int]
    source: Public[str]
    department: Public[str | None] = None
    section: Public[str | None]
    page: Public[int | None]
    last_page: Public[int | None] = None
    start_offset: Public[int]
    end_offset: Public[int]
    quote: Public[str]
    boxes: PublicIfAny[tuple[PageBox, ...]] = ()
    notes: PublicIfAny[tuple[PassageNote, ...]] = ()
    support: PublicIfKnown[float | None] = None
    collection: PublicIfKnown[str | None] = None
    server: PublicIfKnown[str | None] = None
    id: PublicIfKnown[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Highlight(Record):
    """Characters of a shown passage that speak for it most.

    Attributes:
        start_offset: Where they begin in the document's content.
        end_offset: Just behind the last one.
    """

    start_offset: Public[int]
    end_offset: Public[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPassage(Record):
    """A passage that may help: in place of an answer, or beside what is quoted from it.

    ``text`` is exactly ``content[start_offset:end_offset]`` of the document's current version.

    Attributes:
        marker: Its number, one more than the last citation's or passage's before it.
        section: Titles of the headings that it stands under, joined by `` > ``; None outside any section.
        page: The page that it begins on, from 1; None where the format has no pages.
        highlights: The sentences in it that are closest to the question, in order.
        department: The document's.
        notes: Why it is not the last word; see `recollect.model.PassageNote`.
        collection: Where the document is, in an answer from several collections; None: in the one that was asked.
        server: The remote whose document it is; None: this store's. ``document_id`` is negative then.
        id: The id that the document was given (`Document.id`); None: its source identifies it.
    """

    marker: Public[int]
    document_id: Public[int]
    source: Public[str]
    department: Public[str | None] = None
    section: Public[str | None]
    page: Public[int | None]
    start_offset: Public[int]
    end_offset: Public[int]
    text: Public[str]
    highlights: Public[tuple[Highlight, ...]]
    notes: PublicIfAny[tuple[PassageNote, ...]] = ()
    collection: PublicIfKnown[str | None] = None
    server: PublicIfKnown[str | None] = None
    id: PublicIfKnown[str | None] = None


@dataclass(frozen=True, slots=True)
class Decided(Record):
    """The outcome of a question, known before the first text of its answer.

    Attributes:
        outcome: As of `Answer`.
    """

    outcome: Public[Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedSentence(Record):
    """A sentence that a language model wrote and the sources do not support.

    Attributes:
        text: As it stands in the answer, or stood before it was removed.
        start_offset: Where it begins in the answer's text; None where it was removed.
        end_offset: Just behind it; None where it was removed.
        reason: What is wrong with it.
        detail: The same in words.
    """

    text: Public[str]
    start_offset: Public[int | None]
    end_offset: Public[int | None]
    reason: Public[UnsupportedReason]
    detail: Public[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(Record):
    """The evidence that came closest to supporting an answer, and fell short.

    Attributes:
        evidence: The best quotable piece; its marker is 0, since no text cites it.
        probability: Estimated probability that the evidence answers the question, 0 to 1.
        threshold: What the probability had to reach.
        missing_identifier: Whether it fell short because the question names an identifier that no passage holds.
    """

    evidence: Public[Citation]
    probability: Public[float]
    threshold: Public[float]
    missing_identifier: Public[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Record):
    """What ``ask`` replies.

    Attributes:
        question: As asked.
        text: The answer, with markers such as ``[1]``; otherwise a sentence that says that there is none.
        outcome: Whether it is an answer, passages that may help, or nothing.
        citations: In order of their markers; empty where there is no answer.
        passages: What may help where no exact answer was found, best first. Beside an answer that was quoted: what
            stands around it, and what else may help. Empty beside one that a language model wrote.
        timings_ms: Milliseconds by stage.
        nearest: Where a question has no answer without a language model: the evidence that fell short; None: none did.
        model: The language model that wrote it; None where none was asked.
        usage: What the language model took for it: the answer itself, what it wrote for the search (other wordings, a
            hypothetical answer), a follow-up question made to stand alone; None where it was not asked.
        unsupported: The sentences that the sources do not support, in order.
        rewritten_question: The question that was searched for and answered, where it is another than was asked: a
            follow-up question in a conversation, made to stand alone.
        warnings: What the search for it could not ask, and is missing from it.
    """

    question: Public[str]
    text: Annotated[str, public_as("answer")]
    outcome: Public[Outcome]
    citations: Public[tuple[Citation, ...]]
    passages: Public[tuple[ShownPassage, ...]] = ()
    timings_ms: Public[Mapping[str, float]] = field(default_factory=dict)
    nearest: PublicIfKnown[Nearest | None] = None
    model: Public[str | None] = None
    usage: Public[TokenUsage | None] = None
    unsupported: Public[tuple[UnsupportedSentence, ...]] = ()
    rewritten_question: Public[str | None] = None
    warnings: PublicIfAny[tuple[str, ...]] = ()

    @property
    @public
    def refused(self) -> bool:
        """Whether it is no answer: its outcome is ``passages`` or ``none``."""
        return self.outcome != "answer"

    @property
    def shown_instead(self) -> tuple[ShownPassage, ...]:
        """The passages, where they take the place of an answer."""
        return self.passages if self.refused else ()

    @property
    @public
    def generated_by(self) -> str | None:
        """The language model that wrote the text; None: it is quoted from documents."""
        return self.model
