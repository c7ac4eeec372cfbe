"""Contexts: passages, turns and facts as a language model is shown them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from recollect.context.hybrid import RetrievalWeights
from recollect.model.feedback import FeedbackCounts
from recollect.model.outline import PassagePart
from recollect.model.passage import PassageNote
from recollect.model.record import json_of
from recollect.replies._shape import Shape, Timestamp, iso
from recollect.replies.retrieval import PassagePlaceJson, passage_json

if TYPE_CHECKING:
    from recollect.context import AssembledContext, ContextBlock, HybridContext, HybridPassage

_Strategy = Literal["rag", "documents", "hybrid", "episodic", "semantic", "bm25"]


class ContextBlockJson(PassagePlaceJson):
    """A numbered passage of a context."""

    number: int
    """From 1; what a citation `[n]` means."""
    chunk_id: int
    relevance: float | None
    """How likely it answers the query, 0 to 1."""
    event_time: Timestamp | None
    """When what it tells happened or was written."""
    shortened: bool
    """Whether the passage went on."""
    collection: NotRequired[str]
    """Where it was found, in a search of several collections."""
    server: NotRequired[str]
    """The remote that found it. The numbers of its document and chunk are negative; `source` names it there."""
    notes: NotRequired[list[PassageNote]]
    """Why it is not the last word."""


class AssembledContextJson(Shape):
    """Passages of documents as a prompt's context."""

    query: str
    """As asked."""
    collection: str
    """The collection searched."""
    context: str
    """The numbered passages; empty where nothing was found."""
    token_count: int
    """Tokens of the context."""
    omitted: int
    """Passages for which there was no room."""
    cached: bool
    """Whether the search was answered from the cache."""
    passages: list[ContextBlockJson]
    warnings: NotRequired[list[str]]
    """Names servers and parts that failed or did not reply, and says why nothing was found."""


class ContextExplainJson(Shape):
    """What each side of a context weighed, and why."""

    weights: RetrievalWeights
    """As used."""
    base: RetrievalWeights | None
    """As configured; null where feedback is not asked."""
    shift: float | None
    """What feedback added to memory's weight."""
    tenant: FeedbackCounts | None
    """The feedback on contexts of no conversation in particular."""
    session: FeedbackCounts | None
    """The feedback on contexts of the conversation."""
    feedback: str
    """The same in words."""


class ContextPassageJson(Shape):
    """A passage of a document or of a conversation, or a fact, as it is shown.

    The document, the offsets and the parts are those of a document, and null of the others.
    """

    number: int
    """From 1; what a citation `[n]` means."""
    kind: Literal["document", "memory", "fact"]
    document_id: int | None
    title: str
    source: str
    """The document's name, `memory:` and the session's, or `fact:` and the fact's number."""
    department: str | None
    section: str | None
    """Titles of the headings that the passage stands under, joined by ` > `."""
    page: int | None
    """From 1; null where the format has no pages."""
    start_offset: int | None
    """Where the passage begins in the document's content, in characters."""
    end_offset: int | None
    """Just behind its last character."""
    parts: list[PassagePart] | None
    """The passage, cut where another section or page begins."""
    score: float
    """What the passages are ordered by, best first; comparable within one context only."""
    relevance: float | None
    """How likely a document's passage answers the query, 0 to 1."""
    content: str
    """What is shown of it."""
    server: NotRequired[str]
    """The remote that found it. The number of its document is negative; `source` names it there."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""
    metadata: dict[str, Any]


class ContextAssemblyJson(Shape):
    """Documents, conversations and facts as a language model should read them."""

    query: str
    """As asked."""
    strategy: _Strategy
    """As asked."""
    used: _Strategy
    """What the context is made of, where the strategy found nothing of its own."""
    token_count: int
    """Tokens of the text, within the budget."""
    text: str
    """The numbered passages; empty where nothing was found."""
    passages: list[ContextPassageJson]
    """In order of their numbers."""
    cached: bool
    """Whether the search for documents was answered from the cache."""
    explain: NotRequired[ContextExplainJson]
    """Where it was asked for."""
    warnings: NotRequired[list[str]]
    """Names servers and parts that failed or did not reply, and says why nothing was found."""


def assembled_context_json(
    query: str, context: AssembledContext, *, collection: str, warnings: Sequence[str] = ()
) -> AssembledContextJson:
    """A context of passages of documents.

    Args:
        query: As asked.
        context: What is shown.
        collection: The collection searched.
        warnings: Why nothing was found.
    """
    shown: AssembledContextJson = {
        "query": query,
        "collection": collection,
        "context": context.text,
        "token_count": context.token_count,
        "omitted": context.omitted,
        "cached": context.cached,
        "passages": [_block(block) for block in context.blocks],
    }
    if context.warnings or warnings:
        shown["warnings"] = [*context.warnings, *warnings]
    return shown


def context_assembly_json(
    query: str, found: HybridContext, *, explain: bool = False, warnings: Sequence[str] = ()
) -> ContextAssemblyJson:
    """A context of documents, conversations and facts.

    Args:
        query: As asked.
        found: What is shown.
        explain: Whether it is said what each side weighed, and why.
        warnings: Why nothing was found.
    """
    shown: ContextAssemblyJson = {
        "query": query,
        "strategy": found.strategy,
        "used": found.used,
        "token_count": found.token_count,
        "text": found.text,
        "passages": [_passage(number, one) for number, one in enumerate(found.passages, start=1)],
        "cached": found.context.cached,
    }
    if explain:
        shown["explain"] = context_explain_json(found)
    told = [*found.context.warnings, *warnings]
    if told:
        shown["warnings"] = told
    return shown


def context_explain_json(found: HybridContext) -> ContextExplainJson:
    """What each side of a context weighed, and why."""
    told = {} if found.adaptation is None else json_of(found.adaptation)
    return {
        "weights": json_of(found.weights),
        "base": told.get("base"),
        "shift": told.get("shift"),
        "tenant": told.get("tenant"),
        "session": told.get("session"),
        "feedback": told.get("explanation", "not asked: [rag.memory] adaptive_weights is off"),
    }


def _block(block: ContextBlock) -> ContextBlockJson:
    return {
        **passage_json(block.passage, ContextBlockJson),
        "number": block.number,
        "event_time": iso(block.passage.event_time),
        "shortened": block.shortened,
    }


def _passage(number: int, one: HybridPassage) -> ContextPassageJson:
    shown: ContextPassageJson = {
        **passage_json(one.passage, ContextPassageJson),
        "number": number,
        "kind": one.kind,
        "source": one.source,
        "score": one.score,
        "content": one.content,
    }
    if one.kind != "document":
        shown["document_id"] = shown["start_offset"] = shown["end_offset"] = shown["parts"] = None
    return shown
