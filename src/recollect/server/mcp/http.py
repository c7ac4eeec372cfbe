"""The protocol over HTTP: every request brings its credential, and nothing is kept between two of them."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, REQUEST_CANCELLED
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import RecollectError, UsageError
from recollect.model.time import read_time
from recollect.pipeline.threads import Threads
from recollect.server import problems
from recollect.server.admission import recognise
from recollect.server.authentication import caller_of
from recollect.server.mcp.service import Access, build_server

if TYPE_CHECKING:
    from recollect.pipeline import RAGPipeline
    from recollect.server.authentication import Authenticator
    from recollect.server.caller import Caller
    from recollect.server.limits import Limits


PATH = "/mcp"

# RFC 9728: where a client learns who issues tokens for this resource, of the path and of the host.
_METADATA = "/.well-known/oauth-protected-resource"

# The conversation that is remembered to, where the address names no other.
_SESSION = "mcp"

_PARAMETERS = ("collection", "session", "as_of", "read_only")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Where a request looks, by its address.

    Attributes:
        collection: The collection; ``*``: all that may be read; None: the configured one.
        session: The conversation.
        as_of: What was known then.
        read_only: Whether no tool is offered that changes anything.
    """

    collection: str | None = None
    session: str = _SESSION
    as_of: str | None = None
    read_only: bool = False

    @classmethod
    def of(cls, request: Request) -> Asked:
        """As the query of a request's address says.

        Raises:
            UsageError: It says something else, or the same twice.
        """
        given = request.query_params.multi_items()
        names = [name for name, _ in given]
        for name in names:
            if name not in _PARAMETERS or names.count(name) > 1:
                raise UsageError(f"The address of {PATH} takes {', '.join(_PARAMETERS)}, once each, and not {name!r}.")
        values = dict(given)
        switch = values.pop("read_only", "false").lower()
        if switch not in {"true", "false", "1", "0"}:
            raise UsageError("read_only must be true or false.")
        if "as_of" in values:
            read_time(values["as_of"], name="as_of")
        return cls(**values, read_only=switch in {"true", "1"})

    def access(self, rag: RAGPipeline, caller: Caller, limits: Limits) -> Access:
        """What a caller may see and do there."""
        user = None if caller.principal is None else caller.principal.user_id
        view = caller.view(rag).view(
            collections=self.collection or rag.config.collection, session=self.session, user=user, as_of=self.as_of
        )
        may_write = not self.read_only and "write" in caller.scopes
        place = caller.tenant, str(caller.credential)
        return Access(view=view, may_write=may_write, admit=partial(limits.admitted, caller), caller=place)


class Door:
    """The protocol at ``/mcp``, as a part of an application.

    Every revision is spoken, and none keeps a session. Replies are JSON, or events where something is told before the
    reply, as it always may be for a client of the revisions with a handshake. A client that goes away, or cancels a
    call, ends it.

    Args:
        rag: The open store.
        authenticator: Tells who asks.
        limits: How much they may ask for: each call counts as what it does, and what is told of the tools as nothing.
    """

    def __init__(self, rag: RAGPipeline, authenticator: Authenticator, limits: Limits) -> None:
        self._rag = rag
        self._limits = limits
        self._settings = rag.config.server
        self._threads = Threads(2 * rag.config.storage.max_connections, name="recollect-mcp")
        self._authenticator = authenticator
        self._manager = StreamableHTTPSessionManager(
            build_server(_access_of, self._threads),
            stateless=True,
            # Names and origins are the application's to check, of every path alike.
            security_settings=None,
            max_request_body_size=self._settings.max_body_bytes,
        )
        self._cancellable = CancellableCalls(self._manager.handle_request)

    @property
    def routes(self) -> list[BaseRoute]:
        """Where it answers."""
        return [
            Route(PATH, self),
            Route(_METADATA + PATH, self._metadata, methods=["GET"]),
            Route(_METADATA, self._metadata, methods=["GET"]),
        ]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Requests are answered within this block."""
        try:
            async with self._manager.run():
                yield
        finally:
            await self._threads.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        refusal: Response | None
        try:
            refusal = await self._refusal(request)
        except RecollectError as exc:
            told = problems.problem_of(exc)
            # Clients read the protocol's own error alone, and only of this media type.
            error = {"code": INVALID_REQUEST if told["status"] < 500 else INTERNAL_ERROR, "message": told["detail"]}
            body = {**told, "jsonrpc": "2.0", "id": None, "error": error}
            refusal = JSONResponse(body, status_code=told["status"], headers=problems.headers_of(told))
            if refusal.status_code == 401 and self._issuer is not None:
                metadata = f"{self._base(request)}{_METADATA}{PATH}"
                refusal.headers["WWW-Authenticate"] = f'Bearer realm="recollect", resource_metadata="{metadata}"'
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if request.headers.get(MCP_PROTOCOL_VERSION_HEADER, LATEST_HANDSHAKE_VERSION) in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._cancellable.serve(scope, receive, send, owner=request.state.mcp_owner)
        else:
            with suppress(ClientDisconnect):  # within its message: there is nobody to tell
                await self._manager.handle_request(scope, receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        """Why a request is not served; otherwise what it may see is noted in it."""
        if request.method != "POST":
            # There is nothing to listen to beside replies, and no session to end.
            told = problems.problem(405, "http-405", "Method not allowed", f"{PATH} takes POST alone.")
            return problems.respond(told, {"Allow": "POST"})
        caller = (await caller_of(request, self._authenticator)).require("read")
        recognise(request, caller)
        request.state.mcp_access = Asked.of(request).access(self._rag, caller, self._limits)
        request.state.mcp_owner = f"{caller.tenant} {caller.credential}"
        return None

    @property
    def _issuer(self) -> str | None:
        """Who issues tokens that are taken, where that can be asked for some."""
        issuer = self._settings.jwt.issuer if self._settings.jwt.configured else None
        return issuer if issuer and issuer.startswith(("https://", "http://")) else None

    def _base(self, request: Request) -> str:
        return (self._settings.public_url or str(request.base_url)).rstrip("/")

    async def _metadata(self, request: Request) -> Response:
        if self._issuer is None:
            detail = "Credentials of this server are API keys: no other server issues them."
            return problems.respond(problems.problem(404, "not-found", "There is no such thing", detail))
        return JSONResponse(
            {
                "resource": f"{self._base(request)}{PATH}",
                "authorization_servers": [self._issuer],
                "scopes_supported": ["read", "write"],
                "bearer_methods_supported": ["header"],
                "resource_name": "recollect",
            },
            headers={"Access-Control-Allow-Origin": "*"},
        )


def _access_of(ctx: ServerRequestContext[Any]) -> Access:
    assert ctx.request is not None, "a message over HTTP has its request"
    access: Access = ctx.request.state.mcp_access
    return access


# Cancelling what a client of the handshake's revisions asked for: its cancellation comes as a request of its own.
#
# Such a client is given a name when it begins to talk, and says it with every request. Nothing is kept under a name
# but the calls that are under way, so a name that another process gave is as good as one's own, and none is ever
# refused.


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
