"""What surrounds every request: its id, its time, a line in the log, and headers that every response has."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(12)
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
