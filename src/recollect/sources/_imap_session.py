"""A connection to an IMAP server: to a checked address, within a time, and no more than so many bytes a reply."""

from __future__ import annotations

import imaplib
import io
import re
import socket
import ssl
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import TypeAlias

#: What a reply holds: atoms and texts as bytes, NIL as None, numbers as they are written, lists.
Value: TypeAlias = "bytes | list[Value] | None"

# A list of the numbers of five million messages; nothing else that is asked for is as long, but for what is fetched.
_REPLY_BYTES = 64 * 1024 * 1024
_DEEPEST = 64
_TOKEN = re.compile(rb'\s*(?:(\()|(\))|"((?:[^"\\]|\\.)*)"|([^\s()"]+))')
_LITERAL = re.compile(rb"\{(\d+)\+?\}$")
_ENCODED = re.compile(r"[^\x20-\x7e]+|&")
_SHIFTED = re.compile(r"&([A-Za-z0-9+,]*)-")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f]")


class ReplyError(Exception):
    """The server says what no server should: more than was asked for, or what cannot be understood."""


class _TimedStream(io.RawIOBase):
    """What comes over a socket, until a moment: a server that sends a byte now and then does not hold anybody up."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.deadline = float("inf")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the server takes too long")
        self._sock.settimeout(min(left, 3600.0))
        return self._sock.recv_into(buffer)  # type: ignore[arg-type]


class Session(imaplib.IMAP4):
    """An IMAP connection.

    Args:
        host: The server's name, which its certificate is for.
        addresses: What to connect to, in order.
        port: Of the server.
        context: For TLS; None: as it is.
        starttls: Whether TLS begins after the greeting.
        timeout_seconds: For each command.
    """

    def __init__(
        self,
        host: str,
        addresses: Sequence[str],
        port: int,
        *,
        context: ssl.SSLContext | None,
        starttls: bool,
        timeout_seconds: float,
    ) -> None:
        self._addresses, self._context, self._starttls = addresses, context, starttls
        self._seconds = timeout_seconds
        self._left = _REPLY_BYTES
        super().__init__(host, port, timeout=timeout_seconds)
        if starttls and context is not None:
            self.begin()
            if "STARTTLS" not in self.capabilities:
                self.shutdown()
                raise ReplyError("its server offers no encryption, which somebody in between may have taken out")
            self.starttls(context)
            self.file.close()  # which `imaplib` has made, and which waits for ever
            self._listen()

    def begin(self, *, max_bytes: int = _REPLY_BYTES) -> None:
        """The next command has its own time, and its reply its own length."""
        self._stream.deadline = time.monotonic() + self._seconds
        self._left = max_bytes
        self.untagged_responses.clear()

    def open(self, host: str = "", port: int = 143, timeout: float | None = None) -> None:
        """Connect to the addresses that were checked; called by `imaplib`."""
        self.host, self.port = host, port
        self.sock = self._connected(port, timeout)
        if self._context is not None and not self._starttls:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=host)
        self._listen()

    def _connected(self, port: int, timeout: float | None) -> socket.socket:
        problem = OSError("it has no address")
        for address in self._addresses:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as exc:
                problem = exc
        raise problem

    def _listen(self) -> None:
        self._stream = _TimedStream(self.sock)
        self._stream.deadline = time.monotonic() + self._seconds
        self.file = io.BufferedReader(self._stream)

    def read(self, size: int) -> bytes:
        """A literal, no longer than what may come; called by `imaplib`."""
        return self._counted(self.file.read(self._room(size)))  # type: ignore[arg-type]

    def readline(self) -> bytes:
        """A line, likewise."""
        return self._counted(self.file.readline(self._left + 1))  # type: ignore[arg-type]

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        self._room(0)
        return data

    def _room(self, size: int) -> int:
        if size > self._left or self._left < 0:
            raise ReplyError("its server sends more than was asked for")
        return size


def values(parts: Sequence[object]) -> list[Value]:
    """The values of one reply of `imaplib`, whose literals are pairs of a line and bytes.

    Raises:
        ReplyError: It is not to be understood.
    """
    stack: list[list[Value]] = [[]]
    for part in parts:
        line, literal = part if isinstance(part, tuple) else (part, None)
        for token in _tokens(line if literal is None else _LITERAL.sub(b"", line)):
            _take(stack, token)
        if literal is not None:
            stack[-1].append(literal)
    if len(stack) > 1:
        raise ReplyError("its server does not close what it opened")
    return stack[0]


def _take(stack: list[list[Value]], token: bytes) -> None:
    if token == b"(":
        stack.append([])
        if len(stack) > _DEEPEST:
            raise ReplyError("its server nests lists without end")
    elif token == b")":
        done = stack.pop()
        if not stack:
            raise ReplyError("its server closes what it did not open")
        stack[-1].append(done)
    elif token[:1] == b'"':
        stack[-1].append(token[1:])
    else:
        stack[-1].append(None if token.upper() == b"NIL" else token)


def _tokens(line: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            if line[at:].strip():
                raise ReplyError("its server sends what is no list")
            return
        at = found.end()
        opened, closed, quoted, atom = found.groups()
        # A text keeps its first quotation mark: "NIL" is one, NIL is nothing.
        yield opened or closed or atom or b'"' + re.sub(rb"\\(.)", rb"\1", quoted)


def replies(lines: Sequence[object]) -> Iterator[list[Value]]:
    """The replies to one command, each as its values; `imaplib` puts what follows a literal behind it."""
    waiting: list[object] = []
    for line in lines:
        if line is None:
            continue
        waiting.append(line)
        if isinstance(line, tuple):
            continue
        yield values(waiting)
        waiting = []
    if waiting:
        yield values(waiting)


def quoted(folder: str) -> str:
    """A folder's name, or a pattern of names, as it is sent.

    Raises:
        ValueError: It holds control characters, which would end the command.
    """
    if _FORBIDDEN.search(folder):
        raise ValueError("a folder's name has no control characters")
    return '"' + encoded(folder).replace("\\", "\\\\").replace('"', '\\"') + '"'


def encoded(folder: str) -> str:
    """A folder's name in IMAP's UTF-7 (RFC 3501, 5.1.3).

    Example:
        >>> encoded("Entwürfe & mehr"), decoded("Entw&APw-rfe &- mehr")
        ('Entw&APw-rfe &- mehr', 'Entwürfe & mehr')
    """

    def shifted(found: re.Match[str]) -> str:
        if found[0] == "&":
            return "&-"
        data = b64encode(found[0].encode("utf-16-be")).decode().rstrip("=").replace("/", ",")
        return f"&{data}-"

    return _ENCODED.sub(shifted, folder)


def decoded(folder: str) -> str:
    """The name that `encoded` made; what is none stays as it is."""

    def plain(found: re.Match[str]) -> str:
        data = found[1].replace(",", "/")
        try:
            return b64decode(data + "=" * (-len(data) % 4)).decode("utf-16-be") if data else "&"
        except ValueError:
            return found[0]

    return _SHIFTED.sub(plain, folder)
