"""Whether an attempt that failed is followed by another one, and when."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass

from recollect.errors import (
    ConflictError,
    NotFoundError,
    ParseError,
    PermissionDeniedError,
    QuotaExceededError,
    RecollectError,
    StoreFullError,
    UsageError,
)
from recollect.privacy.credentials import without_secrets

# What no other attempt could do better: somebody has to change something first.
_FOR_GOOD = (ConflictError, NotFoundError, ParseError, PermissionDeniedError, QuotaExceededError, UsageError)

# Each wait is so many times as long as the one before.
_GROWTH = 4.0

# Jobs that failed together are not all tried again at the same moment.
_JITTER = 0.25

_LONGEST_SECONDS = 3600.0

# Where there is no room, each wait is such a share of the time that the job has been at it, so that the waits grow, and
# room that was made is found soon.
_SHARE_OF_ITS_TIME = 0.25
_LONGEST_WITHOUT_ROOM_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a job is tried, and how long it waits in between.

    Attributes:
        max_attempts: Where the job does not say so itself.
        backoff_seconds: Before the second attempt; before each further one four times as long. 0: at once.
        max_deaths: How many workers may die while they run one job before it is taken for the cause.
    """

    max_attempts: int = 3
    backoff_seconds: float = 10.0
    max_deaths: int = 10

    def delay_seconds(self, attempts: int, error: BaseException, *, draw: Callable[[], float] = random.random) -> float:
        """How long to wait after so many attempts.

        Args:
            attempts: That were made.
            error: Why the last one failed; what it says of when to ask again is heeded.
            draw: Gives numbers between 0 and 1.
        """
        asked = getattr(error, "retry_after_seconds", None) or 0.0
        backoff = min(self.backoff_seconds * _GROWTH ** (attempts - 1), _LONGEST_SECONDS)
        return max(backoff * (1 - _JITTER + 2 * _JITTER * draw()), float(asked))

    def wait_for_room_seconds(self, since_seconds: float, *, draw: Callable[[], float] = random.random) -> float:
        """How long to wait where a disk is full.

        Args:
            since_seconds: Since the job was begun first.
            draw: Gives numbers between 0 and 1.
        """
        share = min(since_seconds * _SHARE_OF_ITS_TIME, _LONGEST_WITHOUT_ROOM_SECONDS)
        return max(self.backoff_seconds, share) * (1 - _JITTER + 2 * _JITTER * draw())


def lacks_room(error: BaseException | None) -> bool:
    """Whether there was no room on a disk, the store's or another one: that says nothing of what was tried."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, StoreFullError):
            return True
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def may_succeed(error: BaseException) -> bool:
    """Whether another attempt may succeed where one failed with this error.

    An error says so itself by its attribute ``retryable``; otherwise its class does.
    """
    says: object = getattr(error, "retryable", None)
    if isinstance(says, bool):
        return says
    return not isinstance(error, _FOR_GOOD)


def reason_of(error: BaseException) -> str:
    """Return an error as a job's reason: in words for a person, without secrets."""
    said = without_secrets(str(error).strip())
    if isinstance(error, RecollectError) and said:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
