"""The thread of a log that is stored in batches, off the path of whoever adds to it."""

from __future__ import annotations

import threading
from collections.abc import Callable

_CLOSE_SECONDS = 10.0


class FlushThread:
    """Calls a function every so many seconds, from when there is something until it is closed. Safe between threads.

    Args:
        flush: Stores what waits.
        name: The thread's.
        every_seconds: How long something may wait.
    """

    def __init__(self, flush: Callable[[], None], *, name: str, every_seconds: float) -> None:
        self._flush = flush
        self._name = name
        self._every_seconds = every_seconds
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_closing(self) -> bool:
        """Whether nothing is flushed any more but what waits now."""
        return self._closing.is_set()

    def run(self) -> None:
        """Begin, where it has not; also after it was closed."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._closing.clear()
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread, and flush once more."""
        self._closing.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_CLOSE_SECONDS)
        self._flush()

    def _run(self) -> None:
        while not self._closing.wait(self._every_seconds):
            self._flush()
