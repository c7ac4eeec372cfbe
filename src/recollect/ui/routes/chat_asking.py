"""Questions of the page: exactly the way of ``/v1/chat``, and the answer as parts of the page.

A login that can only read may ask as well. Its questions and answers are not kept; the page sends what was said before.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import Form, Path, Query
from starlette.responses import Response

from recollect.answer.follow_up import Exchange as Before
from recollect.model import Answer
from recollect.model.bounds import MAX_QUERY_CHARACTERS
from recollect.pipeline.chat import Conversation
from recollect.pipeline.session_place import label
from recollect.server.admission import hand_over
from recollect.server.kept_streams import KeepStream, answer_response
from recollect.server.leaving import while_connected
from recollect.server.schemas.base import Moment, Name, Text
from recollect.server.schemas.retrieval import ChatBody
from recollect.server.sse import wants_events
from recollect.ui.answer_events import page_events
from recollect.ui.chat_settings import require_model
from recollect.ui.conversation import Exchange, Talk, exchange_not_kept, exchanges_of, own_record, title_of
from recollect.ui.navigation import CHAT
from recollect.ui.page_route import page_router
from recollect.ui.session_files import have_files
from recollect.ui.visit import Visiting

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent

router = page_router()

_MOST_BEFORE = 100


@router.post("/conversations/{session:path}/ask")
async def ask(
    session: Annotated[Name, Path()],
    visit: Visiting,
    question: Annotated[Text, Form(max_length=MAX_QUERY_CHARACTERS)],
    user: Annotated[Name | None, Query()] = None,
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
    talk, view = Talk(session, user), visit.own_view(user)
    body = ChatBody(session=session, user=view.standpoint.user, question=question, as_of=as_of or None)
    begun, inside = list[Conversation](), list[str]()

    def asked() -> Iterator[AskEvent]:
        writer = require_model(view, model or None)
        if instead_of is not None:
            own_record(view, talk)
        # The view that is asked has the documents of the conversation beside the collections.
        seen, options = body.searched(view)
        inside.extend([label(session)] if have_files(view, session) else ())
        seen = seen.view(collections=collection or "*", session=session if inside else None)
        conversation = Conversation(
            seen,
            session=session if kept else None,
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
        turns = view.memory.turns(session, after=min(stored.positions) - 1, limit=2)
        return next(exchanges_of(view, talk, turns, record)), title_of(view, record)

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
