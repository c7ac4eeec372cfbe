"""The widget that pages of other sites embed: a script that shows a frame, the frame, and the answers in it.

The frame is a page of this server, which the browser shows on the key's sites alone (``frame-ancestors``). Requests are
made from within it, so they are this server's own: no other site is let in (CORS), and an embedding page reaches
nothing of what the frame holds, nor the frame anything of the page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from recollect.answer.readable import pieces_of
from recollect.errors import NotFoundError
from recollect.model import Answer
from recollect.model.answer import ShownPassage
from recollect.model.key import ApiKey
from recollect.operations.values import Text
from recollect.pipeline.chat import Conversation
from recollect.server.admission import Service, admit
from recollect.server.authentication import address_of
from recollect.server.bodies import Body
from recollect.server.dependencies import service_of
from recollect.server.sse import answer_events, event_stream
from recollect.ui.languages import language_of
from recollect.ui.templates import STATIC, rendered
from recollect.ui.visit import THEMES, base_of

if TYPE_CHECKING:
    from recollect.pipeline.answering import AskEvent

router = APIRouter(include_in_schema=False)

_KEPT = "public, max-age=300"
_BEARER = "Bearer "
_KeyId = Annotated[str, Path(pattern=r"^[0-9A-Za-z]{14}$")]
_Tenant = Annotated[int, Path(ge=1, lt=2**31)]


class Asked(Body):
    """A question to the widget."""

    question: Text = Field(min_length=1, max_length=2_000)


@router.get("/widget.js")
async def script() -> Response:
    """What a page embeds: it shows a button, and behind it the frame."""
    text = await run_in_threadpool((STATIC / "js/widget/embed.js").read_bytes)
    headers = {"Cache-Control": _KEPT, "Cross-Origin-Resource-Policy": "cross-origin"}
    return Response(text, media_type="text/javascript", headers=headers)


@router.get("/widget/{tenant}/{key_id}")
async def frame(
    request: Request, tenant: _Tenant, key_id: _KeyId, theme: Literal["auto", "light", "dark"] = "auto"
) -> Response:
    """The frame of a key, by its public id; the key itself is handed to it by the page that shows it."""
    key = await run_in_threadpool(_widget_key, service_of(request), tenant, key_id)
    assert key.widget is not None and theme in THEMES
    context = {"theme": theme, "origins": " ".join(key.widget.origins)}
    html = rendered("widget/frame.html", language_of(request), context, base=base_of(request))
    return HTMLResponse(html, headers=_frame_headers(key.widget.origins))


@router.post("/widget/ask")
async def ask(request: Request, body: Asked) -> Response:
    """Answer a question from the key's collection, as events."""
    service = service_of(request)
    service.authenticator.logins.cookies.require_own_page(request)
    given = request.headers.get("authorization", "")
    text = given[len(_BEARER) :] if given.startswith(_BEARER) else ""
    caller, widget = await run_in_threadpool(
        service.authenticator.authenticate_widget, text, address=address_of(request)
    )
    request.state.caller = caller
    await admit(request, caller, service, kind="answer")
    view = caller.view(service.rag).view(collections=widget.collection)

    helpful: list[ShownPassage] = []

    def answered() -> Iterator[AskEvent]:
        for event in Conversation(view, history=()).ask(body.question):
            if isinstance(event, Answer):
                helpful.extend(event.shown_instead)
            yield event

    return event_stream(_shown(service.streams.stream(answered), helpful))


async def _shown(
    stream: AsyncGenerator[Any], helpful: Sequence[ShownPassage]
) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
    """What the widget shows: not what was looked through; and of the passages that may help, the pieces as read."""
    async for name, data in answer_events(stream):
        if name == "done":
            passages = zip(data["passages"] if data["refused"] else (), map(pieces_of, helpful), strict=True)
            yield name, {**data, "passages": [{**one, "pieces": pieces} for one, pieces in passages]}
        elif name not in {"sources", "passage"}:
            yield name, data


def _widget_key(service: Service, tenant: int, key_id: str) -> ApiKey:
    key = service.rag.view(tenant=tenant).keys.get(key_id)
    if key.widget is None or key.status != "active":
        raise NotFoundError("There is no such widget.")
    return key


def _frame_headers(origins: tuple[str, ...]) -> dict[str, str]:
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        f"form-action 'none'; base-uri 'none'; frame-ancestors {' '.join(origins)}"
    )
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
        "Cache-Control": "no-store",
    }
