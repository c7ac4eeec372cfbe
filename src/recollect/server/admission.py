"""What surrounds requests that cost something: replies tell the limits, and a write with a key takes effect once."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING
from uuid import UUID, uuid4

from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.errors import (
    AuthenticationError,
    ConflictError,
    IdempotencyKeyReusedError,
    RequestUnderWayError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from recollect.model import Scope as TenantScope
from recollect.model.activity import Access, Shown, ShownDocument, showing_to
from recollect.model.once import OnceRequest, made_once
from recollect.server.authentication import caller_of
from recollect.server.limits import LimitKind
from recollect.server.problems import problem_of, respond
from recollect.server.request_context import current_request_id
from recollect.server.requests import as_sent
from recollect.store.admission import LEASE_SECONDS, MadeRequest

if TYPE_CHECKING:
    from recollect.pipeline import RAGPipeline
    from recollect.pipeline.threads import Threads
    from recollect.server.authentication import Authenticator
    from recollect.server.caller import Caller
    from recollect.server.limits import Limits, LimitState
    from recollect.server.metrics import Metrics
    from recollect.server.searches import Searches
    from recollect.server.sse import KeptStreams
    from recollect.store.admission import IdempotencyRepository


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


# Writes that a client may send again: with the header `Idempotency-Key` they take effect once.
#
# A second request of the same key and the same content gets the first one's reply. Keys are a credential's own.


logger = logging.getLogger(__name__)


HEADER = "Idempotency-Key"


REPLAYED_HEADER = "Idempotency-Replayed"


#: Of a reply that is kept whole; of a larger one it is kept that there was one.
MOST_KEPT_BYTES = 1024 * 1024


_MOST_KEY_CHARACTERS = 255


# So often a process says that it makes a request, and tries again to keep what it could not keep.
_BEAT_SECONDS = LEASE_SECONDS / 3


_AGAIN_SECONDS = 0.5


# What could not be kept for so long never will be.
_LONGEST_SECONDS = 600.0


# While the database is away, only so many requests that could not be begun are noted: the others end with their lease.
_MOST_OPEN = 1_000


# What a reply is without: the connection's, and what is of one reply alone.
_OWN_HEADERS = frozenset(
    {
        "content-length",
        "date",
        "server",
        "connection",
        "transfer-encoding",
        "x-request-id",
        "ratelimit",
        "ratelimit-policy",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply as it was sent.

    Attributes:
        status: Of HTTP.
        headers: By name.
        body: All of it; None: it is larger than is kept.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Begun:
    """A request that is made for the first time; one of `Idempotency.end` and `Idempotency.give_up` ends it."""

    scope: TenantScope
    credential: str
    key: str
    run: UUID
    request_hash: bytes


@dataclass(slots=True)
class _Open:
    """A request that is being made, or whose end could not be kept yet.

    Attributes:
        beat: Says that it is being made.
        close: Keeps its end; None: it is being made.
        failed_at: When that failed first.
    """

    beat: Callable[[], None]
    close: Callable[[], None] | None = None
    failed_at: float = field(default=0.0)


class Idempotency:
    """Makes a request with a key take effect once. Safe to share between threads and processes.

    While requests are made, a thread says every few seconds that this process lives, and keeps what could not be kept
    when they ended because the database was away: a reply is never lost for that.

    Args:
        rag: The pipeline in whose store it is kept.
    """

    def __init__(self, rag: RAGPipeline) -> None:
        self._rag = rag
        self._open: dict[UUID, _Open] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def begin(self, caller: Caller, key: str, fingerprint: bytes) -> Begun | Reply:
        """Begin a request, or find what was replied to it before.

        Args:
            caller: Who asks.
            key: As the header has it, with or without quotation marks.
            fingerprint: Of what is asked (`fingerprint`).

        Raises:
            UsageError: The key is none.
            IdempotencyKeyReusedError: Something else was asked with it.
            RequestUnderWayError: The first request is under way.
            ConflictError: Its reply was not kept, or it was broken off after it took effect.
        """
        key = read_key(key)
        begun = Begun(TenantScope(tenant_id=caller.tenant), str(caller.credential), key, uuid4(), fingerprint)
        try:
            found = self._repository.begin(begun.scope, begun.credential, key, fingerprint, begun.run)
        except StoreError:
            # It may stand in the database all the same: the connection was lost after that.
            if len(self._open) < _MOST_OPEN:
                self._look_after(begun, partial(self._give_up, begun))
            raise
        if found is not None:
            return _reply(found, key, fingerprint)
        self._look_after(begun)
        return begun

    def end(self, begun: Begun, reply: Reply) -> None:
        """Keep the reply to a request that took effect; one that did not may be made again.

        What must not be stored (``Cache-Control: no-store``: a key that is shown once) is not, and neither is what is
        larger than `MOST_KEPT_BYTES`: then it is kept that there was a reply. Where the database is away, that is done
        later.
        """
        if reply.status >= 400:
            self.give_up(begun)
            return
        headers = {name.lower(): value for name, value in reply.headers.items()}
        # Every stream says so to proxies, and none shows a secret.
        streamed = headers.get("content-type", "").startswith("text/event-stream")
        keep = streamed or "no-store" not in headers.get("cache-control", "")
        ended = partial(
            self._repository.end,
            begun.scope,
            begun.credential,
            begun.key,
            begun.run,
            status=reply.status,
            headers={name: value for name, value in headers.items() if name not in _OWN_HEADERS},
            body=reply.body if keep else None,
        )
        self._close(begun, ended)

    def give_up(self, begun: Begun) -> None:
        """Let a request that failed be made again; where the database is away, that is done later."""
        self._close(begun, partial(self._give_up, begun))

    def _give_up(self, begun: Begun) -> None:
        self._repository.give_up(begun.scope, begun.credential, begun.key, begun.run)

    def _close(self, begun: Begun, close: Callable[[], None]) -> None:
        try:
            close()
        except StoreError as exc:
            logger.warning("The end of a request with an idempotency key is kept later: %s", exc)
            self._look_after(begun, close)
        else:
            with self._lock:
                self._open.pop(begun.run, None)

    def _look_after(self, begun: Begun, close: Callable[[], None] | None = None) -> None:
        """Have the thread say that a request is being made, or keep its end."""
        beat = partial(self._repository.beat, begun.scope, begun.credential, begun.key, begun.run)
        with self._lock:
            self._open[begun.run] = _Open(beat, close, time.monotonic())
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="recollect-idempotency", daemon=True)
                self._thread.start()
        if close is not None:
            self._wake.set()

    def _keep(self) -> None:
        """Look after open requests until there are none."""
        pause = _BEAT_SECONDS
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            with self._lock:
                if not self._open:
                    self._thread = None
                    return
                found = list(self._open.items())
            for run, one in found:
                if not self._keep_one(run, one):
                    break
            pause = _AGAIN_SECONDS if any(one.close for _, one in found) else _BEAT_SECONDS

    def _keep_one(self, run: UUID, one: _Open) -> bool:
        """Whether the database is there."""
        try:
            (one.close or one.beat)()
        except StoreUnavailableError as exc:
            if one.close is None or time.monotonic() - one.failed_at < _LONGEST_SECONDS:
                return False
            logger.error("The end of a request with an idempotency key was not kept: %s", exc)
        except Exception:
            logger.exception("The end of a request with an idempotency key was not kept.")
        if one.close is not None:
            with self._lock:
                self._open.pop(run, None)
        return True

    @property
    def _repository(self) -> IdempotencyRepository:
        return self._rag.standpoint.store.idempotency


def fingerprint(method: str, path: str, query: str, body: bytes) -> bytes:
    """What a request asks for, as a hash; ``body`` is what it says, or a digest of that."""
    digest = hashlib.sha256()
    for part in (method.encode(), path.encode(), query.encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def read_key(given: str) -> str:
    """An idempotency key as a header has it: a string of the standard, in quotation marks, or without them.

    Raises:
        UsageError: It is none.
    """
    text = given.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not text or len(text) > _MOST_KEY_CHARACTERS or not text.isascii() or not text.isprintable() or '"' in text:
        raise UsageError(f"{HEADER} must be 1 to {_MOST_KEY_CHARACTERS} printable ASCII characters, such as a UUID.")
    return text


def _reply(made: MadeRequest, key: str, asked: bytes) -> Reply:
    if made.request_hash != asked:
        raise IdempotencyKeyReusedError(
            f"The idempotency key {key!r} was used for another request: give each its own key."
        )
    if made.broken_off:
        raise ConflictError(
            f"The request with the idempotency key {key!r} took effect, and was broken off before it was replied to: "
            "look at what it has changed. Under another key it would be made once more."
        )
    if made.status is None:
        raise RequestUnderWayError(f"The request with the idempotency key {key!r} is under way: ask again in a moment.")
    if made.body is None:
        raise ConflictError(
            f"The request with the idempotency key {key!r} took effect (status {made.status}); its reply was not kept."
        )
    return Reply(status=made.status, headers={**made.headers, REPLAYED_HEADER: "true"}, body=made.body)


# What every request of one application shares.


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What every request of one application shares.

    Attributes:
        rag: The open store.
        authenticator: Tells who asks.
        limits: How much they may ask for.
        idempotency: Which writes were made.
        searches: Computes searches, so many at a time, of which callers have equal shares.
        streams: The threads that streamed answers are made in.
        metrics: What was done.
        kept: Answers that go on for a while after their connection broke.
    """

    rag: RAGPipeline
    authenticator: Authenticator
    limits: Limits
    idempotency: Idempotency
    searches: Searches
    streams: Threads
    metrics: Metrics
    kept: KeptStreams
