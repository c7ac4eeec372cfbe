"""What surrounds requests that cost something: replies tell the limits, and a write with a key takes effect once."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING

from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import AuthenticationError, StoreError
from recollect.model.activity import Access, Shown, ShownDocument, showing_to
from recollect.model.once import OnceRequest, made_once
from recollect.server.idempotency import HEADER, MOST_KEPT_BYTES, Begun, Reply, fingerprint
from recollect.server.limits import LimitKind
from recollect.server.named_paths import as_sent
from recollect.server.problems import problem_of, respond
from recollect.server.request_context import current_request_id
from recollect.server.requests import caller_of

if TYPE_CHECKING:
    from recollect.server.caller import Caller
    from recollect.server.limits import Limits, LimitState
    from recollect.server.service import Service


_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})

#: What a language model is asked for; everything else that is read is a search.
ANSWERS = frozenset({"/v1/ask", "/v1/chat", "/v1/chat/completions", "/v1/responses", "/api/chat", "/widget/ask"})
#: What only reads, though it is asked for with POST.
READS = frozenset(
    {
        *ANSWERS,
        *("/v1/search/hints", "/v1/context", "/v1/context/assembly", "/v1/diff", "/v1/why-not"),
        *("/v1/recall", "/v1/embeddings", "/mcp"),
    }
)

# An answer that is remembered: what is asked again would be remembered twice.
_REMEMBERED = "/v1/chat"

_STATE = "recollect_admission"
# To end one is to go away.
_STREAMS = "/v1/streams/"


@dataclass(slots=True)
class Admission:
    """What was counted for a request, and is to be counted back when it has ended.

    Attributes:
        caller: Who makes it; None: nobody that is known.
        limits: What they may still ask for.
        closing: Called when the reply has been sent, with its status.
        noted: Whether something was noted for the log of accesses that may not be stored yet.
    """

    caller: Caller | None = None
    limits: LimitState | None = None
    closing: list[Callable[[int], None]] = field(default_factory=list)
    noted: bool = False


async def admit(request: HTTPConnection, caller: Caller, service: Service, *, kind: LimitKind | None = None) -> None:
    """Count a request, and what it sends.

    Args:
        request: The request.
        caller: Who makes it.
        service: What answers.
        kind: Which limit it is counted against; None: that of its path.

    Raises:
        RateLimitedError: There were too many, or the tenant has sent too much today.
    """
    admission = recognise(request, caller)
    path, limits = request.scope["path"], service.limits
    kind = kind or kind_of(request.scope["method"], path)
    known = limits.look(caller, kind)
    admission.limits = known if known is not None else await run_in_threadpool(limits.count, caller, kind)
    if admission.limits.retry_after_seconds is not None:
        raise admission.limits.refusal(kind)
    if kind == "answer":
        admission.closing.append(limits.begin_answer(caller))
    if kind == "ingest" and limits.limits_uploads and (count := _told_length(request.headers)):
        await run_in_threadpool(limits.upload, caller, count)
        admission.closing.append(lambda status: limits.give_back_upload(caller, count) if status >= 400 else None)


def follow(request: HTTPConnection, limits: Limits) -> None:
    """Count a stream that follows a job, for as long as it is sent.

    Raises:
        RateLimitedError: The caller follows as many as they may.
    """
    admission: Admission = request.scope[_STATE]
    assert admission.caller is not None, "only what was admitted is answered"
    admission.closing.append(limits.begin_following(admission.caller))


def hand_over(request: HTTPConnection) -> tuple[Caller, Callable[[], None]]:
    """Who makes a request, and what ends it in its place: for work that goes on when its connection does not."""
    admission: Admission = request.scope[_STATE]
    assert admission.caller is not None, "only what was admitted is answered"
    closing, admission.closing = admission.closing, []

    def end() -> None:
        for close in closing:
            close(200)

    return admission.caller, end


def recognise(request: HTTPConnection, caller: Caller) -> Admission:
    """Note who makes a request, without counting it."""
    admission: Admission = request.scope.setdefault(_STATE, Admission())
    admission.caller = caller
    return admission


def _told_length(headers: Headers) -> int:
    """The bytes that a request says it sends.

    Raises:
        HTTPException: It does not say, and what is uploaded is limited.
    """
    if "transfer-encoding" in headers and "content-length" not in headers:
        raise HTTPException(411, "What is uploaded in a day is limited here: send a Content-Length.")
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def kind_of(method: str, path: str) -> LimitKind:
    """Which limit a request is counted against."""
    if path in ANSWERS:
        return "answer"
    return "ingest" if is_write(method, path) else "search"


def is_write(method: str, path: str) -> bool:
    """Whether a request changes something; whatever is searched is searched with POST."""
    return method in _WRITES and path not in READS and not path.endswith("/search") and not path.startswith(_STREAMS)


class _NotStoredError(Exception):
    """What a reply shows cannot be stored, so it is not sent; whoever raises this has said so to the caller."""


class AdmissionControl:
    """Tells limits in the headers of replies, ends what was begun with a request, and lets a write take effect once.

    Args:
        app: What answers.
        service: What all requests share.
    """

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self._app = app
        self._service = service
        # Of the settings as they were when the application was made.
        self._before_reply = service.rag.config.server.audit.before_reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        admission = scope[_STATE] = Admission()
        replying = _Replying(self, admission, scope, receive, send)
        try:
            with showing_to(lambda shown: self.record(admission, shown)):
                if (replying.writes or scope["path"] == _REMEMBERED) and _key(scope) is not None:
                    await self._once(scope, receive, replying.send)
                else:
                    await self._app(scope, receive, replying.send)
        except _NotStoredError:
            if not replying.refused:
                raise  # its beginning was sent: the connection is cut, which the caller notices
        finally:
            replying.note_change(replying.status)
            for close in admission.closing:
                close(replying.status)

    def record(self, admission: Admission, shown: Shown) -> None:
        """Note what was shown to a request's caller, or changed by them."""
        caller = admission.caller
        if caller is not None:
            access = Access(
                access_id=0,
                at=datetime.now(UTC),
                actor=caller.actor,
                action=shown.action,
                request_id=current_request_id(),
                question=shown.question,
                question_hash=None,
                documents=tuple(ShownDocument(document, version or None) for document, version in shown.documents),
                outcome=shown.outcome,
            )
            self._service.rag.standpoint.assembly.access_log.add(caller.tenant, access)
            admission.noted = True

    async def store(self, admission: Admission) -> None:
        """Have stored what was noted for a request before anything that comes of it is sent, where that is wanted.

        Raises:
            StoreError: It cannot be stored now.
        """
        if self._before_reply and admission.noted:
            admission.noted = False
            await run_in_threadpool(self._service.rag.standpoint.assembly.access_log.store)

    async def _once(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a write with a key: with what was replied to it before, or by making it."""
        idempotency = self._service.idempotency
        request = Request(scope, receive)
        key = _key(scope)
        assert key is not None
        try:
            caller = await caller_of(request, self._service.authenticator)
        except AuthenticationError:
            await self._app(scope, receive, send)  # which tells it as it tells it of any request
            return
        async with sent_body(request, receive) as body:
            asked = fingerprint(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), body.digest)
            begun = await run_in_threadpool(idempotency.begin, caller, key, asked)
            if isinstance(begun, Reply):
                await _sent(begun)(scope, receive, send)
                return
            await self._made(begun, scope, body.again, send)

    async def _made(self, begun: Begun, scope: Scope, receive: Receive, send: Send) -> None:
        idempotency = self._service.idempotency
        captured = _Captured()

        async def capture(message: Message) -> None:
            captured.take(message)
            if captured.complete:
                # Before the last of it is sent: whoever has the reply finds it again.
                await run_in_threadpool(idempotency.end, begun, captured.reply())
            await send(message)

        try:
            with made_once(OnceRequest(begun.credential, begun.key, begun.run, begun.request_hash)):
                await self._app(scope, receive, capture)
        finally:
            # It failed, or its client went away.
            if not captured.complete:
                await run_in_threadpool(idempotency.give_up, begun)


class _Replying:
    """Sends the reply to a request on: with its limits, and once what it shows is in the log, where that is wanted."""

    def __init__(
        self, control: AdmissionControl, admission: Admission, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._control = control
        self._admission = admission
        self._scope, self._receive, self._send = scope, receive, send
        self.writes = is_write(scope["method"], scope["path"])
        self.status = 500
        self.refused = self._noted = False

    def note_change(self, status: int) -> None:
        """Note what a write has changed, once."""
        if self.writes and status < 400 and not self._noted:
            self._noted = True
            self._control.record(self._admission, _change(self._scope))

    async def send(self, message: Message) -> None:
        """Send one message of the reply."""
        begins = message["type"] == "http.response.start"
        if begins:
            self.note_change(message["status"])
            if self._admission.limits is not None:
                MutableHeaders(scope=message).update(self._admission.limits.headers())
        try:
            await self._control.store(self._admission)
        except StoreError as exc:
            if begins:
                self.refused = True
                await respond(problem_of(exc))(self._scope, self._receive, self._send)
            raise _NotStoredError from exc
        if begins:
            self.status = message["status"]
        await self._send(message)


class _Captured:
    """A reply as it goes by."""

    def __init__(self) -> None:
        self.complete = False
        self._status = 500
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._whole = True

    def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = dict(Headers(raw=message["headers"]).items())
        elif message["type"] == "http.response.body":
            self._whole = self._whole and len(self._body) + len(message.get("body", b"")) <= MOST_KEPT_BYTES
            if self._whole:
                self._body += message.get("body", b"")
            self.complete = not message.get("more_body", False)

    def reply(self) -> Reply:
        return Reply(status=self._status, headers=self._headers, body=bytes(self._body) if self._whole else None)


def _change(scope: Scope) -> Shown:
    """What a write was, by its path with the names of what stands in it, and the document that it names."""
    path, named = as_sent(scope["path"]), scope.get("path_params", {})
    for name, value in named.items():
        path = path.replace(f"/{value}", f"/{{{name}}}", 1)
    document = str(named.get("document_id", ""))
    documents = ((int(document), 0),) if document.isdecimal() and len(document) < 19 else ()
    return Shown(action=f"{scope['method']} {path}", documents=documents)


def _sent(reply: Reply) -> Response:
    return Response(reply.body, status_code=reply.status, headers=dict(reply.headers))


def _key(scope: Scope) -> str | None:
    return Headers(scope=scope).get(HEADER)


# What a request sends, read before the route reads it: what it says is known then, and the route gets it again.


# In memory of a body; what is longer is in a file without a name.
_IN_MEMORY_BYTES = 1 << 20
_READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class SentBody:
    """A body that was read.

    Attributes:
        digest: Of what it says: two forms with the same parts have one digest, whatever stands between their parts.
        again: Gives it to whoever receives it next.
    """

    digest: bytes
    again: Receive


@asynccontextmanager
async def sent_body(request: Request, receive: Receive) -> AsyncIterator[SentBody]:
    """The body of a request; what it was kept in is gone at the end of the block."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    # Clients draw another boundary each time that they send the same form.
    boundary = options.get(b"boundary", b"") if kind == b"multipart/form-data" else b""
    with SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
        async for part in request.stream():
            await run_in_threadpool(kept.write, part)
        digest = await run_in_threadpool(_digest, kept, boundary)
        kept.seek(0)
        over = False

        async def again() -> Message:
            nonlocal over
            if over:
                return await receive()
            part = await run_in_threadpool(kept.read, _READ_BYTES)
            over = len(part) < _READ_BYTES
            return {"type": "http.request", "body": part, "more_body": not over}

        yield SentBody(digest, again)


def _digest(kept: IO[bytes], boundary: bytes) -> bytes:
    """SHA-256 of what was kept, without the boundary wherever it stands."""
    digest, rest = hashlib.sha256(), b""
    held = max(len(boundary) - 1, 0)
    kept.seek(0)
    while part := kept.read(_READ_BYTES):
        rest += part
        rest = rest.replace(boundary, b"") if boundary else rest
        # What may be the beginning of a boundary waits for what comes behind it.
        sure = max(len(rest) - held, 0)
        digest.update(rest[:sure])
        rest = rest[sure:]
    digest.update(rest)
    return digest.digest()
