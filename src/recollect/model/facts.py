"""Facts: what conversations said often enough to be asked for, with the exact words that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from recollect.model.record import Public, Record, public, public_as

#: What a fact is made by where no language model is.
EXTRACTIVE = "extractive"

EvidenceKind = Literal["source", "repeat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvidence(Record):
    """Words of a turn that a fact rests on.

    Attributes:
        kind: ``source``: the fact was drawn from them; ``repeat``: they say it again.
        episode_id: The turn.
        session: Its conversation.
        position: Its place there, from 1.
        role: Who said it.
        at: When it was said; None: not known.
        start_offset: Where the words begin in the turn's content.
        end_offset: Just behind their last character.
        quote: The words: ``content[start_offset:end_offset]``.
    """

    kind: Public[EvidenceKind]
    session: Public[str]
    position: Public[int]
    role: Public[str]
    at: Public[datetime | None]
    start_offset: Public[int]
    end_offset: Public[int]
    quote: Public[str]
    episode_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Record):
    """Something that was said, kept beside the conversation. It is superseded by a later one, never changed or lost.

    Attributes:
        fact_id: Unique for its tenant.
        chain_id: Facts of one chain say the same about the same, one after the other in time.
        statement: What is so, in words: the turn's own where no language model wrote it.
        subject: Of whom or what; None: not made out.
        attribute: What of it; None: not made out.
        value: What it is; None: not made out, or the statement says that it is no more.
        session: The conversation that it was drawn from.
        user: Whose that is.
        role: Who said it.
        at: When it was said; None: not known.
        said_at: What facts of one chain are ordered by: ``at``, or when the turn was remembered.
        known_from: Since when memory has held it as a fact.
        made_by: ``extractive``, or the language model that wrote it.
        superseded_by: The fact that took its place, of what was known at the moment of the read; None: it is current.
        superseded_at: When that was said; None: it is current.
        evidence: The words that it rests on, in the order of their turns.
    """

    fact_id: Annotated[int, public_as("fact")]
    statement: Public[str]
    subject: Public[str | None]
    attribute: Public[str | None]
    value: Public[str | None]
    session: Public[str]
    user: Public[str | None]
    role: Public[str]
    at: Public[datetime | None]
    said_at: Public[datetime]
    known_from: Public[datetime]
    made_by: Public[str]
    superseded_by: Public[int | None] = None
    superseded_at: Public[datetime | None] = None
    evidence: Public[tuple[FactEvidence, ...]] = ()
    chain_id: int = 0

    @property
    @public
    def source(self) -> str:
        """Its name among the sources of a context: ``fact:`` and its number."""
        return f"fact:{self.fact_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledFact(Fact):
    """A fact that a search found.

    Attributes:
        rank: From 1.
        score: What the results are ordered by, best first; comparable within one search only.
        similarity: Cosine similarity of the question to it; None where that was not computed.
        bm25: Its score by words; None where that was not computed.
        embedding_model: Which measured ``similarity``; None where none did.
    """

    rank: Public[int]
    score: Public[float]
    similarity: Public[float | None] = None
    bm25: Public[float | None] = None
    embedding_model: str | None = None

    @property
    def fact(self) -> Fact:
        """The fact itself."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport(Record):
    """What became of the turns that were asked for often enough.

    Attributes:
        examined: How many were looked at; each is once.
        added: Facts that are new.
        repeated: Facts that were said again, and have one more piece of evidence.
        superseded: Facts that another took the place of.
        without_facts: Turns that say nothing worth keeping.
        made_by: Facts by what made them.
        failures: Why the language model was passed over, where it was.
    """

    examined: Public[int] = 0
    added: Public[int] = 0
    repeated: Public[int] = 0
    superseded: Public[int] = 0
    without_facts: Public[int] = 0
    made_by: Public[Mapping[str, int]] = field(default_factory=dict)
    failures: Public[tuple[str, ...]] = ()
