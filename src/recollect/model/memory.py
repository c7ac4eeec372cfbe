"""Conversations: what was said, what is remembered of it, and how it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from recollect.familiar_names import suggesting
from recollect.model.record import Public, Record, public, public_as

RecallMode = Literal["hybrid", "dense", "lexical"]


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Something said in a conversation.

    Attributes:
        content: What was said, 1 to 100,000 characters.
        role: Who said it: ``user``, ``assistant``, or a name, which questions that name somebody profit from.
        at: When it was said; without a time zone: UTC. None: not known.
        turn_id: The caller's own id, unique in its session: a turn whose id is stored already is not stored again.
        metadata: JSON-serialisable facts, given back as they are.
    """

    content: str
    role: str = "user"
    at: datetime | None = None
    turn_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode(Record):
    """A turn as it is remembered.

    Attributes:
        episode_id: Unique for its tenant.
        session: The name of its conversation.
        position: From 1, in the order in which the conversation's turns were stored.
        role: Who said it: ``user``, ``assistant``, or a name.
        content: What was said.
        at: When it was said; None: not known.
        turn_id: The caller's own id, unique in its conversation.
        known_from: When it was stored.
        metadata: As it was given.
    """

    episode_id: int = 0
    session: Public[str]
    position: Public[int]
    role: Public[str]
    content: Public[str]
    at: Public[datetime | None]
    turn_id: Annotated[str | None, public_as("id")]
    known_from: Public[datetime]
    metadata: Public[Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord(Record):
    """A conversation that is remembered.

    Attributes:
        name: The caller's id of it, unique for the tenant.
        user: Whose conversation; None: nobody's in particular.
        turn_count: How many turns it has.
        created_at: When its first turn was stored.
        updated_at: When its latest was.
        embedding_model: What its turns are embedded with.
        metadata: As it was given, and its title.
    """

    session_id: int = 0
    name: Annotated[str, public_as("session")]
    user: Public[str | None]
    turn_count: Annotated[int, public_as("turns")]
    created_at: Public[datetime]
    updated_at: Public[datetime]
    embedding_model: Public[str]
    metadata: Public[Mapping[str, Any]] = field(default_factory=dict)

    @property
    @public
    def title(self) -> str | None:
        """What somebody has called it; None: nobody has."""
        given = self.metadata.get("title")
        return given if isinstance(given, str) and given else None

    @property
    def helpful(self) -> Mapping[int, bool]:
        """What was said of its answers, by their positions: whether they helped."""
        given = self.metadata.get("helpful")
        said = given if isinstance(given, dict) else {}
        return {int(key): value for key, value in said.items() if key.isdecimal() and isinstance(value, bool)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEntry:
    """A conversation in a list of them.

    Attributes:
        record: What is known of it.
        opening: The words that it begins with.
    """

    record: SessionRecord
    opening: str

    @property
    def title(self) -> str:
        """What it is called: as somebody has said, or by its first line."""
        return self.record.title or next(iter(self.opening.split("\n")), "")[:120]


@dataclass(frozen=True, slots=True)
class Remembered(Record):
    """What became of turns that were to be remembered.

    Attributes:
        session: Its name.
        positions: Of each turn, in the order given: the place it was stored at, or had been.
        added: How many were not stored before.
    """

    session: Public[str]
    positions: Public[tuple[int, ...]]
    added: Public[int]

    @property
    @public
    def turns(self) -> int:
        """How many were given."""
        return len(self.positions)


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """How to search memory.

    Attributes:
        top_k: How many turns to return (1 to 1,000).
        mode: Words and meaning (``hybrid``), meaning only (``dense``), or words only (``lexical``).
        before: How many turns before each hit are given with it, 0 to 50.
        after: How many turns after it, 0 to 50.
        since: Only turns said at this time or later; turns of unknown time are left out.
        until: Only turns said before this time; turns of unknown time are left out.
        counted: Whether what is found counts as retrieved (`recollect.QueryPatternTracker`).
    """

    top_k: int = 10
    mode: RecallMode = "hybrid"
    before: int = 1
    after: int = 1
    since: datetime | None = None
    until: datetime | None = None
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection(Episode):
    """A turn that a search of memory found.

    Attributes:
        rank: From 1.
        score: What the results are ordered by, best first; comparable within one search only.
        user: Whose conversation it is from.
        before: The turns before it in its session, oldest first.
        after: The turns after it.
        similarity: Cosine similarity of the question to the turn with those before it; None where it was not computed.
        bm25: Its score by words; None where that was not computed.
        embedding_model: Which measured ``similarity``; None where none did.
    """

    rank: Public[int]
    score: Public[float]
    user: Public[str | None] = None
    before: Public[tuple[Episode, ...]] = ()
    after: Public[tuple[Episode, ...]] = ()
    similarity: Public[float | None] = None
    bm25: Public[float | None] = None
    embedding_model: str | None = None

    @property
    def episode(self) -> Episode:
        """The turn itself."""
        return self
