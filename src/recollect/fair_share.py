"""Places that callers share: who has none goes first, and nobody can take all of them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Hashable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from threading import Lock
from typing import TypeVar

from recollect.forking import renew_in_children
from recollect.interruption import check, stoppable

T = TypeVar("T", bound=Hashable)

#: The group of a caller, for instance the tenant, and the caller within it.
Caller = tuple[Hashable, Hashable]


class FairShare:
    """Gives out places, for threads and any number of event loops.

    A free place goes to the group with the fewest places, then to the caller with the fewest, then to who came first. A
    caller alone can have ``most`` places. When these are taken, the ``spare`` ones are for callers without a place, and
    for groups below their share of ``most``.

    Args:
        most: How many places there are.
        spare: How many more there are for those who have fewer than their share.
    """

    def __init__(self, most: int, *, spare: int = 0) -> None:
        self._most, self._spare = most, spare
        self.renew_in_child()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """In the child of a fork: nobody has a place."""
        self._lock = Lock()
        self._taken: Counter[Caller] = Counter()
        self._groups: Counter[Hashable] = Counter()
        self._waiting: dict[Caller, deque[Future[None]]] = {}

    @asynccontextmanager
    async def place(self, caller: Caller) -> AsyncIterator[None]:
        """Wait for a place and have it for the time of the block."""
        turn = self._ask(caller)
        try:
            if not turn.done():
                await asyncio.shield(asyncio.wrap_future(turn))
            yield
        finally:
            self._leave(caller, turn)

    @contextmanager
    def place_in_thread(self, caller: Caller) -> Iterator[None]:
        """As `place`, in a thread.

        Raises:
            Interrupted: Nobody waits for the call any more.
        """
        turn = self._ask(caller)
        try:
            if not turn.done():
                with stoppable(partial(self._give_up, caller, turn)):
                    turn.exception()
                check()
            yield
        finally:
            self._leave(caller, turn)

    def _ask(self, caller: Caller) -> Future[None]:
        turn: Future[None] = Future()
        with self._lock:
            self._waiting.setdefault(caller, deque()).append(turn)
            self._give_out()
        return turn

    def _give_up(self, caller: Caller, turn: Future[None]) -> None:
        """Wake up who waits in a thread; a place that is given to them meanwhile is given back by `_leave`."""
        with self._lock:
            if not turn.done():
                self._waiting[caller].remove(turn)
                turn.set_exception(asyncio.CancelledError())

    def _leave(self, caller: Caller, turn: Future[None]) -> None:
        with self._lock:
            if not turn.done():
                self._waiting[caller].remove(turn)
            elif turn.exception() is None:
                _count_down(self._taken, caller)
                _count_down(self._groups, caller[0])
            if not self._waiting.get(caller):
                self._waiting.pop(caller, None)
            self._give_out()

    def _give_out(self) -> None:
        while (caller := self._next()) is not None:
            turn = self._waiting[caller].popleft()
            if not self._waiting[caller]:
                del self._waiting[caller]
            self._taken[caller] += 1
            self._groups[caller[0]] += 1
            turn.set_result(None)

    def _next(self) -> Caller | None:
        """The caller who has the next place; None: it is nobody's."""
        taken = self._taken.total()
        if not self._waiting or taken >= self._most + self._spare:
            return None
        able = iter(self._waiting)
        if taken >= self._most:
            groups = len({*self._groups, *(group for group, _ in self._waiting)})
            share = self._most // groups
            able = (one for one in able if not self._taken[one] or self._groups[one[0]] < share)
        # Of equal ones the first: callers stand in the order in which they began to wait.
        return min(able, key=lambda one: (self._groups[one[0]], self._taken[one]), default=None)


def _count_down(counts: Counter[T], one: T) -> None:
    counts[one] -= 1
    if not counts[one]:
        del counts[one]
