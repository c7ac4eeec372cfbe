"""What is done with a conversation: renamed, deleted, exported; and what is said of its answers."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import Form, Path, Query
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from recollect.errors import NotFoundError, UsageError
from recollect.model.memory import Episode, SessionRecord
from recollect.pipeline import View
from recollect.pipeline.remembered_answers import SOURCES
from recollect.replies.memory import turn_json
from recollect.replies.sessions import session_json
from recollect.server.schemas.base import Name, Text
from recollect.ui.conversation import Talk, own_record
from recollect.ui.page_route import page_router
from recollect.ui.visit import Visiting

router = page_router()

_User = Annotated[Name | None, Query()]
_Session = Annotated[Name, Path()]
_PAGE_TURNS = 500


@router.post("/conversations/{session:path}/rename")
async def rename(
    session: _Session, visit: Visiting, title: Annotated[Text, Form(max_length=200)] = "", user: _User = None
) -> Response:
    """Call it something; an empty title: by its first words."""
    await visit.require("write", "ingest")
    talk, view = Talk(session, user), visit.own_view(user)

    def change() -> None:
        own_record(view, talk)
        view.memory.rename(session, title.strip() or None)

    await visit.run(change)
    return visit.go_to(talk.path())


@router.post("/conversations/{session:path}/delete")
async def delete(session: _Session, visit: Visiting, user: _User = None) -> Response:
    """Remove it for good, with its files."""
    await visit.require("write", "ingest")
    talk, view = Talk(session, user), visit.own_view(user)

    def change() -> None:
        found = False
        with suppress(NotFoundError):
            own_record(view, talk)
            view.memory.delete(session)
            found = True
        try:
            view.sessions.end(session)
        except (NotFoundError, UsageError):
            if not found:
                raise

    await visit.run(change)
    return visit.go_to("/chat")


@router.post("/conversations/{session:path}/feedback")
async def judge(
    session: _Session,
    visit: Visiting,
    position: Annotated[int, Form(ge=1, le=2**31 - 1)],
    helpful: Annotated[bool, Form()],
    user: _User = None,
) -> Response:
    """Say whether an answer helped."""
    await visit.require("write", "ingest")
    talk, view = Talk(session, user), visit.own_view(user)

    def change() -> bool | None:
        own_record(view, talk)
        view.view(session=session).feedback.judge(position, helpful=helpful)
        return own_record(view, talk).helpful.get(position)

    said = await visit.run(change)
    if not visit.is_fragment:
        return visit.go_to(talk.path())
    return visit.fragment("chat/feedback.html", talk=talk, position=position, helpful=said)


@router.get("/conversations/{session:path}/export")
async def export(
    session: _Session, visit: Visiting, format: Literal["json", "md"] = "md", user: _User = None
) -> Response:
    """The whole conversation as a file."""
    await visit.require("read")
    talk, view = Talk(session, user), visit.own_view(user)
    record = await visit.run(own_record, view, talk)
    pieces = _as_json(view, record) if format == "json" else _as_markdown(view, record)
    media_type = "application/json" if format == "json" else "text/markdown; charset=utf-8"
    name = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", record.title or session)).strip("-.")[:80]
    named = quote(f"{name or 'conversation'}.{format}")
    return StreamingResponse(
        iterate_in_threadpool(pieces),
        media_type=media_type,
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{named}", "Cache-Control": "no-store"},
    )


def _turns(view: View, record: SessionRecord) -> Iterator[Episode]:
    after = 0
    while page := view.memory.turns(record.name, after=after, limit=_PAGE_TURNS):
        yield from page
        after = page[-1].position


def _as_json(view: View, record: SessionRecord) -> Iterator[bytes]:
    head = json.dumps(session_json(record), ensure_ascii=False, indent=2)
    yield head.removesuffix("\n}").encode("utf-8", "replace") + b',\n  "conversation": ['
    for number, turn in enumerate(_turns(view, record)):
        told = json.dumps(turn_json(turn), ensure_ascii=False)
        yield f"{',' if number else ''}\n    {told}".encode("utf-8", "replace")
    yield b"\n  ]\n}\n"


def _as_markdown(view: View, record: SessionRecord) -> Iterator[bytes]:
    yield f"# {_line(record.title or record.name)}\n".encode("utf-8", "replace")
    for turn in _turns(view, record):
        at = "" if turn.at is None else f" ({turn.at:%Y-%m-%d %H:%M} UTC)"
        sources = turn.metadata.get(SOURCES)
        lines = [f"\n## {_line(turn.role)}{at}\n", turn.content, ""]
        for one in sources if isinstance(sources, list) else []:
            page = f", p. {one['page']}" if one.get("page") else ""
            lines.append(f"[{one.get('marker')}] {_line(str(one.get('source')))}{page}  ")
        yield "\n".join([*lines, ""]).encode("utf-8", "replace")


def _line(text: str) -> str:
    return " ".join(text.split())
