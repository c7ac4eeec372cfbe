"""The pages of the area 'Chat': conversations, and the list of them."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from recollect.errors import NotFoundError
from recollect.model.memory import ConversationEntry
from recollect.pipeline import View
from recollect.replies.cursors import cursor_at
from recollect.server.pages import Page
from recollect.server.schemas.base import Name, Text
from recollect.ui.chat_settings import Given, Settings, settings_of
from recollect.ui.conversation import Shown, Talk, read
from recollect.ui.navigation import CHAT
from recollect.ui.page_route import page_router
from recollect.ui.routes import chat_asking, chat_changes, chat_files
from recollect.ui.session_files import SessionFiles, files_of
from recollect.ui.visit import Visit, Visiting

router = page_router()
router.include_router(chat_asking.router)
router.include_router(chat_changes.router)
router.include_router(chat_files.router)

_LISTED = 40

Search = Annotated[Text, Query(max_length=200)]
Cursor = Annotated[Text | None, Query(max_length=2_000)]


@router.get(CHAT.path)
async def first_page(visit: Visiting, given: Given, search: Search = "", cursor: Cursor = None) -> Response:
    """A conversation that has not begun."""
    await visit.require(CHAT.scope)
    # Drawn here, so that files can be dropped into it before its first question.
    shown = Shown(talk=Talk(secrets.token_urlsafe(12)))
    view = visit.own_view()
    entries = await visit.run(_entries, view, search, cursor)
    settings = await visit.run(settings_of, view, given)
    return _page(visit, shown, settings, entries, search=search, files=SessionFiles())


@router.get("/chat/{session:path}")
async def conversation(
    session: Annotated[Name, Path()],
    visit: Visiting,
    given: Given,
    user: Annotated[Name | None, Query()] = None,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    search: Search = "",
    cursor: Cursor = None,
) -> Response:
    """A conversation."""
    await visit.require(CHAT.scope)
    talk, view = Talk(session, user), visit.own_view(user)

    def look() -> tuple[Shown, Settings, SessionFiles]:
        files = files_of(view, session)
        try:
            shown = read(view, talk, before=before)
        except NotFoundError:
            if not files.exist:
                raise
            shown = Shown(talk=talk)
        return shown, settings_of(view, given), files

    shown, settings, files = await visit.run(look)
    entries = await visit.run(_entries, visit.own_view(), search, cursor)
    return _page(visit, shown, settings, entries, search=search, files=files)


@router.get("/conversations")
async def conversations(
    visit: Visiting, search: Search = "", cursor: Cursor = None, current: Annotated[str, Query(max_length=500)] = ""
) -> Response:
    """The list of conversations."""
    await visit.require(CHAT.scope)
    entries = await visit.run(_entries, visit.own_view(), search, cursor)
    return visit.fragment("chat/list.html", **_listed(entries), search=search, current=current)


def _page(
    visit: Visit,
    shown: Shown,
    settings: Settings,
    entries: list[ConversationEntry],
    *,
    search: str,
    files: SessionFiles,
) -> Response:
    return visit.page(
        "chat/page.html",
        CHAT,
        shown=shown,
        talk=shown.talk,
        settings=settings,
        search=search,
        files=files,
        jobs="",
        current=shown.talk.session if shown.title is not None else "",
        **_listed(entries),
    )


def _entries(view: View, search: str, cursor: str | None) -> list[ConversationEntry]:
    after = Page(limit=_LISTED, cursor=cursor).moment()
    return list(view.memory.overview(text=search.strip() or None, limit=_LISTED + 1, after=after))


def _listed(entries: list[ConversationEntry]) -> dict[str, Any]:
    last = entries[_LISTED - 1].record if len(entries) > _LISTED else None
    return {
        "entries": [(one, Talk(one.record.name, one.record.user)) for one in entries[:_LISTED]],
        "cursor": None if last is None else cursor_at([last.updated_at.isoformat(), last.session_id]),
    }
