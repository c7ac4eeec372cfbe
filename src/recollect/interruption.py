"""Ending what runs in a thread when whoever waits for it has given up.

Nothing can stop a thread from outside. So what may take long says how it is stopped (`stoppable`) or asks now and then
whether it should (`check`), and `Interrupted` then leaves it as an interrupt from the keyboard would. Where nobody can
give up, which is the rule, both cost a look at a context variable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Lock
from typing import Generic, TypeVar

from recollect.forking import renew_in_children


class Interrupted(BaseException):
    """Nobody waits for this any more."""


class Interruption:
    """Stops one call, from another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stops: list[Callable[[], None]] = []
        self._asked = False

    def interrupt(self) -> None:
        """Stop the call. What it is at now is stopped before this returns; what it would begin next is not begun."""
        # Under the lock, so that nothing is stopped that the call has left meanwhile and somebody else has taken up.
        with self._lock:
            self._asked = True
            for stop in self._stops:
                stop()

    def check(self) -> None:
        """Raise `Interrupted` where the call is to end."""
        if self._asked:
            raise Interrupted

    @contextmanager
    def stopped_by(self, stop: Callable[[], None]) -> Iterator[None]:
        """For the time of the block the call is stopped by ``stop``; the error that this makes is `Interrupted`."""
        with self._lock:
            self.check()
            self._stops.append(stop)
        try:
            yield
        except Exception as exc:
            # An error would be told to others too, who wait for the same answer and go on.
            if self._asked:
                raise Interrupted from exc
            raise
        finally:
            with self._lock:
                self._stops.remove(stop)


_NOBODY_GIVES_UP = nullcontext()

#: Of the call that runs in this context.
current: ContextVar[Interruption | None] = ContextVar("recollect_interruption", default=None)


def check() -> None:
    """Raise `Interrupted` where nobody waits for the current call any more."""
    interruption = current.get()
    if interruption is not None:
        interruption.check()


def stoppable(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """For the time of the block the current call, where it can be given up, is stopped by ``stop``.

    Args:
        stop: Called in another thread, at any moment of the block, at most once.

    Raises:
        Interrupted: Nobody waits for the call any more.
    """
    interruption = current.get()
    return _NOBODY_GIVES_UP if interruption is None else interruption.stopped_by(stop)


@contextmanager
def carried_through() -> Iterator[None]:
    """For the time of the block nobody can give up the current call: what is cleared away after it is done whole."""
    before = current.set(None)
    try:
        yield
    finally:
        current.reset(before)


# Calls that are waited for only so long, of what may hang: each in a thread of its own, so many at once.


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
