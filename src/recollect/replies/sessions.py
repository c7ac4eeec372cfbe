"""The conversations that are remembered, and the sessions that have documents of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NotRequired

from recollect.model.document_session import WhenFull
from recollect.replies._shape import Shape, Timestamp, iso
from recollect.replies.memory import TurnJson, turn_json

if TYPE_CHECKING:
    from recollect.model.document_record import DocumentRecord
    from recollect.model.document_session import DocumentSession
    from recollect.model.memory import Episode, SessionRecord


class SessionJson(Shape):
    """A conversation that is remembered."""

    session: str
    """The caller's id of it."""
    user: str | None
    """Whose it is; null: nobody's in particular."""
    title: str | None
    """What somebody has called it; null: nobody has."""
    turns: int
    """How many it has."""
    created_at: Timestamp
    """When its first turn was stored."""
    updated_at: Timestamp
    """When its latest was."""
    embedding_model: str
    metadata: dict[str, Any]


class DocumentSessionJson(Shape):
    """A session with documents of its own, and what it holds."""

    session: str
    """The caller's id of it."""
    owner: str | None
    """The user who created it; null: nobody in particular."""
    ttl_seconds: float | None
    """How long it lives from its creation, or from when it was renewed; null: until it is ended."""
    created_at: Timestamp
    expires_at: Timestamp | None
    """When it can no longer be searched and written; null: never."""
    expired: bool
    """Whether that moment has passed."""
    documents: int
    """That it holds."""
    chunks: int
    """Of these."""
    max_documents: int
    when_full: WhenFull
    """What one document too many does: `error` refuses it, `oldest` removes the oldest one."""
    auto_cleanup: bool
    """Whether it is removed by itself once it has expired."""
    language: str
    """ISO 639-1."""
    embedding_model: str


class SessionDocumentJson(Shape):
    """A document of a session."""

    document_id: int
    source: str
    title: str
    department: str | None
    version: int
    """From 1."""
    chunks: int
    known_from: Timestamp
    """When this version was stored."""


class SessionListJson(Shape):
    """Conversations, the one with the latest turn first, and the sessions that have documents."""

    sessions: list[SessionJson]
    document_sessions: list[DocumentSessionJson]


class SessionContentJson(Shape):
    """What was said in a conversation, and the documents of the session of the same id, as far as there are any."""

    session: NotRequired[SessionJson]
    turns: NotRequired[list[TurnJson]]
    """Of the conversation, in their order."""
    document_session: NotRequired[DocumentSessionJson]
    documents: NotRequired[list[SessionDocumentJson]]
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


def session_json(record: SessionRecord) -> SessionJson:
    """A conversation that is remembered."""
    return {
        "session": record.name,
        "user": record.user,
        "title": record.title,
        "turns": record.turn_count,
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "embedding_model": record.embedding_model,
        "metadata": dict(record.metadata),
    }


def document_session_json(one: DocumentSession) -> DocumentSessionJson:
    """A session with documents of its own."""
    return {
        "session": one.session_id,
        "owner": one.owner,
        "ttl_seconds": None if one.ttl is None else one.ttl.total_seconds(),
        "created_at": iso(one.created_at),
        "expires_at": iso(one.expires_at),
        "expired": one.expired,
        "documents": one.document_count,
        "chunks": one.chunk_count,
        "max_documents": one.max_documents,
        "when_full": one.when_full,
        "auto_cleanup": one.auto_cleanup,
        "language": one.language,
        "embedding_model": one.embedding_model,
    }


def session_document_json(record: DocumentRecord) -> SessionDocumentJson:
    """A document of a session."""
    return {
        "document_id": record.document_id,
        "source": record.source,
        "title": record.title,
        "department": record.department,
        "version": record.version,
        "chunks": record.chunk_count,
        "known_from": iso(record.known_from),
    }


def session_list_json(
    conversations: Sequence[SessionRecord], document_sessions: Sequence[DocumentSession]
) -> SessionListJson:
    """Conversations, and the sessions that have documents."""
    return {
        "sessions": [session_json(one) for one in conversations],
        "document_sessions": [document_session_json(one) for one in document_sessions],
    }


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
        shown["session"] = session_json(conversation[0])
        shown["turns"] = [turn_json(turn) for turn in conversation[1]]
    if documents is not None:
        shown["document_session"] = document_session_json(documents[0])
        shown["documents"] = [session_document_json(one) for one in documents[1]]
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
