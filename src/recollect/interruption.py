"""Ending what runs in a thread when whoever waits for it has given up.

Nothing can stop a thread from outside. So what may take long says how it is stopped (`stoppable`) or asks now and then
whether it should (`check`), and `Interrupted` then leaves it as an interrupt from the keyboard would. Where nobody can
give up, which is the rule, both cost a look at a context variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock


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


#: Of the call that runs in this context.
current: ContextVar[Interruption | None] = ContextVar("recollect_interruption", default=None)


def check() -> None:
    """Raise `Interrupted` where nobody waits for the current call any more."""
    interruption = current.get()
    if interruption is not None:
        interruption.check()


@contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """For the time of the block the current call, where it can be given up, is stopped by ``stop``.

    Args:
        stop: Called in another thread, at any moment of the block, at most once.

    Raises:
        Interrupted: Nobody waits for the call any more.
    """
    interruption = current.get()
    if interruption is None:
        yield
        return
    with interruption.stopped_by(stop):
        yield


@contextmanager
def carried_through() -> Iterator[None]:
    """For the time of the block nobody can give up the current call: what is cleared away after it is done whole."""
    before = current.set(None)
    try:
        yield
    finally:
        current.reset(before)
