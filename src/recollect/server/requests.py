"""What a request says before it reaches a route: the names in its path, and which site's page sends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from starlette.convertors import Convertor, register_url_convertor
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


# Names in paths that hold a slash: `/v1/collections/hr%2Fleave` is the collection `hr/leave`.
#
# A server hands on a path that is decoded, in which the slash of a name is one between parts. So the slashes of names
# travel as a character that no name has until a route has been found; routes whose parameters are names that people
# choose (`{name:named}`) give them back.


# A noncharacter (Unicode 23.7): for use within a program, in no text that is exchanged.
_SLASH = "\ufdd0"


_ENCODED = re.compile(rb"%2[fF]")


class NamedPaths:
    """Keeps the slashes of names apart from those between the parts of a path, below ``/v1/``.

    Args:
        app: What answers.
        refuse: What answers where a path holds the character that stands for them.
    """

    def __init__(self, app: ASGIApp, *, refuse: ASGIApp) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        app = self._app
        if scope["type"] == "http" and scope["path"].removeprefix(scope.get("root_path", "")).startswith("/v1/"):
            if _SLASH in scope["path"]:
                app = self._refuse
            elif len(parts := _ENCODED.split(scope.get("raw_path") or b"")) > 1:
                path = _SLASH.join(unquote(part.decode("latin-1")) for part in parts)
                if path.replace(_SLASH, "/") == scope["path"]:
                    scope = {**scope, "path": path}
        await app(scope, receive, send)


def as_sent(path: str) -> str:
    """A path whose names have their slashes, as people read it."""
    return path.replace(_SLASH, "/")


class _Name(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return as_sent(value)

    def to_string(self, value: str) -> str:
        return value.replace("/", _SLASH)


class _NamePath(_Name):
    regex = ".*"

    def to_string(self, value: str) -> str:
        return value


def register() -> None:
    """Let paths of routes name ``{name:named}`` and ``{path:named_path}``: before the first of them is declared."""
    register_url_convertor("named", _Name())
    register_url_convertor("named_path", _NamePath())
