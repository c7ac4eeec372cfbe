"""What a request sends, read before the route reads it: what it says is known then, and the route gets it again."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO

from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import Message, Receive

# In memory of a body; what is longer is in a file without a name.
_IN_MEMORY_BYTES = 1 << 20
_READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class SentBody:
    """A body that was read.

    Attributes:
        digest: Of what it says: two forms with the same parts have one digest, whatever stands between their parts.
        again: Gives it to whoever receives it next.
    """

    digest: bytes
    again: Receive


@asynccontextmanager
async def sent_body(request: Request, receive: Receive) -> AsyncIterator[SentBody]:
    """The body of a request; what it was kept in is gone at the end of the block."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    # Clients draw another boundary each time that they send the same form.
    boundary = options.get(b"boundary", b"") if kind == b"multipart/form-data" else b""
    with SpooledTemporaryFile(_IN_MEMORY_BYTES) as kept:
        async for part in request.stream():
            await run_in_threadpool(kept.write, part)
        digest = await run_in_threadpool(_digest, kept, boundary)
        kept.seek(0)
        over = False

        async def again() -> Message:
            nonlocal over
            if over:
                return await receive()
            part = await run_in_threadpool(kept.read, _READ_BYTES)
            over = len(part) < _READ_BYTES
            return {"type": "http.request", "body": part, "more_body": not over}

        yield SentBody(digest, again)


def _digest(kept: IO[bytes], boundary: bytes) -> bytes:
    """SHA-256 of what was kept, without the boundary wherever it stands."""
    digest, rest = hashlib.sha256(), b""
    held = max(len(boundary) - 1, 0)
    kept.seek(0)
    while part := kept.read(_READ_BYTES):
        rest += part
        rest = rest.replace(boundary, b"") if boundary else rest
        # What may be the beginning of a boundary waits for what comes behind it.
        sure = max(len(rest) - held, 0)
        digest.update(rest[:sure])
        rest = rest[sure:]
    digest.update(rest)
    return digest.digest()
