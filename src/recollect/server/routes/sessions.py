"""``/v1/sessions``: the conversations that are remembered, and the sessions that have documents of their own.

The two are independent: one id may name a conversation, a session with documents, or both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from recollect.errors import NotFoundError, UsageError
from recollect.model.document_session import DocumentSession
from recollect.pipeline import View
from recollect.replies.memory import RememberedJson, remembered_json, turn_json
from recollect.replies.sessions import (
    DeletedSessionJson,
    DocumentSessionJson,
    EndedSessionJson,
    ForgottenTurnsJson,
    SessionContentJson,
    deleted_session_json,
    document_session_json,
    ended_session_json,
    forgotten_turns_json,
    session_content_json,
    session_json,
)
from recollect.server.dependencies import Actor, Reader, Writer
from recollect.server.pages import Paging, cursor_at, shown
from recollect.server.problems import documented
from recollect.server.schemas.base import Name
from recollect.server.schemas.conversations import ForgetBody, RememberBody, SessionBody, SessionPage, TurnPage
from recollect.store.documents import DocumentRecord

router = APIRouter(prefix="/sessions", tags=["conversations"])

_SHOWN = 100

_User = Annotated[Name | None, Query(description="Whose; needed where several users have a conversation of one id.")]


@router.get("", summary="List conversations, and sessions with documents")
def sessions(caller: Reader, page: Paging, user: _User = None) -> SessionPage:
    """Of a page, both lists go on behind those of the page before."""
    view, offset = caller.view(user=user), page.number() or 0
    conversations, more = shown(view.memory.list(limit=page.asked, offset=offset), page)
    document_sessions, more_of_these = shown(view.sessions.list(limit=page.asked, offset=offset), page)
    return {
        "sessions": [session_json(one) for one in conversations],
        "document_sessions": [document_session_json(one) for one in document_sessions if user in {None, one.owner}],
        "next_cursor": cursor_at(offset + page.limit) if more or more_of_these else None,
    }


@router.post("", status_code=201, summary="Begin a session with documents of its own", responses=documented(409))
def create(body: SessionBody, caller: Writer) -> DocumentSessionJson:
    """They are found in it alone, and vanish with it. A conversation needs none: it begins with its first turn."""
    config = replace(caller.sessions.default_config(), **body.options())
    return document_session_json(caller.sessions.create(body.session, config))


@router.get("/{session}", summary="Show a conversation, and a session with documents", responses=documented(404))
def show(session: Name, caller: Reader, user: _User = None) -> SessionContentJson:
    """Of each at most a hundred turns and documents; the others are read page by page."""
    view = caller.view(user=user)
    documents = _documents(view, session)
    try:
        record = view.memory.get(session)
    except NotFoundError:
        if documents is None:
            raise
        return session_content_json(None, documents)
    return session_content_json((record, view.memory.turns(session, limit=_SHOWN)), documents)


@router.delete("/{session}", summary="Remove a conversation, and a session with documents", responses=documented(404))
def delete(session: Name, caller: Writer, actor: Actor, user: _User = None) -> DeletedSessionJson:
    """With everything that was made of it, for good. Of the session's documents alone: `end`."""
    view = caller.view(user=user)
    try:
        turns = view.memory.delete(session, actor=actor)
    except NotFoundError:
        if _documents(view, session) is None:
            raise
        turns = 0
    return deleted_session_json(session, turns=turns, documents=_ended(view, session))


@router.get("/{session}/turns", summary="Read what was said", responses=documented(404))
def turns(session: Name, caller: Reader, page: Paging, user: _User = None) -> TurnPage:
    """In its order."""
    view = caller.view(user=user)
    said, more = shown(view.memory.turns(session, after=page.number() or 0, limit=page.asked), page)
    return {
        "session": session,
        "turns": [turn_json(turn) for turn in said],
        "next_cursor": cursor_at(said[-1].position) if more else None,
    }


@router.post("/{session}/turns", status_code=201, summary="Remember what was said", responses=documented(404, 409, 422))
def remember(session: Name, body: RememberBody, caller: Writer) -> RememberedJson:
    """The conversation begins with its first turn. A turn whose id is stored already is not stored again."""
    view = caller.view(session=session, user=body.user)
    return remembered_json(view.remember([turn.turn() for turn in body.turns]))


@router.post("/{session}/forget", summary="Remove turns", responses=documented(404))
def forget(session: Name, body: ForgetBody, caller: Writer, actor: Actor) -> ForgottenTurnsJson:
    """With everything that was made of them, for good."""
    view = caller.view(user=body.user)
    return forgotten_turns_json(session, removed=view.memory.forget(session, body.turns, actor=actor))


@router.post("/{session}/renew", summary="Begin the time of a session anew", responses=documented(404, 410))
def renew(session: Name, caller: Writer) -> DocumentSessionJson:
    """Of a session with documents, before its time is over."""
    return document_session_json(caller.sessions.renew(session))


@router.post("/{session}/end", summary="End a session with documents", responses=documented(404))
def end(session: Name, caller: Writer) -> EndedSessionJson:
    """Its documents are removed, for good; a conversation of the same id stays."""
    return ended_session_json(session, documents=caller.sessions.end(session))


def _documents(view: View, session: str) -> tuple[DocumentSession, list[DocumentRecord]] | None:
    try:
        found = view.sessions.get(session)
    except (NotFoundError, UsageError):  # what is an id of a conversation may be none of these
        return None
    return found, [] if found.expired else view.view(session=session).documents.list(limit=_SHOWN)


def _ended(view: View, session: str) -> int | None:
    try:
        return view.sessions.end(session)
    except (NotFoundError, UsageError):
        return None
