"""No request is read further than it may be long."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimit:
    """Refuses bodies that are too long, by what they say of themselves and by what comes.

    FastAPI's own limit stands outside of everything and answers in plain text, without a request's id.

    Args:
        app: What answers.
        limit_of: The bytes that a request may have at most.
        refuse: Makes the response, given the reason.
    """

    def __init__(self, app: ASGIApp, *, limit_of: Callable[[Scope], int], refuse: Callable[[str], ASGIApp]) -> None:
        self._app = app
        self._limit_of = limit_of
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit_of(scope)
        why = f"The body is longer than the {limit:,} bytes that are taken here."
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdecimal() and int(told) > limit:
            await self._refuse(why)(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise HTTPException(413, why)
            return message

        await self._app(scope, counted, send)
