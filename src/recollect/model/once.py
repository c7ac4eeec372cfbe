"""Requests that take effect once, and jobs that are begun again without doing anything twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
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


# Since when something is being done that may be begun again: what it has done already is not done twice.
#
# A job whose worker dies is run anew from its beginning. Where it finds what it wrote before, it leaves that as it
# is.


#: When the job that runs here was begun for the first time; None: none runs here.
job_begun: ContextVar[datetime | None] = ContextVar("recollect_job_begun", default=None)


def is_own_work(written_at: datetime) -> bool:
    """Whether something that was written then can only be an earlier run's of the job that runs here, or a later one's.

    Args:
        written_at: By the database's clock, as the job's begin.
    """
    begun = job_begun.get()
    return begun is not None and written_at >= begun
