"""Cancelling what a client of the handshake's revisions asked for: its cancellation comes as a request of its own.

Such a client is given a name when it begins to talk, and says it with every request. Nothing is kept under a name but
the calls that are under way, so a name that another process gave is as good as one's own, and none is ever refused.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, REQUEST_CANCELLED
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class _Call(NamedTuple):
    """A call by who made it, the name that they were given, and its id."""

    owner: str
    client: str
    request_id: str


class CancellableCalls:
    """Passes requests on, and ends those that their client cancels.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way: dict[_Call, anyio.CancelScope] = {}

    async def serve(self, scope: Scope, receive: Receive, send: Send, *, owner: str) -> None:
        """Answer one request.

        Args:
            scope: Of ASGI.
            receive: Of ASGI.
            send: Of ASGI.
            owner: Whose credential it brings: nobody cancels what somebody else asked for.
        """
        headers = Headers(scope=scope)
        body = await _body(receive)
        # Of another kind it is refused by what answers, and was not looked at by what limits JSON.
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        message = _object(body) if kind == "application/json" else {}
        client = headers.get(MCP_SESSION_ID_HEADER, "")
        method, request_id = message.get("method"), message.get("id")
        passed = _replayed(body, receive)
        if method == "initialize":
            await self._app(scope, passed, _naming(send))
        elif request_id is not None and client:
            await self._run(_Call(owner, client, str(request_id)), request_id, scope, passed, send)
        else:
            if method == "notifications/cancelled":
                self._cancel(owner, client, message.get("params"))
            await self._app(scope, passed, send)

    def _cancel(self, owner: str, client: str, params: object) -> None:
        if isinstance(params, Mapping):
            cancelled = self._under_way.get(_Call(owner, client, str(params.get("requestId"))))
            if cancelled is not None:
                cancelled.cancel()

    async def _run(self, call: _Call, request_id: Any, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ANN401 - as it came
        begun = ended = False

        async def watched(message: Message) -> None:
            nonlocal begun, ended
            begun = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with anyio.CancelScope() as cancelled:
            self._under_way[call] = cancelled
            try:
                await self._app(scope, receive, watched)
            finally:
                if self._under_way.get(call) is cancelled:
                    del self._under_way[call]
        if cancelled.cancelled_caught and not ended:
            await _end(request_id, send, begun=begun)


async def _end(request_id: Any, send: Send, *, begun: bool) -> None:  # noqa: ANN401 - as it came
    """What ends a response of events whose call was cancelled."""
    error = {"code": REQUEST_CANCELLED, "message": "Request cancelled"}
    told = json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})
    if not begun:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": f"event: message\r\ndata: {told}\r\n\r\n".encode()})


def _naming(send: Send) -> Send:
    async def named(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            MutableHeaders(scope=message)[MCP_SESSION_ID_HEADER] = secrets.token_hex(16)
        await send(message)

    return named


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(pieces)
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _object(body: bytes) -> Mapping[str, Any]:
    """The message in a body; empty where it is none, which is told by what answers."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replayed(body: bytes, receive: Receive) -> Receive:
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return left.pop() if left else await receive()

    return replayed
