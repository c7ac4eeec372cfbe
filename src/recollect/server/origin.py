"""Pages of other sites cannot use a browser to reach a server that asks nobody who they are."""

from __future__ import annotations

from collections.abc import Callable, Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

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
        refuse: Makes the response, given the reason.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str] | None,
        public: str | None = None,
        refuse: Callable[[str], ASGIApp],
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._public = public
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
                await self._refuse("Pages of other sites may not use this server.")(scope, receive, send)
                return
        await self._app(scope, receive, send)


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
