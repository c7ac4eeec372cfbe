"""Connections that go to checked addresses, and whose every step ends by one deadline."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

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

from recollect.fetching.guard import Guard
from recollect.fetching.urls import WebUrl

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
