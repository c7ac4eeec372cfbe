"""``/v1/chat``: a question in a conversation that is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from recollect.model import Answer
from recollect.pipeline.chat import Conversation
from recollect.replies.answers import AnswerJson, answer_json
from recollect.server.admission import hand_over
from recollect.server.dependencies import Asking, Participant
from recollect.server.kept_streams import KeepStream, answer_response
from recollect.server.leaving import while_connected
from recollect.server.problems import documented
from recollect.server.schemas.retrieval import ChatBody
from recollect.server.sse import ANSWER_EVENTS, answer_events, documented_events, wants_events

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent

router = APIRouter(tags=["conversations"], responses=documented(404))


@router.post(
    "/chat",
    summary="Ask a question in a conversation",
    response_model=AnswerJson,
    responses={200: {"content": documented_events(*ANSWER_EVENTS)}, **documented(422, 502)},
)
async def chat(
    body: ChatBody, caller: Participant, service: Asking, request: Request, keep: KeepStream = None
) -> Response | AnswerJson:
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

    def whole() -> AnswerJson:
        *_, answer = ask()
        assert isinstance(answer, Answer)
        return answer_json(answer, explain=body.explain)

    return await while_connected(request, service.streams.run(whole))
