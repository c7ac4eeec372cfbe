"""``/v1/streams``: answers whose connection broke, gone on with."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Security
from starlette.responses import Response

from recollect.server.caller import Caller
from recollect.server.dependencies import Asking, asking
from recollect.server.problems import documented
from recollect.server.sse import ANSWER_EVENTS, documented_events

router = APIRouter(prefix="/streams", tags=["retrieval"], responses=documented(404))

_Reader = Annotated[Caller, Security(asking, scopes=["read"])]
_Stream = Annotated[str, Path(max_length=100, description="`Recollect-Stream` of the response that broke off.")]


@router.get(
    "/{stream}",
    summary="Go on with an answer",
    response_class=Response,
    responses={
        200: {"content": documented_events(*ANSWER_EVENTS), "description": "What had not come of it."},
        **documented(409),
    },
)
async def resume(
    stream: _Stream,
    caller: _Reader,
    service: Asking,
    last_event_id: Annotated[int, Header(ge=0, le=2**53, description="Goes on behind this event.")] = 0,
) -> Response:
    """One that was asked for with `Recollect-Keep-Stream`, by whoever asked for it, in the process that writes it."""
    return service.kept.resume(stream, caller, last_event_id)


@router.delete("/{stream}", status_code=204, summary="End an answer")
async def end(stream: _Stream, caller: _Reader, service: Asking) -> None:
    """Nobody waits for it any more: the model stops."""
    service.kept.end(stream, caller)
