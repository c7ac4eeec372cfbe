"""Bounds on the length of a request's body, and on the number of JSON values in it."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The most values in a JSON body. A parsed value takes a hundred times its text, and each invalid one an error.
MOST_VALUES = 100_000


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def has_too_many_values(body: bytes) -> bool:
    """Return whether a JSON text has more than `MOST_VALUES` values, without parsing it."""
    if _separators(body) <= MOST_VALUES:
        return False
    # Texts have commas, too: only those outside strings count.
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return bare.count(b'"') > 4 * MOST_VALUES or sum(map(_separators, bare.split(b'"')[::2])) > MOST_VALUES


class BodyLimit:
    """Refuses bodies that are too long, by what they say of themselves and by what comes, or have too many values.

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
        kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
        # A body of no stated kind may be read as JSON.
        held: list[bytes] | None = [] if not kind or kind.endswith(("/json", "+json")) else None

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise HTTPException(413, why)
            if held is not None:
                held.append(message.get("body", b""))
                if not message.get("more_body", False) and has_too_many_values(b"".join(held)):
                    raise HTTPException(
                        413, f"The body has more than {MOST_VALUES:,} JSON values. Send them in several requests."
                    )
            return message

        await self._app(scope, counted, send)
