"""A web site on loopback that says what it is told to, right or wrong, and keeps a log of who came."""

from __future__ import annotations

import gzip
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpcore2

from recollect.fetching.guard import Guard


@dataclass(frozen=True)
class Page:
    """What is sent: with its length, unless the headers say otherwise."""

    body: bytes | str = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Visit:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    site: WebSite
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        self.site.connections += 1
        super().setup()

    def answer(self) -> None:
        site = self.site
        length = int(self.headers.get("Content-Length") or 0)
        visit = Visit(self.command, self.path, dict(self.headers), self.rfile.read(length))
        site.visits.append(visit)
        bare = self.path.partition("?")[0]
        if bare in site.raw:
            self.close_connection = True
            site.raw[bare](self)
            return
        page = site.routes.get(self.path, site.routes.get(bare, Page("not here", 404)))
        self.send(page(visit) if callable(page) else page)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the base class's names

    def send(self, page: Page) -> None:
        body = page.body.encode() if isinstance(page.body, str) else page.body
        self.send_response(page.status)
        own = {"Content-Type": page.content_type, "Content-Length": str(len(body))}
        for name, value in {**own, **page.headers}.items():
            self.send_header(name, value.encode().decode("latin-1"))
        self.end_headers()
        if page.status != 304:
            self.wfile.write(body)

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class WebSite:
    """Serves its routes on loopback; what has none is 404.

    Attributes:
        routes: From paths (with their queries, or without) to pages, or to functions of a visit that make one.
        raw: From paths to functions that write to the connection themselves, which is closed behind them.
        visits: Every request, oldest first.
        connections: How often somebody connected.
        latest: What a route keeps for its next visit.
    """

    def __init__(self, routes: Mapping[str, Any] | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self.routes: dict[str, Any] = dict(routes or {})
        self.raw: dict[str, Callable[[BaseHTTPRequestHandler], Any]] = {}
        self.visits: list[Visit] = []
        self.connections = 0
        self.latest = ""
        self._http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": self}))
        if tls is not None:
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def port(self) -> int:
        return self._http.server_port

    @property
    def paths(self) -> list[str]:
        return [visit.path for visit in self.visits]

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@contextmanager
def web_site(routes: Mapping[str, Any] | None = None, *, tls: ssl.SSLContext | None = None) -> Iterator[WebSite]:
    site = WebSite(routes, tls=tls)
    try:
        yield site
    finally:
        site.close()


class Redirected(httpcore2.NetworkBackend):
    """A network in which every address is the site's, whatever the port; it notes which were connected to."""

    def __init__(self, site: WebSite) -> None:
        self.connected: list[tuple[str, int]] = []
        self._site = site
        self._real = httpcore2.SyncBackend()

    def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        self.connected.append((host, port))
        return self._real.connect_tcp("127.0.0.1", self._site.port, *args, **kwargs)


#: An address of the public web, for stub resolvers; nothing is ever sent there.
PUBLIC = "93.184.216.34"


def resolving(names: Mapping[str, list[str]] | None = None) -> Callable[[str], list[str]]:
    """A resolver that knows these names; any other is on the public web."""

    def resolve(host: str) -> list[str]:
        return (names or {}).get(host, [PUBLIC])

    return resolve


def open_guard() -> Guard:
    """What tests fetch from a site on loopback with."""
    return Guard(allow_private_addresses=True)


def gzip_bomb(size: int) -> bytes:
    """Zeros, packed a thousandfold."""
    return gzip.compress(bytes(size), 9)
