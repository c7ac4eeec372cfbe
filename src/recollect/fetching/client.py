"""One request for a page: checked, limited in size and time, redirected with care."""

from __future__ import annotations

import reprlib
import ssl
import time
import zlib
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import httpcore2
from httpcore2 import (
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
    TimeoutException,
    WriteTimeout,
)

from recollect.errors import FetchError, UsageError
from recollect.fetching.guard import Guard
from recollect.fetching.urls import WebUrl, join_url, parse_url

# Bodies as they travel to what they hold, never more of it in memory than may be held.

#: What requests ask for. Brotli and Zstandard are not asked for, and not unpacked where they are sent all the same.
ACCEPTED_CODINGS = "gzip, deflate"
_PIECE = 256 << 10


class TooLargeError(ValueError):
    """There is more than may be held."""


class BrokenCodingError(ValueError):
    """What was sent is not what its coding says, or is cut off; the message says which."""


class UnknownCodingError(ValueError):
    """A coding that was not asked for."""


def read_limited(pieces: Iterable[bytes], *, coding: str, max_bytes: int) -> bytes:
    """A body unpacked.

    Args:
        pieces: As they came.
        coding: What ``Content-Encoding`` says.
        max_bytes: Of what is unpacked, and of what came.

    Raises:
        TooLargeError: It is more than that; no more was unpacked or read.
        BrokenCodingError: It cannot be unpacked, or not to its end.
        UnknownCodingError: It is in another coding.
    """
    match [name for name in coding.lower().replace(" ", "").split(",") if name not in {"", "identity"}]:
        case []:
            return _plain(pieces, max_bytes)
        case ["gzip" | "x-gzip"]:
            return _inflated(pieces, zlib.MAX_WBITS | 16, max_bytes)
        case ["deflate"]:
            return _inflated(pieces, 0, max_bytes)
        case _:
            raise UnknownCodingError


def _plain(pieces: Iterable[bytes], max_bytes: int) -> bytes:
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) > max_bytes:
            raise TooLargeError
    return bytes(found)


def _inflated(pieces: Iterable[bytes], window: int, max_bytes: int) -> bytes:
    found = bytearray()
    arrived = 0
    unpacker = None
    for piece in pieces:
        arrived += len(piece)
        rest = piece
        while rest:
            unpacker = unpacker or zlib.decompressobj(window or _deflate_window(rest))
            try:
                found += unpacker.decompress(rest, _PIECE)
            except zlib.error as error:
                raise BrokenCodingError("is damaged: it cannot be unpacked") from error
            if max(len(found), arrived) > max_bytes:
                raise TooLargeError
            rest = unpacker.unconsumed_tail
            if unpacker.eof:
                # Several members one after the other are one file; what is behind a stream of deflate is nothing.
                rest, unpacker = (unpacker.unused_data.lstrip(b"\0"), None) if window else (b"", unpacker)
    if unpacker is not None and not unpacker.eof:
        raise BrokenCodingError("was cut off")
    return bytes(found)


def _deflate_window(start: bytes) -> int:
    # By the standard deflate comes in a zlib wrapper, by some servers without one.
    wrapped = start[0] & 0x0F == 8 and (len(start) < 2 or int.from_bytes(start[:2], "big") % 31 == 0)
    return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS


Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
METHODS: tuple[Method, ...] = ("GET", "POST", "PUT", "PATCH", "DELETE")
DEFAULT_MAX_BYTES = 64 << 20
DEFAULT_TIMEOUT_SECONDS = 30.0
DEFAULT_USER_AGENT = "recollect"
_MAX_REDIRECTS = 5
_ACCEPT = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.9, */*;q=0.8"

# The connection's, not the caller's: with them a request could be made to look like two, or like another site's.
_RESERVED_HEADERS = frozenset(
    ("accept-encoding", "connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
     "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

# What may go along to another site that a redirect leads to: nothing that could be anybody's secret.
_HARMLESS_HEADERS = frozenset({"accept", "accept-language"})
_TRANSIENT = frozenset({408, 421, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 529})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# For a connection, where all are in use.
_WAITING = {"timeout": {"pool": 20.0}}
_MAX_RETRY_AFTER_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What is asked of a server.

    Attributes:
        url: Of the page.
        method: ``GET``, ``POST``, ``PUT``, ``PATCH`` or ``DELETE``.
        headers: Sent with it. They are never shown: not in errors, logs or listings.
        body: Sent with it.
        etag: The page's as it was fetched last: an unchanged page is not sent again.
        last_modified: The same.
    """

    url: str
    method: Method = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    etag: str | None = None
    last_modified: str | None = None

    def checked(self) -> PageRequest:
        """The request, where it can be sent.

        Raises:
            UsageError: The method is unknown, or a header is not one that may be set. Its value is not repeated.
        """
        if self.method not in METHODS:
            raise UsageError(f"method is one of {', '.join(METHODS)}, not {self.method!r}.")
        given: list[tuple[object, object]] = list(self.headers.items())
        for name, value in given:
            if not isinstance(name, str) or not name or not set(name) <= _TOKEN:
                raise UsageError(f"{reprlib.repr(name)} is no name of a header.")
            if name.lower() in _RESERVED_HEADERS:
                raise UsageError(f"The header {name!r} cannot be set: it belongs to the connection.")
            if not isinstance(value, str) or not value.isprintable() or not value.isascii():
                raise UsageError(f"The value of the header {name!r} has characters in it that no header may have.")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What came of a request.

    Attributes:
        url: Of the page that was sent in the end.
        status: 200 to 299; 304 where the page has not changed.
        body: Unpacked; empty where the page has not changed.
        content_type: As the server says, parameters included.
        file_name: As ``Content-Disposition`` says.
        etag: To ask with the next time.
        last_modified: The same.
        indexed: False: its server does not want it to be found by searches (``X-Robots-Tag``).
    """

    url: WebUrl
    status: int
    body: bytes = field(repr=False)
    content_type: str = ""
    file_name: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    indexed: bool = True

    @property
    def unchanged(self) -> bool:
        """Whether the server says that the page is as it was."""
        return self.status == 304


class Fetcher:
    """Fetches pages over connections that it keeps. Safe to share between threads; `close` ends them.

    No variable of the environment redirects it: proxies would contact what is not checked here. Nothing is kept between
    requests but connections: no cookies, no credentials.

    Args:
        guard: What may be contacted.
        max_bytes: Of a page, as it travels and unpacked.
        timeout_seconds: From the first look at a URL to the last byte, redirects included.
        user_agent: Who asks.
        ssl_context: Whose certificates are trusted; None: as the system says.
        network: What opens sockets to checked addresses; None: the system.
    """

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        user_agent: str = DEFAULT_USER_AGENT,
        ssl_context: ssl.SSLContext | None = None,
        network: httpcore2.NetworkBackend | None = None,
    ) -> None:
        self.guard = guard or Guard()
        self.user_agent = user_agent
        self._max_bytes = max_bytes
        self._timeout_seconds = timeout_seconds

        self._pool = httpcore2.ConnectionPool(
            ssl_context=ssl_context,
            max_connections=256,
            # A server that sends more than it declared would have the rest taken for its next page.
            max_keepalive_connections=0,
            network_backend=CheckedBackend(self.guard, network),
        )

    def close(self) -> None:
        """End the connections that are kept."""
        self._pool.close()

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def fetch(self, request: PageRequest | str, *, max_bytes: int | None = None) -> Fetched:
        """Fetch a page.

        Args:
            request: What to ask for; a URL alone is asked for with GET.
            max_bytes: Less than configured, for what is small by its nature.

        Raises:
            AddressRefusedError: The URL, or one that it redirects to, is not one that may be contacted. Nothing was
                sent there.
            FetchError: There is no such page, or it was not sent whole within the limits; ``retryable`` says whether
                it may be later.
            UsageError: The method or a header is not allowed.
        """
        asked = PageRequest(url=request) if isinstance(request, str) else request
        limit = self._max_bytes if max_bytes is None else min(max_bytes, self._max_bytes)
        hop = _first(asked.checked())
        token = deadline.set(time.monotonic() + self._timeout_seconds)
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                self.guard.check(hop.url)
                answer = self._one(hop, limit)
                if isinstance(answer, Fetched):
                    return answer
                hop = answer
        finally:
            deadline.reset(token)
        raise FetchError(asked.url, f"redirects more than {_MAX_REDIRECTS} times")

    def _one(self, hop: _Hop, max_bytes: int) -> Fetched | _Hop:
        """What one server says: a page, or where to go on."""
        url = hop.url
        asked.set(url)
        target = httpcore2.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode()
        )
        try:
            with self._pool.stream(
                hop.method, target, headers=self._headers(hop), content=hop.body, extensions=_WAITING
            ) as response:
                return _answer(hop, response, max_bytes)
        except httpcore2.TimeoutException as error:
            late = f"took longer than {self._timeout_seconds:g} seconds, or said nothing for too long"
            raise FetchError(str(url), late, retryable=True) from error
        except httpcore2.ConnectError as error:
            raise _unreachable(url, error) from error
        except httpcore2.ProtocolError as error:
            raise _misspoken(url, error) from error
        except httpcore2.NetworkError as error:
            raise FetchError(str(url), "its server broke off the connection", retryable=True) from error

    def _headers(self, hop: _Hop) -> list[tuple[bytes, bytes]]:
        own = {
            "Host": hop.url.authority,
            "User-Agent": self.user_agent,
            "Accept": _ACCEPT,
            "Accept-Encoding": ACCEPTED_CODINGS,
        }
        given = {name.lower() for name in hop.headers}
        kept = {name: value for name, value in own.items() if name.lower() not in given}
        if hop.body is not None:
            kept["Content-Length"] = str(len(hop.body))
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in (kept | dict(hop.headers)).items()]


@dataclass(frozen=True, slots=True)
class _Hop:
    """One request of a chain of redirects."""

    url: WebUrl
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    conditional: bool
    #: Whether the caller sent anything that could be a secret.
    entrusted: bool

    def redirected(self, status: int, location: str) -> _Hop:
        url = join_url(self.url, location)
        method, headers, body = self.method, dict(self.headers), self.body
        if (status == 303 and method != "GET") or (status in {301, 302} and method == "POST"):
            method, body = "GET", None
            headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        if url.origin != self.url.origin:
            if self.entrusted and self.url.scheme == "https" and url.scheme == "http":
                raise FetchError(str(self.url), "redirects what was entrusted to it to a connection that anybody reads")
            if body is not None:
                raise FetchError(str(self.url), f"redirects the request's body to another site ({url.authority})")
            headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS_HEADERS}
        return _Hop(url, method, headers, body, self.conditional, self.entrusted)


def _first(request: PageRequest) -> _Hop:
    headers = dict(request.headers)
    given = {name.lower() for name in headers}
    entrusted = request.body is not None or not given <= _HARMLESS_HEADERS
    conditions = {"If-None-Match": request.etag, "If-Modified-Since": request.last_modified}
    known = {name: value for name, value in conditions.items() if value and value.isprintable() and value.isascii()}
    conditional = bool(known) and request.method == "GET"
    body = request.body
    if body is None and request.method in {"POST", "PUT", "PATCH"}:
        body = b""
    return _Hop(
        parse_url(request.url), request.method, headers | (known if conditional else {}), body, conditional, entrusted
    )


def _answer(hop: _Hop, response: httpcore2.Response, max_bytes: int) -> Fetched | _Hop:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reversed(response.headers)}
    status, url = response.status, hop.url
    if status in _REDIRECTS and "location" in headers:
        return hop.redirected(status, _as_meant(headers["location"]))
    if status == 304 and hop.conditional:
        return _fetched(url, status, b"", headers)
    if not 200 <= status <= 299:
        raise _failed(url, status, headers)
    if status == 206:
        raise FetchError(str(url), "sent a part of the page, and was asked for all of it", status=status)
    return _fetched(url, status, _body(url, response, headers, max_bytes), headers)


def _body(url: WebUrl, response: httpcore2.Response, headers: Mapping[str, str], max_bytes: int) -> bytes:
    too_large = FetchError(str(url), f"is larger than the limit of {max_bytes:,} bytes (max_bytes in [rag.sources])")
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > max_bytes:
        raise too_large
    coding = headers.get("content-encoding", "")
    try:
        return read_limited(response.iter_stream(), coding=coding, max_bytes=max_bytes)
    except TooLargeError:
        raise too_large from None
    except BrokenCodingError as error:
        raise FetchError(str(url), str(error), retryable=True) from error
    except UnknownCodingError:
        raise FetchError(str(url), f"is packed in a way that was not asked for ({coding[:40]!r})") from None


def _fetched(url: WebUrl, status: int, body: bytes, headers: Mapping[str, str]) -> Fetched:
    return Fetched(
        url=url,
        status=status,
        body=body,
        content_type=headers.get("content-type", ""),
        file_name=_file_name(headers.get("content-disposition", "")),
        etag=headers.get("etag"),
        last_modified=headers.get("last-modified"),
        indexed=not {"noindex", "none"} & set(headers.get("x-robots-tag", "").lower().replace(",", " ").split()),
    )


def _file_name(disposition: str) -> str | None:
    if not disposition:
        return None
    message = Message()
    message["Content-Disposition"] = _as_meant(disposition)
    name = message.get_filename()
    # The name alone, whatever folders the server would like.
    return name.replace("\\", "/").rpartition("/")[2].strip() or None if name else None


def _as_meant(value: str) -> str:
    """A header's text where it is not ASCII: UTF-8 if it is that, else Latin-1."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return value


def _failed(url: WebUrl, status: int, headers: Mapping[str, str]) -> FetchError:
    words = {
        304: "says that the page has not changed, which nobody asked",
        401: "asks for credentials; give them as a header",
        403: "may not be read: its server refuses it",
        404: "does not exist",
        410: "is gone",
        429: "was asked for too often",
    }
    reason = words.get(status, "redirects to nowhere" if status in _REDIRECTS else "was not sent")
    transient = status in _TRANSIENT
    wait = _retry_after(headers.get("retry-after", "")) if transient or status == 403 else None
    return FetchError(
        str(url), f"{reason} (HTTP {status})", status=status, retryable=transient, retry_after_seconds=wait
    )


def _retry_after(value: str) -> float | None:
    value = value.strip()
    if value.isascii() and value.isdigit() and len(value) < 10:
        return min(float(value), _MAX_RETRY_AFTER_SECONDS)
    try:
        moment = parsedate_to_datetime(value)
        return min(max(moment.timestamp() - time.time(), 0.0), _MAX_RETRY_AFTER_SECONDS)
    except (ValueError, TypeError, OverflowError):
        return None


def _unreachable(url: WebUrl, error: Exception) -> FetchError:
    cause = error.__context__ if error.__cause__ is None else error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return FetchError(str(url), f"has a certificate that is not trusted ({cause.verify_message})")
    if isinstance(cause, ssl.SSLError):
        return FetchError(str(url), "its server's encryption cannot be agreed on", retryable=True)
    return FetchError(str(url), "its server cannot be reached", retryable=True)


def _misspoken(url: WebUrl, error: Exception) -> FetchError:
    """Whether a server was cut off or speaks another language is in the words alone."""
    words = str(error)
    if "incomplete" in words or "without sending" in words or "disconnected" in words:
        return FetchError(str(url), "was cut off: its server closed the connection before its end", retryable=True)
    if "buffer" in words or "too long" in words or "Receive buffer" in words:
        return FetchError(str(url), "has headers that are too long")
    return FetchError(str(url), "its server does not answer as HTTP demands")


# Connections that go to checked addresses, and whose every step ends by one deadline.


#: When the request that this thread is busy with must be over, by the monotonic clock.
deadline: ContextVar[float] = ContextVar("deadline")

#: The URL that it asks for.
asked: ContextVar[WebUrl] = ContextVar("asked")

# What a server does not say anything for so long is not going to be said.
_STEP_SECONDS = 20.0


def seconds_left(late: type[TimeoutException] = ReadTimeout) -> float:
    """What is left of the request's time.

    Raises:
        TimeoutException: Nothing.
    """
    left = deadline.get() - time.monotonic()
    if left <= 0:
        raise late("the request's time is over")
    return min(left, _STEP_SECONDS)


class CheckedBackend(NetworkBackend):
    """Opens connections to what a guard gives for the URL that is asked for, and to nothing else.

    Args:
        guard: Checks the addresses.
        network: What opens the sockets, by address.
    """

    def __init__(self, guard: Guard, network: NetworkBackend | None = None) -> None:
        self._guard = guard
        self._network = network or SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline decides
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        """Connect to the first address that answers."""
        url = asked.get()
        if (url.host, url.port) != (host, port):
            raise ConnectError("another host than the one that was checked")
        addresses = self._guard.addresses(url, timeout_seconds=seconds_left(ConnectTimeout))
        failed: ConnectError | ConnectTimeout | None = None
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            # An address that swallows packets leaves time for the others.
            patience = seconds_left(ConnectTimeout) / left
            try:
                stream = self._network.connect_tcp(address, port, patience, local_address, socket_options)
            except (ConnectError, ConnectTimeout) as error:
                failed = error
            else:
                return _TimedStream(stream)
        raise failed or ConnectError("there is no address")

    def connect_unix_socket(self, *_: object, **__: object) -> NetworkStream:
        """Refused: no page is behind one."""
        raise ConnectError("sockets of the file system are not the web")


class _TimedStream(NetworkStream):
    """A connection whose reads and writes share the request's deadline, however many bytes each of them brings."""

    def __init__(self, stream: NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, seconds_left(ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, seconds_left(WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> NetworkStream:
        return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, seconds_left(ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - what the base class says
        return self._stream.get_extra_info(info)
