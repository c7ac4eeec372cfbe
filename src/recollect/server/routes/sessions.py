"""``/v1/sessions``: the conversations that are remembered, and the sessions that have documents of their own.

The two are independent: one id may name a conversation, a session with documents, or both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from recollect.errors import NotFoundError, UsageError
from recollect.model.document_record import DocumentRecord
from recollect.model.document_session import DocumentSession
from recollect.model.memory import Remembered, SessionRecord
from recollect.model.page import cursor_at
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.replies.sessions import (
    DeletedSessionJson,
    EndedSessionJson,
    ForgottenTurnsJson,
    SessionContentJson,
    deleted_session_json,
    ended_session_json,
    forgotten_turns_json,
    session_content_json,
)
from recollect.server.dependencies import Reader, Writer
from recollect.server.pages import Page, Paging, named_moment, numbered_moment, shown
from recollect.server.problems import documented
from recollect.server.schemas.conversations import (
    ForgetBody,
    RememberBody,
    RenameBody,
    SessionBody,
    SessionPage,
    TurnPage,
)

router = APIRouter(prefix="/sessions", tags=["conversations"])

_SHOWN = 100

_User = Annotated[Name | None, Query(description="Whose; needed where several users have a conversation of one id.")]


_Words = Annotated[
    Text | None,
    Query(
        max_length=200,
        description="Only conversations whose title or turns hold this, in whatever case; none of the other sessions.",
    ),
]


@router.get("", summary="List conversations, and sessions with documents")
def sessions(caller: Reader, page: Paging, user: _User = None, text: _Words = None) -> SessionPage:
    """Of a page, both lists go on behind those of the page before."""
    view, behind = caller.view(user=user), page.parts(2)
    conversations, places = _both(view, page, behind, text=(text or "").strip() or None)
    talked, more = shown(conversations, page)
    stored, more_of_these = shown(places, page)
    ends = [
        [talked[-1].updated_at.isoformat(), talked[-1].session_id] if more else None,
        [_told(stored[-1].expires_at), stored[-1].session_id, stored[-1].owner] if more_of_these else None,
    ]
    return {
        "sessions": list(talked),
        "document_sessions": [one for one in stored if user in {None, one.owner}],
        "next_cursor": cursor_at(ends) if more or more_of_these else None,
    }


def _both(
    view: View, page: Page, behind: Sequence[object] | None, *, text: str | None
) -> tuple[Sequence[SessionRecord], Sequence[DocumentSession]]:
    """Conversations, and sessions with documents, behind where the page before ended; nothing of what has ended."""
    if behind is None:
        limit, offset = page.asked, page.offset()
        talked = view.memory.list(text=text, limit=limit, offset=offset)
        return talked, [] if text is not None else view.sessions.list(limit=limit, offset=offset)
    last, stored = behind
    return (
        [] if last is None else view.memory.list(text=text, limit=page.asked, after=numbered_moment(last)),
        [] if stored is None else view.sessions.list(limit=page.asked, after=named_moment(stored)),
    )


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@router.post("", status_code=201, summary="Begin a session with documents of its own", responses=documented(409))
def create(body: SessionBody, caller: Writer) -> DocumentSession:
    """They are found in it alone, and vanish with it. A conversation needs none: it begins with its first turn."""
    config = replace(caller.sessions.default_config(), **body.options())
    return caller.sessions.create(body.session, config)


@router.get("/{session:named}", summary="Show a conversation, and a session with documents", responses=documented(404))
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


@router.patch("/{session:named}", summary="Rename a conversation", responses=documented(404, 422))
def rename(session: Name, body: RenameBody, caller: Writer) -> SessionRecord:
    """Without a title it is called by its first words again."""
    return caller.view(user=body.user).memory.rename(session, body.title)


@router.delete(
    "/{session:named}", summary="Remove a conversation, and a session with documents", responses=documented(404)
)
def delete(session: Name, caller: Writer, user: _User = None) -> DeletedSessionJson:
    """With everything that was made of it, for good. Of the session's documents alone: `end`."""
    view = caller.view(user=user)
    try:
        turns = view.memory.delete(session)
    except NotFoundError:
        if _documents(view, session) is None:
            raise
        turns = 0
    return deleted_session_json(session, turns=turns, documents=_ended(view, session))


@router.get("/{session:named}/turns", summary="Read what was said", responses=documented(404))
def turns(session: Name, caller: Reader, page: Paging, user: _User = None) -> TurnPage:
    """In its order."""
    view = caller.view(user=user)
    said, more = shown(view.memory.turns(session, after=page.number() or 0, limit=page.asked), page)
    return {
        "session": session,
        "turns": list(said),
        "next_cursor": cursor_at(said[-1].position) if more else None,
    }


@router.post(
    "/{session:named}/turns", status_code=201, summary="Remember what was said", responses=documented(404, 409, 422)
)
def remember(session: Name, body: RememberBody, caller: Writer) -> Remembered:
    """The conversation begins with its first turn. A turn whose id is stored already is not stored again."""
    view = caller.view(session=session, user=body.user)
    return view.remember([turn.turn() for turn in body.turns])


@router.post("/{session:named}/forget", summary="Remove turns", responses=documented(404))
def forget(session: Name, body: ForgetBody, caller: Writer) -> ForgottenTurnsJson:
    """With everything that was made of them, for good."""
    view = caller.view(user=body.user)
    return forgotten_turns_json(session, removed=view.memory.forget(session, body.turns))


@router.post("/{session:named}/renew", summary="Begin the time of a session anew", responses=documented(404, 410))
def renew(session: Name, caller: Writer) -> DocumentSession:
    """Of a session with documents, before its time is over."""
    return caller.sessions.renew(session)


@router.post("/{session:named}/end", summary="End a session with documents", responses=documented(404))
def end(session: Name, caller: Writer) -> EndedSessionJson:
    """Its documents are removed, for good; a conversation of the same id stays."""
    return ended_session_json(session, documents=caller.sessions.end(session))


def _documents(view: View, session: str) -> tuple[DocumentSession, list[DocumentRecord]] | None:
    try:
        found = view.sessions.get(session)
    except (NotFoundError, UsageError):  # what is an id of a conversation may be none of these
        return None
    return found, [] if found.expired else [*view.view(session=session).documents.list(limit=_SHOWN)]


def _ended(view: View, session: str) -> int | None:
    try:
        return view.sessions.end(session)
    except (NotFoundError, UsageError):
        return None
