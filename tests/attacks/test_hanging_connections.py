"""Clients that begin something and leave it hanging: their connections are closed, and those of others are not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from recollect.server import running as limits
from served import listening

HEAD = b"POST /%s HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"


class Application:
    """Reads a body and replies with its length; sends without end, says nothing, or replies without reading."""

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return
        read, more, path = 0, scope["path"] != "/unread", scope["path"]
        while more:
            message = await receive()
            more = message.get("more_body", False)
            read += len(message.get("body", b""))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")] * (not read)})
        gone = asyncio.ensure_future(self._gone(receive))
        while path == "/endless" and not gone.done():
            await send({"type": "http.response.body", "body": b"a" * 100_000, "more_body": True})
        if path == "/silent":
            await gone
        gone.cancel()
        await send({"type": "http.response.body", "body": b"%d read" % read})

    async def _gone(self, receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("HEAD_SECONDS", "STALLED_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(limits, name, 0.05)
    with listening(Application()) as url:
        yield url


def connected(url: str, sent: bytes) -> socket.socket:
    place = urlsplit(url)
    opened = socket.create_connection((place.hostname, place.port), timeout=30)
    opened.sendall(sent)
    return opened


def all_of(opened: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    read = b""
    try:
        while piece := opened.recv(1 << 20):
            read += piece[:1000]
    except ConnectionResetError:
        pass
    opened.close()
    return read


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"POST / HT",
        HEAD % b"" + b"Content-Le",
        HEAD % b"" + b"Content-Length: 100\r\n\r\n{",
        CHUNKED % b"" + b"5\r\nabc",
        HEAD % b"unread" + b"Content-Length: 900\r\n\r\n",
    ],
)
def test_what_is_begun_and_left_is_closed(url, begun):
    stream = connected(url, HEAD % b"silent" + b"Content-Length: 0\r\n\r\n")
    assert all_of(connected(url, begun)).startswith(b"HTTP/1.1 200" if b"unread" in begun else b"")
    # A stream may be silent for longer than that.
    stream.setblocking(False)
    assert stream.recv(1000).startswith(b"HTTP/1.1 200")
    with pytest.raises(BlockingIOError):
        stream.recv(1000)
    stream.close()


def test_a_reply_that_nobody_reads_ends(url):
    unread = connected(url, HEAD % b"endless" + b"Content-Length: 0\r\n\r\n")
    # Closed by then, or this would be read for ever.
    all_of(connected(url, b""))
    all_of(connected(url, b""))
    assert all_of(unread).startswith(b"HTTP/1.1 200")


def test_a_body_in_crumbs_is_refused_and_one_in_pieces_is_not(url):
    crumbs = b"1\r\na\r\n" * (limits.MOST_SHORT_CHUNKS + 1)
    assert all_of(connected(url, CHUNKED % b"" + crumbs)).startswith(b"HTTP/1.1 400")
    whole = b"64\r\n" + b"a" * 100 + b"\r\n"
    sent = CHUNKED % b"" + whole * (limits.MOST_SHORT_CHUNKS + 1) + b"0\r\n\r\n"
    assert b"%d read" % (100 * (limits.MOST_SHORT_CHUNKS + 1)) in all_of(connected(url, sent))


def test_of_too_many_connections_without_a_request_the_oldest_goes(url, monkeypatch):
    monkeypatch.setattr(limits, "HEAD_SECONDS", 3_600)
    monkeypatch.setattr(limits, "MOST_WITHOUT_REQUEST", 3)
    first, *others = (connected(url, b"") for _ in range(4))
    assert all_of(first) == b""
    for one in others:
        one.sendall(HEAD % b"" + b"Content-Length: 1\r\nConnection: close\r\n\r\na")
        assert b"1 read" in all_of(one)
