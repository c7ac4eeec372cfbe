"""Calls that are waited for only so long, of what may hang: each in a thread of its own, so many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from recollect.forking import renew_in_children
from recollect.interruption import Interrupted, Interruption, check, current, stoppable

T = TypeVar("T")


class TimedCalls:
    """What bounds the calls of one kind in this process. Safe to share between threads.

    A call that hangs keeps its thread until it returns; with all of them under way, a further one is refused.

    Args:
        what: Is called, for messages; in the plural.
        most: How many may be under way at once, those that nobody waits for any more included.
    """

    def __init__(self, what: str, *, most: int) -> None:
        self._what = what
        self._most = most
        self.renew_in_child()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """In the child of a fork: the parent's calls are not under way here."""
        self._free = threading.BoundedSemaphore(self._most)

    def start(self, function: Callable[[], T], *, name: str) -> TimedCall[T]:
        """Begin a call.

        Raises:
            TimeoutError: Too many are under way.
        """
        free = self._free
        if not free.acquire(blocking=False):
            raise TimeoutError(f"{self._most} calls of {self._what} are under way already")
        call = TimedCall(function, free.release)
        # Daemonic, so that a hung call does not keep the process from ending.
        thread = threading.Thread(target=partial(copy_context().run, call.run), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            free.release()
            raise
        return call


class TimedCall(Generic[T]):
    """One call in a thread of its own."""

    def __init__(self, function: Callable[[], T], ended: Callable[[], None]) -> None:
        self._function = function
        self._ended = ended
        self._done = threading.Event()
        self._result: T
        self._error: Exception | None = None
        self._interruption = Interruption()

    def run(self) -> None:
        """Call; what is raised is kept for whoever waits."""
        current.set(self._interruption)
        try:
            self._result = self._function()
        except Interrupted:
            return
        except BaseException as exc:  # noqa: BLE001 - raised where the call is waited for
            self._error = exc if isinstance(exc, Exception) else RuntimeError(repr(exc))
        finally:
            self._ended()
            self._done.set()

    def wait(self, seconds: float, *, limit: float | None = None) -> T:
        """What the call gives.

        Args:
            seconds: To wait at most, from now on.
            limit: What a message names as the limit; None: ``seconds``.

        Raises:
            TimeoutError: It takes longer.
        """
        try:
            with stoppable(self._done.set):
                if not self._done.wait(max(0.0, seconds)):
                    raise TimeoutError(f"it took longer than {seconds if limit is None else limit:g} seconds")
            check()
        finally:
            # Nobody waits for it any more, whyever.
            self._interruption.interrupt()
        if self._error is not None:
            raise self._error
        return self._result
