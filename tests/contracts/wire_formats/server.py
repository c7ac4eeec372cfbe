"""A model server on loopback: it speaks whatever wire format it is given, faithfully or with one fault.

What goes wrong below a wire format (statuses, silence, connections that break) is written here, once for all of them.
What goes wrong in a reply (half a batch, a vector that is too short) is an altered `Vectors`, `Scores` or `Answer`,
which the wire format writes down as it would a right one.
"""

from __future__ import annotations

import json
import math
import socket
import threading
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol

DIMENSION = 8
REPLY = "Employees receive 30 days [1].\nמנוחה 🙂"
KEY = "key-that-nobody-may-see-0123456789"
#: What looks like somebody's key, though it is not the configured one: a proxy's, another tenant's.
FOREIGN_KEYS = (
    "sk-proj-4f0aQx81Zt6bLm92Wc7R",
    "sk-ant-*********9dK2",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyD3x9Qk7Lm2Pv8Rt4Wz6Yb1Nc5Hf0Gj3",
    "hf_qWeRtYuIoPaSdFgHjKlZxCvB",
    "plain-but-labelled-17",
    "b9F3kQ7zR1mX5vT8cL2nW6yP4sD0hJaE",
)


@dataclass(frozen=True)
class Vectors:
    """Of a batch: one a text, and which text each belongs to."""

    vectors: list[list[float] | None]
    indexes: list[int]
    tokens: int


@dataclass(frozen=True)
class Scores:
    """Of a batch: pairs of a passage's place and its score, best first."""

    pairs: list[tuple[int, float]]
    tokens: int


@dataclass(frozen=True)
class Answer:
    """A stream: pieces, an end, and what it took; an error stands in place of the end."""

    pieces: list[str]
    end: Literal["stop", "length", "filtered"] | None = "stop"
    input_tokens: int = 11
    output_tokens: int = 7
    error: str | None = None


class WireFormat(Protocol):
    """One provider's way to answer one kind of request, and the model of ours that asks it."""

    #: For the test's name: provider and kind.
    name: str
    kind: Literal["embed", "rerank", "answer"]
    #: Faults that this format has no way to express.
    cannot: frozenset[str]
    content_type: str

    def make(self, base_url: str, **connection: Any) -> Any:
        """Our model, at this address."""

    def texts(self, path: str, body: Any) -> list[str]:
        """The texts, passages or messages of a request."""

    def write(self, result: Vectors | Scores | Answer) -> bytes | list[bytes]:
        """A reply's body; of a stream the parts that are sent one by one."""

    def error(self, status: int, message: str) -> bytes:
        """An error's body."""


@dataclass
class Request:
    """What the server was asked."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass(repr=False)
class ModelServer:
    """One wire format on a free port of loopback.

    Attributes:
        wire: What it speaks.
        faults: What goes wrong with each request, in this order; afterwards nothing does, or `fault`.
        fault: What goes wrong with every request.
        requests: All that it was asked.
        models: What it says that it serves; None: something that is no model server.
        elsewhere: The address that the fault ``redirect`` sends requests to.
    """

    wire: WireFormat
    fault: str = ""
    faults: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    models: list[str] | None = None
    elsewhere: str = ""

    def __post_init__(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                body = b"<html>something else</html>"
                if outer.models is not None:
                    body = json.dumps({"models": [{"name": name} for name in outer.models]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                given = self.rfile.read(length) if length else b"{}"
                request = Request(self.path, dict(self.headers), json.loads(given))
                outer.requests.append(request)
                fault = outer.faults.pop(0) if outer.faults else outer.fault
                Response(outer, self, request, fault).send()

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.005,), daemon=True)
        self.thread.start()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def close(self):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@dataclass
class Response:
    """One reply, with the fault that it is to have."""

    server: ModelServer
    handler: BaseHTTPRequestHandler
    request: Request
    fault: str

    def send(self):
        below = getattr(self, "_" + self.fault.replace("-", "_"), None)
        if self.fault.isdigit():
            self._status(int(self.fault))
        elif below is not None:
            below()
        else:
            self._result()

    # What goes wrong below a wire format.

    def _status(self, status):
        seen = next((value for value in self.request.headers.values() if KEY in value), "")
        one, other, *more, labelled, bare = FOREIGN_KEYS
        said = f"refused for {seen}: {one}, {other}, {' '.join(more)}, api_key='{labelled}', key {bare}"
        self._whole(status, self.server.wire.error(status, said), "application/json")

    def _html(self):
        self._whole(200, b"<!doctype html><html><body>Sign in</body></html>", "text/html")

    def _html_error(self):
        self._whole(502, b"<html><body>Bad gateway</body></html>", "text/html")

    def _empty_body(self):
        self._whole(200, b"", self.server.wire.content_type)

    def _other_json(self):
        self._whole(200, b'{"detail": "nothing of the kind"}', "application/json")

    def _json_list(self):
        self._whole(200, b"[7]", "application/json")

    def _json_null(self):
        self._whole(200, b"null", "application/json")

    def _json_text(self):
        self._whole(200, b'"nothing of the kind"', "application/json")

    def _half_json(self):
        body = self._joined()
        self._whole(200, body[: len(body) // 2], self.server.wire.content_type)

    def _cut_body(self):
        body = self._joined()
        self._head(200, self.server.wire.content_type, {"Content-Length": str(len(body))})
        self.handler.wfile.write(body[: len(body) // 2])
        self._hang_up()

    def _reset(self):
        self._hang_up()

    def _redirect(self):
        self._whole(307, b"", "text/plain", {"Location": f"{self.server.elsewhere}{self.request.path}"})

    def _silence(self):
        self.server.released.wait(10)
        self.handler.close_connection = True

    def _slow_headers(self):
        self.handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        try:
            while not self.server.released.wait(0.005):
                self.handler.wfile.write(b"x")
        except OSError:
            pass
        self.handler.close_connection = True

    # What goes wrong in a stream.

    def _cut_stream(self):
        self._parts(self._written()[: len(self._written()) // 2], hang_up=True)

    def _cut_first(self):
        self._parts([], hang_up=True)

    def _quiet_end(self):
        pieces = self._right().pieces
        self._parts(self.server.wire.write(Answer(pieces[:2], end=None)))

    def _stall(self):
        self._parts(self._written()[:-2], wait=True)

    # What goes wrong in a reply, and what is right.

    def _result(self):
        written = self.server.wire.write(altered(self._right(), self.fault))
        if isinstance(written, list):
            self._parts(written)
        else:
            self._whole(200, written, self.server.wire.content_type)

    def _right(self):
        texts = self.server.wire.texts(self.request.path, self.request.body)
        if self.server.wire.kind == "embed":
            return Vectors([vector(text) for text in texts], list(range(len(texts))), sum(map(len, texts)))
        if self.server.wire.kind == "rerank":
            pairs = sorted(((place, score(text)) for place, text in enumerate(texts)), key=lambda pair: -pair[1])
            return Scores(pairs, sum(map(len, texts)))
        pieces = [REPLY[start : start + 8] for start in range(0, len(REPLY), 8)]
        return Answer(pieces[: self.request.body.get("max_tokens")])

    def _written(self):
        return self.server.wire.write(self._right())

    def _joined(self):
        written = self._written()
        return b"".join(written) if isinstance(written, list) else written

    def _head(self, status, content_type, headers):
        self.handler.send_response(status)
        own = getattr(self.server.wire, "headers", {})
        for name, value in ({"Content-Type": content_type, "Retry-After": "0"} | headers | own).items():
            if value is not None:
                self.handler.send_header(name, value)
        self.handler.end_headers()

    def _whole(self, status, body, content_type, headers=None):
        self._head(status, content_type, {"Content-Length": str(len(body)), **(headers or {})})
        self.handler.wfile.write(body)

    def _parts(self, parts, *, hang_up=False, wait=False):
        self._head(200, self.server.wire.content_type, {"Transfer-Encoding": "chunked"})
        for part in parts:
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.handler.wfile.flush()
        if wait:
            self.server.released.wait(10)
        if hang_up or wait:
            self._hang_up()
        else:
            self.handler.wfile.write(b"0\r\n\r\n")

    def _hang_up(self):
        self.handler.wfile.flush()
        self.handler.connection.shutdown(socket.SHUT_RDWR)
        self.handler.close_connection = True


def vector(text):
    """Of a text, the same each time; not of unit length."""
    return [1.0 + (sum(text.encode("utf-8")) * (place + 1)) % 7 for place in range(DIMENSION)]


def score(text):
    """Of a passage, the same each time."""
    return round(0.9 - (sum(text.encode("utf-8")) % 80) / 100, 4)


def altered(result, fault):
    """The right result with what the fault does to it."""
    return _ALTERATIONS.get(fault, lambda right: right)(result)


def _with_first(right, first):
    return replace(right, vectors=[first, *right.vectors[1:]])


_ALTERATIONS = {
    "half-a-batch": lambda right: (
        replace(right, vectors=right.vectors[::2], indexes=right.indexes[::2])
        if isinstance(right, Vectors)
        else replace(right, pairs=right.pairs[::2])
    ),
    "one-too-many": lambda right: (
        replace(right, vectors=[*right.vectors, right.vectors[0]], indexes=[*right.indexes, len(right.indexes)])
        if isinstance(right, Vectors)
        else replace(right, pairs=[*right.pairs, (len(right.pairs), 0.5)])
    ),
    "wrong-dimension": lambda right: replace(right, vectors=[one[:-1] for one in right.vectors]),
    "ragged": lambda right: _with_first(right, right.vectors[0][:-1]),
    "zero": lambda right: _with_first(right, [0.0] * DIMENSION),
    "not-a-number": lambda right: (
        _with_first(right, [math.nan, *right.vectors[0][1:]])
        if isinstance(right, Vectors)
        else replace(right, pairs=[(right.pairs[0][0], math.nan), *right.pairs[1:]])
    ),
    "infinite": lambda right: (
        _with_first(right, [math.inf, *right.vectors[0][1:]])
        if isinstance(right, Vectors)
        else replace(right, pairs=[(right.pairs[0][0], math.inf), *right.pairs[1:]])
    ),
    "null": lambda right: (
        _with_first(right, [None] * DIMENSION)
        if isinstance(right, Vectors)
        else replace(right, pairs=[(right.pairs[0][0], None), *right.pairs[1:]])
    ),
    "permuted": lambda right: replace(right, vectors=right.vectors[::-1], indexes=right.indexes[::-1]),
    "one-twice": lambda right: (
        replace(right, indexes=[right.indexes[0], *right.indexes[:-1]])
        if isinstance(right, Vectors)
        else replace(right, pairs=[right.pairs[0], *right.pairs[:-1]])
    ),
    "unknown-index": lambda right: (
        replace(right, indexes=[*right.indexes[:-1], 999])
        if isinstance(right, Vectors)
        else replace(right, pairs=[*right.pairs[:-1], (999, 0.1)])
    ),
    "numbers-for-pieces": lambda right: replace(right, pieces=[7, 8]),
    "objects-for-pieces": lambda right: replace(right, pieces=[{"a": 1}]),
    "texts-for-numbers": lambda right: (
        _with_first(right, ["one", *right.vectors[0][1:]])
        if isinstance(right, Vectors)
        else replace(right, pairs=[(right.pairs[0][0], {"score": 1}), *right.pairs[1:]])
    ),
    "impossible-usage": lambda right: (
        replace(right, input_tokens=-5, output_tokens=10**40)
        if isinstance(right, Answer)
        else replace(right, tokens=-5)
    ),
    "usage-in-words": lambda right: (
        replace(right, input_tokens="", output_tokens="many")
        if isinstance(right, Answer)
        else replace(right, tokens="many")
    ),
    "empty-answer": lambda right: replace(right, pieces=[]),
    "nothing-but-length": lambda right: replace(right, pieces=[], end="length"),
    "length": lambda right: replace(right, end="length"),
    "filtered": lambda right: replace(right, pieces=right.pieces[:2], end="filtered"),
    "error-in-the-stream": lambda right: replace(right, pieces=right.pieces[:2], error="the model crashed"),
}
