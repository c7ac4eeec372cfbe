"""A shorter way to a route that is asked all the time: what FastAPI finds out for each request is known here."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from fastapi.security import SecurityScopes
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from recollect.pipeline import View
from recollect.server.dependencies import asking, service_of

B = TypeVar("B", bound=BaseModel)

_PASSED = "recollect_passed_direct"
_READ = SecurityScopes(["read"])


class DirectRoute(BaseRoute, Generic[B]):
    """Answers what a route of FastAPI answers, where the request has a valid JSON body.

    Any other request goes on to the route of FastAPI, which stands behind this one and says what is wrong.

    Args:
        path: The whole path, without parameters.
        body: The class of the body.
        answer: The function of the route. It takes the body, the caller's view and the request; it needs the scope
            ``read``.
    """

    def __init__(self, path: str, body: type[B], answer: Callable[[B, View, Request], Awaitable[Response]]) -> None:
        self.path = path
        self._body = body
        self._answer = answer

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a POST that has not been passed on yet."""
        if scope["path"] != self.path or scope["type"] != "http" or scope["method"] != "POST" or _PASSED in scope:
            return Match.NONE, {}
        return Match.FULL, {"endpoint": self._answer, "path_params": {}, "route": self}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        sent = await _body_of(request)
        body = self._read(request, sent)
        if body is None:
            scope[_PASSED] = True
            await request.app.router(scope, _again(sent, receive), send)
            return
        view = (await asking(request, _READ)).view(service_of(request).rag)
        response = await self._answer(body, view, request)
        await response(scope, receive, send)

    def _read(self, request: Request, sent: bytes) -> B | None:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return None
        try:
            return self._body.model_validate(json.loads(sent))
        except (ValueError, ValidationError, RecursionError):
            return None


async def _body_of(request: Request) -> bytes:
    try:
        return await request.body()
    except HTTPException:
        raise
    except Exception as exc:
        # As FastAPI says it.
        raise HTTPException(400, "There was an error parsing the body") from exc


def _again(sent: bytes, receive: Receive) -> Receive:
    """Give a body that was read to whoever receives it next."""
    read = False

    async def again() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": sent, "more_body": False}

    return again
