"""What surrounds every request: its id, its time, the headers of its response, and its line in the log."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from random import Random
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.privacy.credentials import without_secrets

#: Who tells of requests; of those that are made every few seconds by whoever supervises the server, quietly.
REQUESTS = "recollect.requests"


QUIET = logging.DEBUG


_SUPERVISION = frozenset({"/healthz", "/readyz", "/metrics"})


logger = logging.getLogger(REQUESTS)


_HEADER = "x-request-id"


# What is taken over from a caller stands in logs: nothing there that could end a line or pretend to be something else.
_ID = re.compile(r"[A-Za-z0-9._~-]{8,64}")


# How a route reads what stands in a path: ``{session:path}``.
_CONVERTED = re.compile(r":[a-z_]+\}")


# Ids tell requests apart and keep nothing secret: callers may choose their own. Asking the system for random bytes lets
# go of the interpreter's lock, which a request then waits for again while searches compute.
_numbers = Random()
os.register_at_fork(after_in_child=_numbers.seed)


_request_id: ContextVar[str] = ContextVar("recollect_request_id", default="-")


#: Nothing of the API is shown in a browser, kept by one, or read by other sites.
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


# As they are sent.
_RAW_HEADER = _HEADER.encode("ascii")


_RAW_SECURITY = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in SECURITY_HEADERS.items()]


def current_request_id() -> str:
    """The id of the request that is answered here; ``-`` outside of one."""
    return _request_id.get()


class RequestContext:
    """Gives each request an id (the caller's, where ``X-Request-ID`` is one), measures it and writes it down.

    Args:
        app: What answers.
        on_error: Makes the response to an error that nothing else has told.
        observe: Told of each request: its method, the route's path, the status, and the seconds that it took.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        on_error: Callable[[Exception], ASGIApp],
        observe: Callable[[str, str, int, float], None] = lambda *_: None,
    ) -> None:
        self._app = app
        self._on_error = on_error
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(_HEADER, "")
        request_id = given if _ID.fullmatch(given) else f"{_numbers.getrandbits(96):024x}"
        token = _request_id.set(request_id)
        # Who asks is found out further in, and written down here.
        scope.setdefault("state", {})
        begun, status = time.perf_counter(), 0

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = _with_own(message.get("headers", ()), request_id)
            await send(message)

        try:
            await self._app(scope, receive, tell)
        except Exception as exc:
            if status:
                # Too late to tell anybody but the log: the connection is cut, which the caller notices.
                logger.exception("A response broke off.")
                raise
            await self._on_error(exc)(scope, receive, tell)
        finally:
            seconds = time.perf_counter() - begun
            route = template_of(scope)
            self._observe(scope["method"], route, status, seconds)
            _write(scope, route, status, seconds, request_id)
            _request_id.reset(token)


def _with_own(headers: Iterable[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of a response with its id, and with those that every response has where it brings no others."""
    kept = [one for one in headers if one[0].lower() != _RAW_HEADER]
    given = {name.lower() for name, _ in kept}
    kept.append((_RAW_HEADER, request_id.encode("ascii")))
    kept += [one for one in _RAW_SECURITY if one[0] not in given]
    return kept


def template_of(scope: Scope) -> str:
    """The path of the route that answered, with its prefix: its own object knows only what stands below that."""
    included = scope.get("fastapi", {}).get("effective_route_context")
    path = getattr(included, "path", None) or getattr(scope.get("route"), "path", None) or "(none)"
    return _CONVERTED.sub("}", path)


def _write(scope: Scope, route: str, status: int, seconds: float, request_id: str) -> None:
    """The line of a request: by its route's template, and by whom; nothing that was asked, and no address."""
    caller = scope["state"].get("caller")
    credential, tenant = ("-", "-") if caller is None else (str(caller.credential), caller.tenant)
    supervised = status < 400 and route in _SUPERVISION
    logger.log(
        QUIET if supervised else logging.INFO,
        "%s %s %d %.1f ms by %s of tenant %s",
        scope["method"],
        route,
        status,
        seconds * 1000,
        credential,
        tenant,
        extra={
            "request_id": request_id,
            "method": scope["method"],
            "route": route,
            "status": status,
            "duration_ms": round(seconds * 1000, 3),
            "credential": credential,
            "tenant": tenant,
        },
    )


# What a server writes to its log: a line for each event, with the id of the request it belongs to, and no secret.


LogFormat = Literal["text", "json"]


#: What a line says of a request, beside what all lines say.
REQUEST_FIELDS = ("method", "route", "status", "duration_ms", "credential", "tenant")


_TEXT = "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"


# A line of the log is one line, whatever was put into a name or an error.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


class RequestIdFilter(logging.Filter):
    """Gives each record the id of the request that is answered where it was made; ``-`` outside of one."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        if not hasattr(record, "request_id"):
            record.request_id = current_request_id()
        return True


class TextFormatter(logging.Formatter):
    """For people: the time, the level, who says it, the request's id, and what."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """The line before a traceback."""
        return super().formatMessage(record).translate(_CONTROLS)

    def format(self, record: logging.LogRecord) -> str:
        """The line, without secrets."""
        return without_secrets(super().format(record))


class JsonFormatter(logging.Formatter):
    """For programs: an object on a line, with ``time``, ``level``, ``logger``, ``request_id``, ``message``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without secrets."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "request_id": getattr(record, "request_id", "-"),
            "message": without_secrets(record.getMessage()),
        }
        told.update({name: getattr(record, name) for name in REQUEST_FIELDS if hasattr(record, name)})
        if record.exc_info:
            told["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(told, ensure_ascii=True, default=str)


@contextmanager
def logging_as(log_format: LogFormat) -> Iterator[None]:
    """For the time of a block, everything that is logged goes to standard error like this, requests included."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root, told = logging.getLogger(), [logging.getLogger(name) for name in (REQUESTS, "recollect.server")]
    handlers, levels = root.handlers[:], [logger.level for logger in told]
    root.handlers[:] = [handler]
    for logger in told:
        logger.setLevel(QUIET if root.isEnabledFor(QUIET) else logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in zip(told, levels, strict=True):
            logger.setLevel(level)
