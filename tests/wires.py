"""What stands between a client and a server, or in a server's place."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def answering(handle: Callable[[socket.socket, int], object]) -> Iterator[str]:
    """A server in whose place a function answers: told the connection, and how many came before it."""
    listening = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve() -> None:
        number = 0
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=one, args=(connection, number), daemon=True)
            thread.start()
            threads.append(thread)
            number += 1

    def one(connection: socket.socket, number: int) -> None:
        with connection, suppress(OSError):
            handle(connection, number)

    accepting = threading.Thread(target=serve, daemon=True)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        accepting.join()


def request_of(connection: socket.socket) -> bytes:
    """A request, with as much of a body as it says: what is closed with bytes unread is reset, its reply lost."""
    read = b""
    while b"\r\n\r\n" not in read or len(read) < _length(read):
        piece = connection.recv(65536)
        if not piece:
            return read
        read += piece
    return read


def _length(request: bytes) -> int:
    """How long a request is whose head has come."""
    head, _, _ = request.partition(b"\r\n\r\n")
    told = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return len(head) + 4 + (int(told[1]) if told else 0)


def reply(body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    )
    return head.encode() + body


class Cutter:
    """A way to a server that is cut: each connection after as many bytes of the reply as it is given.

    Attributes:
        after: Bytes of the replies of the next connections; a connection without an entry is left whole.
        heads: Of the requests that passed.

    Args:
        url: Of the server.
        after: See above.
        then: The server that connections go to after the first that was cut.
    """

    def __init__(self, url: str, after: list[int], *, then: str | None = None) -> None:
        self._port = int(url.rpartition(":")[2])
        self._then = then
        self.after = after
        self.heads: list[str] = []

    def __call__(self, client: socket.socket, _: int) -> None:
        left = self.after.pop(0) if self.after else None
        with socket.create_connection(("127.0.0.1", self._port)) as server:
            up = threading.Thread(target=self._up, args=(client, server), daemon=True)
            up.start()
            while piece := server.recv(65536):
                if left is not None and len(piece) >= left:
                    if self._then is not None:
                        self._port = int(self._then.rpartition(":")[2])
                    client.sendall(piece[:left])
                    # Another thread reads from it: closed alone, it would stay open until that has read something.
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(piece)
                left = None if left is None else left - len(piece)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := client.recv(65536):
                if piece[:5] in {b"GET /", b"POST ", b"DELET", b"PUT /"}:
                    self.heads.append(piece.partition(b"\r\n\r\n")[0].decode())
                server.sendall(piece)
            server.shutdown(socket.SHUT_WR)


ASKED = "How many days of annual leave are there?"


def untimed(told):
    """JSON without what each run has of its own."""
    if isinstance(told, dict):
        return {key: untimed(value) for key, value in told.items() if key not in {"timings_ms", "seconds", "cached"}}
    return [untimed(one) for one in told] if isinstance(told, list) else told
