"""Writes that a client may send again: with the header ``Idempotency-Key`` they take effect once.

A second request of the same key and the same content gets the first one's reply. Keys are a credential's own.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from recollect.errors import (
    ConflictError,
    IdempotencyKeyReusedError,
    RequestUnderWayError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from recollect.model import Scope
from recollect.store.idempotency import LEASE_SECONDS, MadeRequest

if TYPE_CHECKING:
    from recollect.pipeline import RAGPipeline
    from recollect.server.caller import Caller
    from recollect.store.idempotency import IdempotencyRepository

logger = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"

#: Of a reply that is kept whole; of a larger one it is kept that there was one.
MOST_KEPT_BYTES = 1024 * 1024

_MOST_KEY_CHARACTERS = 255
# So often a process says that it makes a request, and tries again to keep what it could not keep.
_BEAT_SECONDS = LEASE_SECONDS / 3
_AGAIN_SECONDS = 0.5
# What could not be kept for so long never will be.
_LONGEST_SECONDS = 600.0
# While the database is away, only so many requests that could not be begun are noted: the others end with their lease.
_MOST_OPEN = 1_000
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
    request_hash: bytes


@dataclass(slots=True)
class _Open:
    """A request that is being made, or whose end could not be kept yet.

    Attributes:
        beat: Says that it is being made.
        close: Keeps its end; None: it is being made.
        failed_at: When that failed first.
    """

    beat: Callable[[], None]
    close: Callable[[], None] | None = None
    failed_at: float = field(default=0.0)


class Idempotency:
    """Makes a request with a key take effect once. Safe to share between threads and processes.

    While requests are made, a thread says every few seconds that this process lives, and keeps what could not be kept
    when they ended because the database was away: a reply is never lost for that.

    Args:
        rag: The pipeline in whose store it is kept.
    """

    def __init__(self, rag: RAGPipeline) -> None:
        self._rag = rag
        self._open: dict[UUID, _Open] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

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
        begun = Begun(Scope(tenant_id=caller.tenant), str(caller.credential), key, uuid4(), fingerprint)
        try:
            found = self._repository.begin(begun.scope, begun.credential, key, fingerprint, begun.run)
        except StoreError:
            # It may stand in the database all the same: the connection was lost after that.
            if len(self._open) < _MOST_OPEN:
                self._look_after(begun, partial(self._give_up, begun))
            raise
        if found is not None:
            return _reply(found, key, fingerprint)
        self._look_after(begun)
        return begun

    def end(self, begun: Begun, reply: Reply) -> None:
        """Keep the reply to a request that took effect; one that did not may be made again.

        What must not be stored (``Cache-Control: no-store``: a key that is shown once) is not, and neither is what is
        larger than `MOST_KEPT_BYTES`: then it is kept that there was a reply. Where the database is away, that is done
        later.
        """
        if reply.status >= 400:
            self.give_up(begun)
            return
        headers = {name.lower(): value for name, value in reply.headers.items()}
        # Every stream says so to proxies, and none shows a secret.
        streamed = headers.get("content-type", "").startswith("text/event-stream")
        keep = streamed or "no-store" not in headers.get("cache-control", "")
        ended = partial(
            self._repository.end,
            begun.scope,
            begun.credential,
            begun.key,
            begun.run,
            status=reply.status,
            headers={name: value for name, value in headers.items() if name not in _OWN_HEADERS},
            body=reply.body if keep else None,
        )
        self._close(begun, ended)

    def give_up(self, begun: Begun) -> None:
        """Let a request that failed be made again; where the database is away, that is done later."""
        self._close(begun, partial(self._give_up, begun))

    def _give_up(self, begun: Begun) -> None:
        self._repository.give_up(begun.scope, begun.credential, begun.key, begun.run)

    def _close(self, begun: Begun, close: Callable[[], None]) -> None:
        try:
            close()
        except StoreError as exc:
            logger.warning("The end of a request with an idempotency key is kept later: %s", exc)
            self._look_after(begun, close)
        else:
            with self._lock:
                self._open.pop(begun.run, None)

    def _look_after(self, begun: Begun, close: Callable[[], None] | None = None) -> None:
        """Have the thread say that a request is being made, or keep its end."""
        beat = partial(self._repository.beat, begun.scope, begun.credential, begun.key, begun.run)
        with self._lock:
            self._open[begun.run] = _Open(beat, close, time.monotonic())
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="recollect-idempotency", daemon=True)
                self._thread.start()
        if close is not None:
            self._wake.set()

    def _keep(self) -> None:
        """Look after open requests until there are none."""
        pause = _BEAT_SECONDS
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            with self._lock:
                if not self._open:
                    self._thread = None
                    return
                found = list(self._open.items())
            for run, one in found:
                if not self._keep_one(run, one):
                    break
            pause = _AGAIN_SECONDS if any(one.close for _, one in found) else _BEAT_SECONDS

    def _keep_one(self, run: UUID, one: _Open) -> bool:
        """Whether the database is there."""
        try:
            (one.close or one.beat)()
        except StoreUnavailableError as exc:
            if one.close is None or time.monotonic() - one.failed_at < _LONGEST_SECONDS:
                return False
            logger.error("The end of a request with an idempotency key was not kept: %s", exc)
        except Exception:
            logger.exception("The end of a request with an idempotency key was not kept.")
        if one.close is not None:
            with self._lock:
                self._open.pop(run, None)
        return True

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
