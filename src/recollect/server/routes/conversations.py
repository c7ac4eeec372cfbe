"""``/v1/sessions``, ``/v1/chat``, ``/v1/recall``, ``/v1/facts`` and ``/v1/feedback``: conversations.

A conversation and a session with documents are independent: one id may name either, or both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import AliasChoices, Field
from starlette.responses import Response
from typing_extensions import TypedDict

from recollect.context import WeightAdaptation
from recollect.errors import NotFoundError, UsageError
from recollect.model import Answer
from recollect.model.document_record import DocumentRecord
from recollect.model.document_session import DocumentSession
from recollect.model.memory import Episode, RecallOptions, Remembered, SessionRecord, Turn
from recollect.model.page import cursor_at
from recollect.model.search_options import MAX_QUERY_CHARACTERS, MAX_TOP_K
from recollect.model.time import read_time
from recollect.operations.conversations import FactOperations, FeedbackOperations
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.pipeline.chat import Conversation
from recollect.replies.conversations import (
    DeletedSessionJson,
    EndedSessionJson,
    FactSearchJson,
    ForgottenTurnsJson,
    RecallJson,
    SessionContentJson,
    deleted_session_json,
    ended_session_json,
    forgotten_turns_json,
    session_content_json,
)
from recollect.replies.retrieval import shown_answer
from recollect.server.admission import hand_over
from recollect.server.bodies import Body, ChatBody, Moment
from recollect.server.bound import bind
from recollect.server.dependencies import (
    Asking,
    Page,
    Paging,
    Participant,
    Reader,
    Writer,
    named_moment,
    numbered_moment,
    shown,
)
from recollect.server.problems import documented
from recollect.server.searches import while_connected
from recollect.server.sse import (
    ANSWER_EVENTS,
    KeepStream,
    answer_events,
    answer_response,
    documented_events,
    wants_events,
)

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent


_SHOWN = 100


_User = Annotated[Name | None, Query(description="Whose; needed where several users have a conversation of one id.")]


_Words = Annotated[
    Text | None,
    Query(
        max_length=200,
        description="Only conversations whose title or turns hold this, in whatever case; none of the other sessions.",
    ),
]


_Session = Annotated[
    Name | None, Query(description="In contexts of this conversation; left out: in all, for the store's owner.")
]


_Whose = Annotated[Name | None, Query(description="Whose conversation, where several users have one of that id.")]


_MAX_CHARACTERS = 100_000
_MAX_TURNS = 1_000


class SessionBody(Body):
    """A new session with documents of its own; what is left out is as configured."""

    session: Name = Field(description="Your id of it.")
    ttl: Annotated[Text, Field(max_length=100)] | None = Field(
        None, description="How long it lives: 30m, 2h, 1d; never: until it is ended."
    )
    max_documents: int | None = Field(None, ge=1, le=1_000_000)
    when_full: Literal["error", "oldest"] | None = Field(
        None, description="One document too many is refused, or the oldest one goes."
    )
    auto_cleanup: bool | None = Field(None, description="Remove it once it has expired and is come across.")

    def options(self) -> dict[str, Any]:
        """What is given, as the library takes it."""
        return self.model_dump(exclude={"session"}, exclude_none=True)


class TurnBody(Body):
    """Something that was said."""

    content: Text = Field(min_length=1, max_length=_MAX_CHARACTERS)
    role: Name = Field("user", description="Who said it: user, assistant, or a name.")
    at: Moment | None = Field(None, description="When: ISO 8601 (without a zone: UTC); left out: not known.")
    id: Name | None = Field(None, description="Your id of the turn: the same one is stored once.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Given back as it is.")

    def turn(self) -> Turn:
        """As the library takes it.

        Raises:
            UsageError: ``at`` is no time.
        """
        moment = None if self.at is None else read_time(self.at, name="at")
        return Turn(content=self.content, role=self.role, at=moment, turn_id=self.id, metadata=self.metadata)


class RememberBody(Body):
    """What was said, in its order."""

    turns: tuple[TurnBody, ...] = Field(min_length=1, max_length=_MAX_TURNS)
    user: Name | None = Field(None, description="Whose conversation, where it begins or several users have one.")


class ForgetBody(Body):
    """Turns that are removed for good."""

    turns: tuple[Annotated[int, Field(ge=1, le=2**31 - 1)], ...] = Field(
        min_length=1, max_length=_MAX_TURNS, description="Their positions."
    )
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")


class RenameBody(Body):
    """What a conversation is called."""

    title: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        description="null: by its first words again."
    )
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")


class MemorySearch(Body):
    """Where in memory is looked, and how."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    session: Name | None = Field(None, description="Only this conversation.")
    user: Name | None = Field(None, description="All of this user's conversations, beside the one named.")
    top_k: int = Field(10, ge=1, le=MAX_TOP_K)
    mode: Literal["hybrid", "dense", "lexical"] = Field("hybrid", description="Words and meaning, or one of them.")
    as_of: Moment | None = Field(None, description="What was known at this time (without a zone: UTC).")

    def of(self, view: View) -> View:
        """The view that is searched.

        Raises:
            UsageError: ``as_of`` is no time.
        """
        return view.view(session=self.session, user=self.user, as_of=self.as_of)

    def options(self) -> RecallOptions:
        """How it is searched, as the library takes it."""
        return RecallOptions(top_k=self.top_k, mode=self.mode)


class RecallBody(MemorySearch):
    """A search of what was said."""

    neighbours: int = Field(1, ge=0, le=50, description="Turns to show before and after each.")
    since: Moment | None = Field(None, description="Only what was said then or later.")
    until: Moment | None = Field(None, description="Only what was said before this time.")

    def options(self) -> RecallOptions:
        """How it is searched, as the library takes it.

        Raises:
            UsageError: A time is none.
        """
        return RecallOptions(
            top_k=self.top_k,
            mode=self.mode,
            before=self.neighbours,
            after=self.neighbours,
            since=None if self.since is None else read_time(self.since, name="since"),
            until=None if self.until is None else read_time(self.until, name="until"),
        )


class FactSearchBody(MemorySearch):
    """A search of facts."""


class SessionPage(TypedDict):
    """Conversations, the one with the latest turn first, and the sessions that have documents."""

    sessions: list[SessionRecord]
    document_sessions: list[DocumentSession]
    next_cursor: str | None


class TurnPage(TypedDict):
    """Turns of a conversation, in their order."""

    session: str
    turns: list[Episode]
    next_cursor: str | None


class FeedbackBody(Body):
    """Whether passages that a context showed have helped."""

    sources: tuple[Name, ...] = Field(
        min_length=1, max_length=1_000, description="As the context named them: memory:chat-1, fact:7, hr/leave.md."
    )
    helpful: bool
    session: Name | None = Field(None, description="In contexts of this conversation; left out: in all.")
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")


router = APIRouter(tags=["conversations"])


@router.get("/sessions", summary="List conversations, and sessions with documents")
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
        limit, offset = page.asked, page.number()
        talked = view.memory.list(text=text, limit=limit, offset=offset)
        return talked, [] if text is not None else view.sessions.list(limit=limit, offset=offset)
    last, stored = behind
    return (
        [] if last is None else view.memory.list(text=text, limit=page.asked, after=numbered_moment(last)),
        [] if stored is None else view.sessions.list(limit=page.asked, after=named_moment(stored)),
    )


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@router.post(
    "/sessions", status_code=201, summary="Begin a session with documents of its own", responses=documented(409)
)
def create(body: SessionBody, caller: Writer) -> DocumentSession:
    """They are found in it alone, and vanish with it. A conversation needs none: it begins with its first turn."""
    config = replace(caller.sessions.default_config(), **body.options())
    return caller.sessions.create(body.session, config)


@router.get(
    "/sessions/{session:named}", summary="Show a conversation, and a session with documents", responses=documented(404)
)
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


@router.patch("/sessions/{session:named}", summary="Rename a conversation", responses=documented(404, 422))
def rename(session: Name, body: RenameBody, caller: Writer) -> SessionRecord:
    """Without a title it is called by its first words again."""
    return caller.view(user=body.user).memory.rename(session, body.title)


@router.delete(
    "/sessions/{session:named}",
    summary="Remove a conversation, and a session with documents",
    responses=documented(404),
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


@router.get("/sessions/{session:named}/turns", summary="Read what was said", responses=documented(404))
def turns(session: Name, caller: Reader, page: Paging, user: _User = None) -> TurnPage:
    """In its order."""
    view = caller.view(user=user)
    said, more = shown(view.memory.turns(session, after=page.number(), limit=page.asked), page)
    return {
        "session": session,
        "turns": list(said),
        "next_cursor": cursor_at(said[-1].position) if more else None,
    }


@router.post(
    "/sessions/{session:named}/turns",
    status_code=201,
    summary="Remember what was said",
    responses=documented(404, 409, 422),
)
def remember(session: Name, body: RememberBody, caller: Writer) -> Remembered:
    """The conversation begins with its first turn. A turn whose id is stored already is not stored again."""
    view = caller.view(session=session, user=body.user)
    return view.remember([turn.turn() for turn in body.turns])


@router.post("/sessions/{session:named}/forget", summary="Remove turns", responses=documented(404))
def forget(session: Name, body: ForgetBody, caller: Writer) -> ForgottenTurnsJson:
    """With everything that was made of them, for good."""
    view = caller.view(user=body.user)
    return forgotten_turns_json(session, removed=view.memory.forget(session, body.turns))


@router.post(
    "/sessions/{session:named}/renew", summary="Begin the time of a session anew", responses=documented(404, 410)
)
def renew(session: Name, caller: Writer) -> DocumentSession:
    """Of a session with documents, before its time is over."""
    return caller.sessions.renew(session)


@router.post("/sessions/{session:named}/end", summary="End a session with documents", responses=documented(404))
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


# `/v1/chat`: a question in a conversation that is remembered.


@router.post(
    "/chat",
    summary="Ask a question in a conversation",
    response_model=Answer,
    responses={200: {"content": documented_events(*ANSWER_EVENTS)}, **documented(404, 422, 502)},
)
async def chat(
    body: ChatBody, caller: Participant, service: Asking, request: Request, keep: KeepStream = None
) -> Response | Answer:
    """As `recollect chat`: it may lean on what was said before, and question and answer are remembered.

    The answer's turn keeps its `rag_sources`: which documents it cites, in which versions, and where. With
    `Accept: text/event-stream` it comes as it is written, with the events of `/v1/ask`.
    """
    view, options = body.searched(caller)

    def ask() -> Iterator[AskEvent]:
        return Conversation(view, session=body.session, options=options).ask(body.question)

    if wants_events(request):
        events = answer_events(service.streams.stream(ask), explain=body.explain or keep is not None)
        return answer_response(service.kept, events, partial(hand_over, request), seconds=keep)

    def whole() -> Answer:
        *_, answer = ask()
        assert isinstance(answer, Answer)
        return shown_answer(answer, explain=body.explain)

    return await while_connected(request, service.streams.run(whole))


# `/v1/recall` and `/v1/facts`: what conversations said, and what was drawn from them.


@router.post("/recall", summary="Find what was said", responses=documented(404))
async def recall(body: RecallBody, caller: Reader, service: Asking, request: Request) -> RecallJson:
    """As `recollect recall --json`: the turns that answer, with those around them."""
    return await service.searches.run(request, _recalled, caller, body)


def _recalled(caller: View, body: RecallBody) -> RecallJson:
    found = body.of(caller).recall(body.query, body.options())
    return {"query": body.query, "mode": body.mode, "results": found}


@router.post("/facts/search", summary="Find facts", responses=documented(404))
async def search(body: FactSearchBody, caller: Reader, service: Asking, request: Request) -> FactSearchJson:
    """Those that answer a question, with the words that they rest on."""
    return await service.searches.run(request, _found, caller, body)


def _found(caller: View, body: FactSearchBody) -> FactSearchJson:
    found = body.of(caller).facts.search(body.query, body.options())
    return {"query": body.query, "mode": body.mode, "results": found}


bind(router, FactOperations, lambda view: view.facts)


# `/v1/feedback`: whether what a context showed has helped.

bind(router, FeedbackOperations, lambda view: view.feedback)


@router.get("/feedback", name="show", summary="What feedback makes of the weights", responses=documented(404))
def weights(caller: Reader, session: _Session = None, user: _Whose = None) -> WeightAdaptation:
    """Of documents and of memory, in contexts."""
    return caller.view(session=session, user=user).feedback.weights()


@router.post("/feedback", summary="Say whether passages of a context helped", responses=documented(404))
def give(body: FeedbackBody, caller: Writer) -> WeightAdaptation:
    """The side that helps more, documents or memory, weighs a little more from then on, where that is on."""
    return caller.view(session=body.session, user=body.user).feedback.give(body.sources, helpful=body.helpful)
