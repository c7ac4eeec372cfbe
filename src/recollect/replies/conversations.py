"""Conversations, sessions with documents, and what searches of turns and facts reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from recollect.model.document_record import DocumentRecord
from recollect.model.document_session import DocumentSession
from recollect.model.facts import RecalledFact
from recollect.model.memory import Episode, RecallMode, Recollection, SessionRecord
from recollect.replies._shape import Shape


class SessionContentJson(Shape):
    """What was said in a conversation, and the documents of the session of the same id, as far as there are any."""

    session: NotRequired[SessionRecord]
    turns: NotRequired[list[Episode]]
    """Of the conversation, in their order."""
    document_session: NotRequired[DocumentSession]
    documents: NotRequired[list[DocumentRecord]]
    """Of the session with documents."""


class DeletedSessionJson(Shape):
    """A conversation that was removed, or what else there was of its id."""

    deleted: str
    """The id."""
    turns: int
    """How many the conversation had."""
    documents: NotRequired[int]
    """How many the session with documents held; absent where there was none, or where it stays."""


class ForgottenTurnsJson(Shape):
    """Turns that were removed of a conversation."""

    session: str
    """Its id."""
    removed: int
    """How many."""


class EndedSessionJson(Shape):
    """A session with documents that was ended."""

    ended: str
    """Its id."""
    documents: int
    """How many it held."""


def session_content_json(
    conversation: tuple[SessionRecord, Sequence[Episode]] | None,
    documents: tuple[DocumentSession, Sequence[DocumentRecord]] | None,
) -> SessionContentJson:
    """What was said, and what documents there are.

    Args:
        conversation: With turns of it; None: there is none of that id.
        documents: The session with documents, and what it holds; None: there is none of that id.
    """
    shown: SessionContentJson = {}
    if conversation is not None:
        shown["session"] = conversation[0]
        shown["turns"] = list(conversation[1])
    if documents is not None:
        shown["document_session"] = documents[0]
        shown["documents"] = list(documents[1])
    return shown


def deleted_session_json(session: str, *, turns: int, documents: int | None = None) -> DeletedSessionJson:
    """A conversation that was removed, or what else there was of its id.

    Args:
        session: The id.
        turns: How many the conversation had.
        documents: How many the session with documents held; None: there was none, or it stays.
    """
    shown: DeletedSessionJson = {"deleted": session, "turns": turns}
    return shown if documents is None else {**shown, "documents": documents}


def forgotten_turns_json(session: str, *, removed: int) -> ForgottenTurnsJson:
    """So many turns that were removed of a conversation."""
    return {"session": session, "removed": removed}


def ended_session_json(session: str, *, documents: int) -> EndedSessionJson:
    """A session that was ended, with so many documents."""
    return {"ended": session, "documents": documents}


# What a search of facts replies.


class FactSearchJson(Shape):
    """The facts that answer a question."""

    query: str
    """As asked."""
    mode: RecallMode
    results: list[RecalledFact]
    """Best first."""


# What a search of conversations replies.


class RecallJson(Shape):
    """What was said that answers a question."""

    query: str
    """As asked."""
    mode: RecallMode
    results: list[Recollection]
    """Best first."""
