"""Pages of other sites cannot use a browser to reach the server, except those that are allowed to present a key."""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Pages, logins and their cookies are for browsers of this server's own pages.
_OPEN_PATHS = ("/v1/", "/api/", "/mcp", "/openapi.json", "/healthz", "/readyz")
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_KEPT_SECONDS = "600"

#: How this machine is called from itself.
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class OriginCheck:
    """Refuses requests under names that are not this server's, and what browsers send for other sites' pages.

    A page may have its own name resolve to a loopback address (DNS rebinding), and may send simple requests anywhere.

    Args:
        app: What answers.
        hosts: The names that the server goes by, lower case; None: any.
        public: The host, with its port, that browsers reach it at where a proxy sends on requests under another; lower
            case. None: the one that requests name.
        allowed: Origins whose pages may use the API (CORS), lower case. They present a key: cookies are not passed on.
        refuse: Makes the response, given the reason.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str] | None,
        public: str | None = None,
        allowed: Collection[str] = (),
        refuse: Callable[[str], ASGIApp],
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._public = public
        self._allowed = allowed
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if self._hosts is not None and name_of(host) not in self._hosts:
                await self._refuse("This server does not go by that name: add it to allowed_hosts in [rag.server].")(
                    scope, receive, send
                )
                return
            origin = headers.get("origin")
            if origin is not None and urlsplit(origin).netloc.lower() not in {host.lower(), self._public}:
                if origin.lower() in self._allowed and scope["path"].startswith(_OPEN_PATHS):
                    await self._answer_page(origin, scope, receive, send)
                    return
                await self._refuse("Pages of other sites may not use this server.")(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _answer_page(self, origin: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a page that is allowed: with what its browser asks for ahead, or as a program that presents a key."""
        headers = Headers(scope=scope)
        shared = {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": "*", "Vary": "Origin"}
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            asked = {
                "Access-Control-Allow-Methods": _METHODS,
                "Access-Control-Allow-Headers": headers.get("access-control-request-headers", "*"),
                "Access-Control-Max-Age": _KEPT_SECONDS,
            }
            await Response(status_code=204, headers=shared | asked)(scope, receive, send)
            return

        async def send_shared(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in shared.items():
                    sent.append(name, value) if name == "Vary" else sent.update({name: value})
            await send(message)

        without_cookies = [(name, value) for name, value in scope["headers"] if name.lower() != b"cookie"]
        await self._app({**scope, "headers": without_cookies}, receive, send_shared)


def is_loopback(host: str) -> bool:
    """Whether an address to listen at is this machine's alone."""
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def name_of(host: str) -> str:
    """The name in a ``Host`` header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
