"""Facts: what was drawn from conversations, and the words that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.model.facts import EvidenceKind
from recollect.model.memory import RecallMode
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.facts import Fact, FactEvidence, RecalledFact


class FactEvidenceJson(Shape):
    """Words of a turn that a fact rests on."""

    kind: EvidenceKind
    """`source`: the fact was drawn from them; `repeat`: they say it again."""
    session: str
    """The conversation."""
    position: int
    """Of the turn in its conversation, from 1."""
    role: str
    """Who said it."""
    at: Timestamp | None
    """When it was said; null: not known."""
    start_offset: int
    """Where the words begin in the turn's content, in characters."""
    end_offset: int
    """Just behind their last character."""
    quote: str
    """The words: the characters `start_offset` to `end_offset` of the turn's content."""


class FactJson(Shape):
    """Something that was said, kept beside the conversation."""

    fact: int
    """Its number."""
    source: str
    """Its name among the sources of a context: `fact:` and its number."""
    statement: str
    """What is so, in words."""
    subject: str | None
    """Of whom or what; null: not made out."""
    attribute: str | None
    """What of it; null: not made out."""
    value: str | None
    """What it is; null: not made out, or the statement says that it is no more."""
    role: str
    """Who said it."""
    session: str
    """The conversation that it was drawn from."""
    user: str | None
    """Whose that is."""
    at: Timestamp | None
    """When it was said; null: not known."""
    said_at: Timestamp
    """What facts about the same are ordered by: `at`, or when the turn was remembered."""
    known_from: Timestamp
    """Since when memory has held it as a fact."""
    made_by: str
    """`extractive`, or the language model that wrote it."""
    superseded_by: int | None
    """The fact that took its place; null: it is current."""
    superseded_at: Timestamp | None
    """When that was said; null: it is current."""
    evidence: list[FactEvidenceJson]
    """The words that it rests on, in the order of their turns."""


class RecalledFactJson(FactJson):
    """A fact that a search found."""

    rank: int
    """From 1."""
    score: float
    """What the results are ordered by, best first; comparable within one search only."""
    similarity: float | None
    """Cosine similarity of the question to it."""
    bm25: float | None
    """Its score by words."""


class FactListJson(Shape):
    """Facts, what was said last first."""

    facts: list[FactJson]


class FactSearchJson(Shape):
    """The facts that answer a question."""

    query: str
    """As asked."""
    mode: RecallMode
    results: list[RecalledFactJson]
    """Best first."""


class FactHistoryJson(Shape):
    """What was said of the same, before and after a fact."""

    fact: int
    """Its number."""
    history: list[FactJson]
    """The earliest first, the fact itself among them."""


def fact_json(fact: Fact) -> FactJson:
    """A fact with the words that it rests on."""
    return {
        "fact": fact.fact_id,
        "source": fact.source,
        "statement": fact.statement,
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "role": fact.role,
        "session": fact.session,
        "user": fact.user,
        "at": iso(fact.at),
        "said_at": iso(fact.said_at),
        "known_from": iso(fact.known_from),
        "made_by": fact.made_by,
        "superseded_by": fact.superseded_by,
        "superseded_at": iso(fact.superseded_at),
        "evidence": [_evidence(one) for one in fact.evidence],
    }


def recalled_fact_json(one: RecalledFact) -> RecalledFactJson:
    """A fact that a search found."""
    return {
        "rank": one.rank,
        "score": one.score,
        **fact_json(one.fact),
        "similarity": one.similarity,
        "bm25": one.bm25,
    }


def fact_list_json(found: Sequence[Fact]) -> FactListJson:
    """Facts."""
    return {"facts": [fact_json(fact) for fact in found]}


def fact_search_json(query: str, found: Sequence[RecalledFact], *, mode: RecallMode) -> FactSearchJson:
    """The facts that answer a question.

    Args:
        query: As asked.
        found: Best first.
        mode: How it was searched.
    """
    return {"query": query, "mode": mode, "results": [recalled_fact_json(one) for one in found]}


def fact_history_json(fact_id: int, thread: Sequence[Fact]) -> FactHistoryJson:
    """What was said of the same, before and after a fact.

    Args:
        fact_id: Its number.
        thread: The earliest first.
    """
    return {"fact": fact_id, "history": [fact_json(fact) for fact in thread]}


def _evidence(one: FactEvidence) -> FactEvidenceJson:
    return {
        "kind": one.kind,
        "session": one.session,
        "position": one.position,
        "role": one.role,
        "at": iso(one.at),
        "start_offset": one.start_offset,
        "end_offset": one.end_offset,
        "quote": one.quote,
    }
