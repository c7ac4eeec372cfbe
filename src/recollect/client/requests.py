"""Requests as the HTTP library takes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx2

from recollect.client.attempts import Settings
from recollect.client.calls.base import Call

if TYPE_CHECKING:
    import ssl

#: Connections that are kept open for the next requests, and all of them.
LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)

_CONNECT_SECONDS = 10.0


def trusted() -> ssl.SSLContext:
    """What servers are verified by; read once a process, because the system's certificates take 20 ms."""
    return _trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _trusted(file: str | None, folder: str | None) -> ssl.SSLContext:  # noqa: ARG001 - what the context is made of
    return httpx2.create_ssl_context()


def request_of(url: str, call: Call[Any], headers: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """One request.

    Args:
        url: Of the server.
        call: What is asked.
        headers: Beside those of every request.
        settings: How long it may take.
    """
    patience = max(settings.timeout_seconds, call.patience_seconds)
    return {
        "method": call.method,
        "url": url + call.path,
        "params": {name: _text(value) for name, value in call.query.items() if value is not None},
        "headers": {**headers, **_kind(call)},
        # In ASCII: what is no text, such as a lone surrogate, is for the server to refuse.
        "content": call.lines if call.body is None else json.dumps(dict(call.body)).encode(),
        "timeout": httpx2.Timeout(patience, connect=min(_CONNECT_SECONDS, patience)),
    }


def _kind(call: Call[Any]) -> Mapping[str, str]:
    if call.body is not None:
        return {"Content-Type": "application/json"}
    return {} if call.lines is None else {"Content-Type": "application/jsonl"}


def _text(value: Any) -> Any:  # noqa: ANN401 - what a query holds
    return str(value).lower() if isinstance(value, bool) else value
