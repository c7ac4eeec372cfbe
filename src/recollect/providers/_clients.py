"""What providers' files need of HTTP clients: closing them, one TLS context for all, keys kept out of SDKs' logs."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from recollect.providers.connection import Connection


def close_client(backend: object) -> None:
    """Close the SDK's client that a backend keeps as ``_client``, if there is one; the next request makes another."""
    client = vars(backend).pop("_client", None)
    with contextlib.suppress(Exception):
        if hasattr(client, "close"):
            client.close()
        elif client is not None:  # Cohere's closes as a context only
            client.__exit__(None, None, None)


@cache
def tls_context() -> ssl.SSLContext:
    """What clients verify servers by: reading the certificates takes longer than all else that makes a client."""
    import ssl

    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


class _Masking(logging.Filter):
    """Masks the keys of connections in whatever a logger is given."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._connections: dict[object, Connection] = {}

    def add(self, connection: Connection) -> None:
        with self._lock:
            self._connections[connection.api_key, connection.base_url] = connection

    def filter(self, record: logging.LogRecord) -> bool:
        with self._lock:
            connections = list(self._connections.values())
        message = record.getMessage()
        for connection in connections:
            message = connection.cleaned(message)
        record.msg, record.args = message, None
        return True


@cache
def _masking(logger: str) -> _Masking:
    masking = _Masking()
    logging.getLogger(logger).addFilter(masking)
    return masking


def mask_in_logs(logger: str, connection: Connection) -> None:
    """Keep a connection's secrets out of an SDK's own log, where a server's message may repeat them.

    Args:
        logger: The name of the logger that the SDK writes to: filters do not hold for those below it.
        connection: Whose secrets.
    """
    _masking(logger).add(connection)
