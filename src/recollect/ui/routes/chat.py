"""The pages of the area 'Chat': conversations and the list of them, their questions, changes and files."""

from __future__ import annotations

import json
import re
import secrets
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, Form, Path, Query
from pydantic import Field
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from recollect.errors import ConflictError, NotFoundError, UsageError
from recollect.model import Answer
from recollect.model.memory import ConversationEntry, Episode, SessionRecord
from recollect.model.original import Original
from recollect.model.page import cursor_at, moment_at
from recollect.model.record import json_of
from recollect.model.search_options import MAX_QUERY_CHARACTERS
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.pipeline.chat import Conversation
from recollect.pipeline.feedback import ANSWER, SOURCES
from recollect.pipeline.models import EXTRACTIVE
from recollect.pipeline.standpoint import label
from recollect.retrieval.enhance.follow_up import Exchange as Before
from recollect.server.admission import hand_over
from recollect.server.bodies import ChatBody, Moment
from recollect.server.downloads import saved_as
from recollect.server.forms import received_form
from recollect.server.openai.models import configured_model, may_be_named, named_models, written_by
from recollect.server.searches import while_connected
from recollect.server.sse import KeepStream, answer_response, wants_events
from recollect.ui.conversation import (
    Exchange,
    Shown,
    Talk,
    exchange_not_kept,
    exchanges_of,
    own_record,
    page_events,
    read,
    title_of,
    with_passages,
)
from recollect.ui.visit import CHAT, Reading, Visit, Visiting, Writing, page_router

if TYPE_CHECKING:
    from recollect.model.document_record import DocumentRecord
    from recollect.model.job import Job
    from recollect.pipeline.answering import AskEvent

router = page_router()


async def _talk(session: Annotated[Name, Path()], user: Annotated[Name | None, Query()] = None) -> Talk:
    return Talk(session, user)


#: The conversation that an address names.
Named = Annotated[Talk, Depends(_talk)]

# The files of a conversation: documents of its own, which are found in it alone and go with it.


_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFiles:
    """What a conversation holds.

    Attributes:
        exist: Whether it has a place for files.
        documents: Those that are stored.
        jobs: Those that are being read, or could not be.
    """

    exist: bool = False
    documents: Sequence[DocumentRecord] = ()
    jobs: Sequence[Job] = ()

    @property
    def pending(self) -> bool:
        """Whether one of them is still being read."""
        return any(not job.ended for job in self.jobs)


def have_files(view: View, session: str) -> bool:
    """Whether a conversation has a place for files that can be searched."""
    try:
        return not view.sessions.get(session).expired
    except (NotFoundError, UsageError):  # what is an id of a conversation may be none of these
        return False


def files_of(view: View, session: str, jobs: Sequence[int] = ()) -> SessionFiles:
    """The files of a conversation.

    Args:
        view: Of whoever looks.
        session: The conversation.
        jobs: Those that were asked for by the page; of them those are told that have not succeeded.
    """
    if not have_files(view, session):
        return SessionFiles()
    known = [job for number in jobs if (job := _job(view, number)) is not None and job.status != "succeeded"]
    documents = view.view(session=session, collections=None).documents.list(limit=_MOST_SHOWN)
    return SessionFiles(exist=True, documents=documents, jobs=known)


def place_for_files(view: View, session: str) -> View:
    """The view that writes into a conversation's own documents, whose place is made where it is missing.

    They stay as long as the conversation: it is deleted with them.
    """
    if not have_files(view, session):
        try:
            view.sessions.create(session, replace(view.sessions.default_config(), ttl=None))
        except ConflictError:
            # Somebody else has made it meanwhile, or its time is over and nobody has removed it yet.
            if not have_files(view, session):
                view.sessions.end(session)
                view.sessions.create(session, replace(view.sessions.default_config(), ttl=None))
    return view.view(session=session, collections=None)


def _job(view: View, number: int) -> Job | None:
    try:
        return view.jobs.get(number)
    except NotFoundError:
        return None


# What a question is asked of, and by whom it is answered: collections, model, moment; chosen in the page's address.


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What somebody has chosen.

    Attributes:
        collections: Where is searched; none: everywhere.
        model: What writes; None: as configured.
        as_of: What was known then.
    """

    collections: tuple[str, ...] = ()
    model: str | None = None
    as_of: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What there is to choose from, and what is chosen.

    Attributes:
        collections: Those that may be read.
        models: Those that may be named.
        configured: Which model writes where none is chosen; None: none does.
        chosen: What is chosen.
    """

    collections: Sequence[str]
    models: Sequence[str]
    configured: str | None
    chosen: Choices

    @property
    def writer(self) -> str | None:
        """Which model writes the next answer; None: answers are quotes."""
        chosen = self.chosen.model
        return self.configured if chosen is None else None if chosen == EXTRACTIVE else chosen


async def _choices(
    collection: Annotated[tuple[Name, ...], Query(max_length=100)] = (),
    model: Annotated[str, Query(max_length=500)] = "",
    as_of: Annotated[Moment, Query()] = "",
) -> Choices:
    return Choices(collections=collection, model=model or None, as_of=as_of or None)


#: What the page's address says.
Given = Annotated[Choices, Depends(_choices)]


def settings_of(view: View, chosen: Choices) -> Settings:
    """What there is to choose from.

    Args:
        view: Of whoever asks.
        chosen: What is chosen; what there is not is passed over.
    """
    names = sorted(one.name for one in view.collections.each())
    models = named_models(view)
    known = chosen.model is not None and may_be_named(view, chosen.model)
    return Settings(
        collections=names,
        models=[one for one in models if one != EXTRACTIVE],
        configured=configured_model(view),
        chosen=Choices(
            collections=tuple(one for one in chosen.collections if one in names),
            model=chosen.model if known else None,
            as_of=chosen.as_of,
        ),
    )


def require_model(view: View, model: str | None) -> str | None:
    """The language model as `Conversation` takes it, where it may be named.

    Raises:
        UsageError: It may not.
    """
    if model is not None and not may_be_named(view, model):
        raise UsageError(
            f"There is no language model {model[:200]!r} to choose here. You can choose: "
            f"{', '.join(named_models(view))}. `answer_models` in [rag.server] names them."
        )
    return written_by(view, model)


# Questions of the page: exactly the way of ``/v1/chat``, and the answer as parts of the page.
#
# A login that can only read may ask as well. Its questions and answers are not kept; the page sends what was said
# before.


_MOST_BEFORE = 100


@router.post("/conversations/{session:path}/ask")
async def ask(
    talk: Named,
    visit: Visiting,
    question: Annotated[Text, Form(max_length=MAX_QUERY_CHARACTERS)],
    collection: Annotated[tuple[Name, ...], Form(max_length=100)] = (),
    model: Annotated[str, Form(max_length=500)] = "",
    as_of: Annotated[Moment, Form()] = "",
    instead_of: Annotated[int | None, Form(ge=1, le=2**31 - 1)] = None,
    asked_before: Annotated[tuple[Text, ...], Form(max_length=_MOST_BEFORE)] = (),
    answered_before: Annotated[tuple[Text, ...], Form(max_length=_MOST_BEFORE)] = (),
    keep: KeepStream = None,
) -> Response:
    """Ask, and show the answer as it is written; without the page's script, when it is there."""
    await visit.require("read" if instead_of is None else "write", "answer")
    kept = visit.may("write")
    view = visit.own_view(talk.user)
    body = ChatBody(session=talk.session, user=view.standpoint.user, question=question, as_of=as_of or None)
    begun, inside = list[Conversation](), list[str]()

    def asked() -> Iterator[AskEvent]:
        writer = require_model(view, model or None)
        if instead_of is not None:
            own_record(view, talk)
        # The view that is asked has the documents of the conversation beside the collections.
        seen, options = body.searched(view)
        inside.extend([label(talk.session)] if have_files(view, talk.session) else ())
        seen = seen.view(collections=collection or "*", session=talk.session if inside else None)
        conversation = Conversation(
            seen,
            session=talk.session if kept else None,
            options=options,
            history=None if kept else [*map(Before, asked_before, answered_before)],
            model=writer,
            instead_of=instead_of,
            drafts=True,
        )
        begun.append(conversation)
        yield from conversation.ask(question)

    def read(answer: Answer) -> tuple[Exchange, str | None]:
        if not kept:
            return exchange_not_kept(view, talk, answer), None
        stored, record = begun[0].kept, own_record(view, talk)
        assert stored is not None, "a conversation with a session remembers"
        turns = view.memory.turns(talk.session, after=min(stored.positions) - 1, limit=2)
        exchange = next(exchanges_of(talk, turns, record))
        return with_passages(view, talk, exchange, answer), title_of(view, record)

    if wants_events(visit.request):
        stream = visit.service.streams.stream(asked)
        events = page_events(visit, talk, question, stream, read=read, alone=lambda: inside[0] if inside else None)
        return answer_response(visit.service.kept, events, partial(hand_over, visit.request), seconds=keep)

    def whole() -> Exchange:
        *_, answer = asked()
        assert isinstance(answer, Answer)
        return read(answer)[0]

    exchange = await while_connected(visit.request, visit.service.streams.run(whole))
    return visit.go_to(talk.path()) if kept else visit.page("chat/not_kept.html", CHAT, exchange=exchange, talk=talk)


# What is done with a conversation: renamed, deleted, exported; and what is said of its answers.


_PAGE_TURNS = 500


@router.post("/conversations/{session:path}/rename")
async def rename(talk: Named, visit: Writing, title: Annotated[Text, Form(max_length=200)] = "") -> Response:
    """Call it something; an empty title: by its first words."""
    view = visit.own_view(talk.user)

    def change() -> None:
        own_record(view, talk)
        view.memory.rename(talk.session, title.strip() or None)

    await visit.run(change)
    return visit.go_to(talk.path())


@router.post("/conversations/{session:path}/delete")
async def delete(talk: Named, visit: Writing) -> Response:
    """Remove it for good, with its files."""
    view = visit.own_view(talk.user)

    def change() -> None:
        found = False
        with suppress(NotFoundError):
            own_record(view, talk)
            view.memory.delete(talk.session)
            found = True
        try:
            view.sessions.end(talk.session)
        except (NotFoundError, UsageError):
            if not found:
                raise

    await visit.run(change)
    return visit.go_to("/chat")


@router.post("/conversations/{session:path}/feedback")
async def judge(
    talk: Named,
    visit: Writing,
    position: Annotated[int, Form(ge=1, le=2**31 - 1)],
    helpful: Annotated[bool, Form()],
) -> Response:
    """Say whether an answer helped."""
    view = visit.own_view(talk.user)

    def change() -> bool | None:
        own_record(view, talk)
        view.view(session=talk.session).feedback.judge(position, helpful=helpful)
        return own_record(view, talk).helpful.get(position)

    said = await visit.run(change)
    if not visit.is_fragment:
        return visit.go_to(talk.path())
    return visit.fragment("chat/feedback.html", talk=talk, position=position, helpful=said)


@router.get("/conversations/{session:path}/export")
async def export(talk: Named, visit: Reading, format: Literal["json", "md"] = "md") -> Response:
    """The whole conversation as a file."""
    view = visit.own_view(talk.user)
    record = await visit.run(own_record, view, talk)
    pieces = _as_json(view, record) if format == "json" else _as_markdown(view, record)
    media_type = "application/json" if format == "json" else "text/markdown; charset=utf-8"
    name = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", record.title or talk.session)).strip("-.")[:80]
    return StreamingResponse(
        iterate_in_threadpool(pieces),
        media_type=media_type,
        headers=saved_as(f"{name or 'conversation'}.{format}"),
    )


def _turns(view: View, record: SessionRecord) -> Iterator[Episode]:
    after = 0
    while page := view.memory.turns(record.name, after=after, limit=_PAGE_TURNS):
        yield from page
        after = page[-1].position


def _as_json(view: View, record: SessionRecord) -> Iterator[bytes]:
    head = json.dumps(json_of(record), ensure_ascii=False, indent=2)
    yield head.removesuffix("\n}").encode("utf-8", "replace") + b',\n  "conversation": ['
    for number, turn in enumerate(_turns(view, record)):
        told = json.dumps(json_of(turn), ensure_ascii=False)
        yield f"{',' if number else ''}\n    {told}".encode("utf-8", "replace")
    yield b"\n  ]\n}\n"


def _as_markdown(view: View, record: SessionRecord) -> Iterator[bytes]:
    yield f"# {_line(record.title or record.name)}\n".encode("utf-8", "replace")
    for turn in _turns(view, record):
        at = "" if turn.at is None else f" ({turn.at:%Y-%m-%d %H:%M} UTC)"
        kept, sources = turn.metadata.get(ANSWER), turn.metadata.get(SOURCES)
        passages = kept.get("passages") if isinstance(kept, dict) else None
        lines = [f"\n## {_line(turn.role)}{at}\n", turn.content, ""]
        for one in next((places for places in (sources, passages) if isinstance(places, list) and places), []):
            page = f", p. {one['page']}" if one.get("page") else ""
            lines.append(f"[{one.get('marker')}] {_line(str(one.get('source')))}{page}  ")
        yield "\n".join([*lines, ""]).encode("utf-8", "replace")


def _line(text: str) -> str:
    return " ".join(text.split())


# Files that are dropped into a conversation: read by jobs, and found in that conversation alone.


@router.post("/conversations/{session:path}/files")
async def add(talk: Named, visit: Writing) -> Response:
    """Put files into a conversation, which may not have begun."""
    view = visit.own_view(talk.user)

    async with received_form(visit.request) as form:

        def store() -> list[int]:
            files = [
                Original.of_open_file(
                    one.file, name=one.filename or "", mime_type=one.content_type or "application/octet-stream"
                )
                for one in form.files
            ]
            return [job.job_id for job in place_for_files(view, talk.session).jobs.upload(files)]

        jobs = await visit.run(store)
    if not visit.is_fragment:
        return visit.go_to(talk.path())
    return await _shown(visit, talk, jobs)


@router.get("/conversations/{session:path}/files")
async def show(
    talk: Named,
    visit: Reading,
    job: Annotated[tuple[Annotated[int, Field(ge=1, le=2**63 - 1)], ...], Query(max_length=100)] = (),
) -> Response:
    """The files of a conversation, and how far those have come that were just sent."""
    return await _shown(visit, talk, job)


async def _shown(visit: Visit, talk: Talk, jobs: tuple[int, ...] | list[int]) -> Response:
    files = await visit.run(files_of, visit.own_view(talk.user), talk.session, tuple(jobs))
    told = "".join(f"&job={one.job_id}" for one in files.jobs)
    return visit.fragment("chat/files.html", talk=talk, files=files, jobs=told)


# Conversations, and the list of them. Their address takes whatever no route above it does.


_LISTED = 40

Search = Annotated[Text, Query(max_length=200)]
Cursor = Annotated[Text | None, Query(max_length=2_000)]


@router.get(CHAT.path)
async def first_page(visit: Reading, given: Given, search: Search = "", cursor: Cursor = None) -> Response:
    """A conversation that has not begun."""
    # Drawn here, so that files can be dropped into it before its first question.
    shown = Shown(talk=Talk(secrets.token_urlsafe(12)))
    view = visit.own_view()
    entries = await visit.run(_entries, view, search, cursor)
    settings = await visit.run(settings_of, view, given)
    return _page(visit, shown, settings, entries, search=search, files=SessionFiles())


@router.get("/chat/{session:path}")
async def conversation(
    talk: Named,
    visit: Reading,
    given: Given,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None,
    search: Search = "",
    cursor: Cursor = None,
) -> Response:
    """A conversation."""
    view = visit.own_view(talk.user)

    def look() -> tuple[Shown, Settings, SessionFiles]:
        files = files_of(view, talk.session)
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
    visit: Reading, search: Search = "", cursor: Cursor = None, current: Annotated[str, Query(max_length=500)] = ""
) -> Response:
    """The list of conversations."""
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
    return list(view.memory.overview(text=search.strip() or None, limit=_LISTED + 1, after=moment_at(cursor)))


def _listed(entries: list[ConversationEntry]) -> dict[str, Any]:
    last = entries[_LISTED - 1].record if len(entries) > _LISTED else None
    return {
        "entries": [(one, Talk(one.record.name, one.record.user)) for one in entries[:_LISTED]],
        "cursor": None if last is None else cursor_at([last.updated_at.isoformat(), last.session_id]),
    }
