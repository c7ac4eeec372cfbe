"""A circuit breaker: a provider that keeps failing is left alone for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class CircuitBreaker:
    """Counts failures in a row; after too many, calls are refused until a pause is over, then one may try.

    Safe to share between threads. Written here, because the libraries that offer one keep their state per process, or
    wrap functions, and a stream of pieces is neither.

    Args:
        failures: In a row, after which calls are refused.
        seconds: How long they are.
        clock: Monotonic seconds.
    """

    def __init__(self, failures: int, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._next_trial = 0.0

    def refused_for(self) -> float:
        """Seconds for which calls are refused; 0 where the caller may try.

        After the pause only one caller may, until its outcome is known or another pause has passed.
        """
        with self._lock:
            if self._failures < self._limit:
                return 0.0
            now = self._clock()
            if now < self._next_trial:
                return self._next_trial - now
            self._next_trial = now + self._seconds
            return 0.0

    def succeeded(self) -> None:
        """The provider answered: it works."""
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        """The provider did not answer, or only that it is broken."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._limit:
                self._next_trial = self._clock() + self._seconds
