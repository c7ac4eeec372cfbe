"""Writes that a client may send again: with the header ``Idempotency-Key`` they take effect once.

A second request of the same key and the same content gets the first one's reply. Keys are a credential's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import ConflictError, IdempotencyKeyReusedError, RequestUnderWayError, UsageError
from recollect.model import Scope
from recollect.store.idempotency import MadeRequest

if TYPE_CHECKING:
    from uuid import UUID

    from recollect.pipeline import RAGPipeline
    from recollect.server.caller import Caller
    from recollect.store.idempotency import IdempotencyRepository

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"

#: How long a reply is kept.
KEEP_SECONDS = 24 * 3600.0

#: Of a reply that is kept whole; of a larger one it is kept that there was one.
MOST_KEPT_BYTES = 1024 * 1024

_MOST_KEY_CHARACTERS = 255
# What a reply is without: the connection's, and what is of one reply alone.
_OWN_HEADERS = frozenset(
    {
        "content-length",
        "date",
        "server",
        "connection",
        "transfer-encoding",
        "x-request-id",
        "ratelimit",
        "ratelimit-policy",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply as it was sent.

    Attributes:
        status: Of HTTP.
        headers: By name.
        body: All of it; None: it is larger than is kept.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Begun:
    """A request that is made for the first time; one of `Idempotency.end` and `Idempotency.give_up` ends it."""

    scope: Scope
    credential: str
    key: str
    run: UUID


class Idempotency:
    """Sees to it that a request with a key takes effect once. Safe to share between threads and processes.

    Args:
        rag: The pipeline in whose store it is kept.
    """

    def __init__(self, rag: RAGPipeline) -> None:
        self._rag = rag

    def begin(self, caller: Caller, key: str, fingerprint: bytes) -> Begun | Reply:
        """Begin a request, or find what was replied to it before.

        Args:
            caller: Who asks.
            key: As the header has it, with or without quotation marks.
            fingerprint: Of what is asked (`fingerprint`).

        Raises:
            UsageError: The key is none.
            IdempotencyKeyReusedError: Something else was asked with it.
            RequestUnderWayError: The first request is under way.
            ConflictError: Its reply was not kept, or it was broken off after it took effect.
        """
        key = read_key(key)
        scope, credential = Scope(tenant_id=caller.tenant), str(caller.credential)
        found = self._repository.begin(scope, credential, key, fingerprint, keep_seconds=KEEP_SECONDS)
        if isinstance(found, MadeRequest):
            return _reply(found, key, fingerprint)
        return Begun(scope, credential, key, found)

    def end(self, begun: Begun, reply: Reply) -> None:
        """Keep the reply to a request that took effect; one that did not may be made again.

        What must not be stored (``Cache-Control: no-store``: a key that is shown once) is not, and neither is what is
        larger than `MOST_KEPT_BYTES`: then it is kept that there was a reply.
        """
        if reply.status >= 400:
            self.give_up(begun)
            return
        headers = {name.lower(): value for name, value in reply.headers.items()}
        # Every stream says so to proxies, and none shows a secret.
        streamed = headers.get("content-type", "").startswith("text/event-stream")
        keep = streamed or "no-store" not in headers.get("cache-control", "")
        self._repository.end(
            begun.scope,
            begun.credential,
            begun.key,
            begun.run,
            status=reply.status,
            headers={name: value for name, value in headers.items() if name not in _OWN_HEADERS},
            body=reply.body if keep else None,
        )

    def give_up(self, begun: Begun) -> None:
        """Let a request that failed be made again."""
        self._repository.give_up(begun.scope, begun.credential, begun.key, begun.run)

    @property
    def _repository(self) -> IdempotencyRepository:
        return self._rag.standpoint.store.idempotency


def fingerprint(method: str, path: str, query: str, body: bytes) -> bytes:
    """What a request asks for, as a hash; ``body`` is what it says, or a digest of that."""
    digest = hashlib.sha256()
    for part in (method.encode(), path.encode(), query.encode(), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def read_key(given: str) -> str:
    """An idempotency key as a header has it: a string of the standard, in quotation marks, or without them.

    Raises:
        UsageError: It is none.
    """
    text = given.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    if not text or len(text) > _MOST_KEY_CHARACTERS or not text.isascii() or not text.isprintable() or '"' in text:
        raise UsageError(f"{HEADER} must be 1 to {_MOST_KEY_CHARACTERS} printable ASCII characters, such as a UUID.")
    return text


def _reply(made: MadeRequest, key: str, asked: bytes) -> Reply:
    if made.request_hash != asked:
        raise IdempotencyKeyReusedError(
            f"The idempotency key {key!r} was used for another request: give each its own key."
        )
    if made.broken_off:
        raise ConflictError(
            f"The request with the idempotency key {key!r} took effect, and was broken off before it was replied to: "
            "look at what it has changed. Under another key it would be made once more."
        )
    if made.status is None:
        raise RequestUnderWayError(f"The request with the idempotency key {key!r} is under way: ask again in a moment.")
    if made.body is None:
        raise ConflictError(
            f"The request with the idempotency key {key!r} took effect (status {made.status}); its reply was not kept."
        )
    return Reply(status=made.status, headers={**made.headers, REPLAYED_HEADER: "true"}, body=made.body)
