"""A request that takes effect once, known to whatever stores its effect; elsewhere there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class OnceRequest:
    """A request with an idempotency key that is made for the first time.

    Attributes:
        credential: Who asks.
        key: The client's.
        run: Of this attempt.
        request_hash: Of what is asked.
    """

    credential: str
    key: str
    run: UUID
    request_hash: bytes


_CURRENT: ContextVar[OnceRequest | None] = ContextVar("recollect_once", default=None)


@contextmanager
def made_once(request: OnceRequest) -> Iterator[None]:
    """Have what is stored in this task, and in threads that are started from it, belong to a request."""
    token = _CURRENT.set(request)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_once() -> OnceRequest | None:
    """The request that is made here; None: one that has no key, or none at all."""
    return _CURRENT.get()
