"""Conversations: what was said in them, and what of it answers a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.model.memory import RecallMode
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.memory import Episode, Recollection, Remembered


class TurnJson(Shape):
    """Something that was said in a conversation."""

    position: int
    """From 1, in the order in which the conversation's turns were stored."""
    role: str
    """Who said it: `user`, `assistant`, or a name."""
    content: str
    at: Timestamp | None
    """When it was said; null: not known."""
    id: str | None
    """The caller's own, unique in its conversation."""
    known_from: Timestamp
    """When it was stored."""
    metadata: dict[str, Any]
    """As it was given."""


class RememberedJson(Shape):
    """What became of turns that were to be remembered."""

    session: str
    """Of which conversation."""
    turns: int
    """How many were given."""
    added: int
    """How many of them were not stored before."""
    positions: list[int]
    """Of each turn, in the order given: the place that it was stored at, or had been."""


class RecollectionJson(TurnJson):
    """A turn that a search of conversations found."""

    rank: int
    """From 1."""
    score: float
    """What the results are ordered by, best first; comparable within one search only."""
    session: str
    """The conversation that it is from."""
    user: str | None
    """Whose conversation that is; null: nobody's in particular."""
    similarity: float | None
    """Cosine similarity of the question to the turn with those before it."""
    bm25: float | None
    """Its score by words."""
    before: list[TurnJson]
    """The turns before it in its conversation, oldest first."""
    after: list[TurnJson]
    """The turns after it."""


class RecallJson(Shape):
    """What was said that answers a question."""

    query: str
    """As asked."""
    mode: RecallMode
    results: list[RecollectionJson]
    """Best first."""


def turn_json(episode: Episode) -> TurnJson:
    """Something that was said in a conversation."""
    return {
        "position": episode.position,
        "role": episode.role,
        "content": episode.content,
        "at": iso(episode.at),
        "id": episode.turn_id,
        "known_from": iso(episode.known_from),
        "metadata": dict(episode.metadata),
    }


def remembered_json(done: Remembered) -> RememberedJson:
    """What became of turns that were to be remembered."""
    return {
        "session": done.session,
        "turns": len(done.positions),
        "added": done.added,
        "positions": list(done.positions),
    }


def recall_json(query: str, found: Sequence[Recollection], *, mode: RecallMode) -> RecallJson:
    """What was said that answers a question.

    Args:
        query: As asked.
        found: Best first.
        mode: How it was searched.
    """
    return {"query": query, "mode": mode, "results": [recollection_json(one) for one in found]}


def recollection_json(one: Recollection) -> RecollectionJson:
    """A turn that a search of conversations found."""
    return {
        "rank": one.rank,
        "score": one.score,
        "session": one.episode.session,
        "user": one.user,
        **turn_json(one.episode),
        "similarity": one.similarity,
        "bm25": one.bm25,
        "before": [turn_json(turn) for turn in one.before],
        "after": [turn_json(turn) for turn in one.after],
    }
