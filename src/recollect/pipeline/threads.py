"""Synchronous calls for asyncio programs: in threads, so many at a time, and ended where nobody waits any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial, wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from recollect.forking import leave_to_parent, renew_in_children
from recollect.interruption import Interruption, current

P = ParamSpec("P")
R = TypeVar("R")

_END: Any = object()


class Threads:
    """Threads that calls run in. Used from any number of event loops, and of threads.

    Args:
        most: How many calls run at a time; the others wait for their turn.
        name: What the threads are called after.

    Attributes:
        most: As given.
    """

    def __init__(self, most: int, *, name: str = "recollect-async") -> None:
        self.most = most
        self._name = name
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None

    def renew_in_child(self) -> None:
        """In the child of a fork: threads of its own, when they are needed."""
        leave_to_parent(self._pool)
        self._begin()

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function with the caller's context variables.

        Cancelled, it does not begin; where it has begun it is interrupted, and this returns when it has ended: nothing
        runs on, and no connection and no lock is held by it.
        """
        interruption, context = _interruptible()
        return await self._run(interruption, context, partial(function, *args, **kwargs))

    async def stream(self, make: Callable[[], Iterator[R]]) -> AsyncGenerator[R]:
        """The items of an iterator as they come, each made in a thread when it is asked for.

        Cancelled, or left before its end, the iterator is closed before this returns.
        """
        # One for all of them: what the iterator enters with one item it leaves with another.
        interruption, context = _interruptible()
        items: Iterator[R] | None = None
        try:
            items = await self._run(interruption, context, make)
            while (item := await self._run(interruption, context, partial(next, items, _END))) is not _END:
                yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                await self._run(Interruption(), copy_context(), close)

    async def close(self, then: Callable[[], None] | None = None) -> None:
        """Wait for what runs, do one thing more, and let go of the threads; the next call makes others."""
        with self._lock:
            pool, self._pool = self._pool, None

        def end() -> None:
            if pool is not None:
                pool.shutdown()
            if then is not None:
                then()

        ending = asyncio.ensure_future(asyncio.to_thread(end))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await _done(ending)
            raise

    async def _run(self, interruption: Interruption, context: Context, call: Callable[[], R]) -> R:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.most, thread_name_prefix=self._name)
            work = self._pool.submit(context.run, _contained, call)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            if not work.cancel():
                await _ended(interruption, asyncio.wrap_future(work))
            raise


def threaded(
    function: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method that runs another class's in a thread; what it takes and returns has the same types."""

    @wraps(function)
    async def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ANN401 - whatever has that method
        found: R = await self._threads.run(function, self._inner, *args, **kwargs)
        return found

    return cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]", call)


def streamed(
    function: Callable[Concatenate[Any, P], Iterator[R]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[R]]:
    """As `threaded`, of a method that gives one item after the other."""

    @wraps(function)
    def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[R]:  # noqa: ANN401 - see above
        stream: AsyncGenerator[R] = self._threads.stream(partial(function, self._inner, *args, **kwargs))
        return stream

    return cast("Callable[Concatenate[Any, P], AsyncGenerator[R]]", call)


def _contained(call: Callable[[], R]) -> R:
    """What a call gives; asyncio's futures cannot hold the end of an iterator, and whoever awaits one would wait on."""
    try:
        return call()
    except StopIteration as exc:
        raise RuntimeError("A call that runs in a thread raised StopIteration: give next() a default.") from exc


def _interruptible() -> tuple[Interruption, Context]:
    interruption, context = Interruption(), copy_context()
    context.run(current.set, interruption)
    return interruption, context


async def _ended(interruption: Interruption, waiting: asyncio.Future[Any]) -> None:
    """Interrupt a call and wait for its end."""
    # In a thread: to cancel a statement takes a connection to the server.
    await _done(waiting, asyncio.ensure_future(asyncio.to_thread(interruption.interrupt)))


async def _done(*several: asyncio.Future[Any]) -> None:
    """Wait for the end of all, however often whoever waits is cancelled meanwhile."""
    while not all(one.done() for one in several):
        try:
            await asyncio.wait(several)
        except asyncio.CancelledError:
            continue
    for one in several:
        one.exception()  # told, so that nobody warns of it
