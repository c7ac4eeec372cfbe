"""Blocking work for asynchronous handlers: in threads, so many calls at a time, stopped where the client gave up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from recollect.fair_share import FairShare
from recollect.pipeline.threads import Threads
from recollect.tools.base import listener

if TYPE_CHECKING:
    from recollect.server.mcp.access import Access

P = ParamSpec("P")
R = TypeVar("R")

#: Tells a client what was done last.
Tell = Callable[[str], Awaitable[None]]

# Of what was done, how much may wait to be told; what comes beyond that is not told.
_UNTOLD = 100


class BusyError(Exception):
    """More calls wait than may."""


class Calls:
    """Runs calls in threads, of which callers have equal shares.

    Args:
        threads: Where they run, so many at a time; one caller has half of them at most.
        most: How many may be under way, those that wait for a thread included.
    """

    def __init__(self, threads: Threads, *, most: int = 1_000) -> None:
        self._threads = threads
        half = threads.most // 2
        self._share = FairShare(threads.most - half, spare=half)
        self._most = most
        self._under_way = 0

    async def run(
        self, function: Callable[Concatenate[Access, P], R], access: Access, *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What a function gives. Cancelled, it is stopped before this returns.

        Raises:
            BusyError: There are too many already; it was not begun.
        """
        if self._under_way >= self._most:
            raise BusyError
        self._under_way += 1
        try:
            async with self._share.place(access.caller):
                return await self._threads.run(function, access, *args, **kwargs)
        finally:
            self._under_way -= 1

    async def run_telling(
        self,
        tell: Tell,
        function: Callable[Concatenate[Access, P], R],
        access: Access,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """As `run`; what the tool reports meanwhile is told, in its order, as fast as it is taken."""
        loop = asyncio.get_running_loop()
        untold: asyncio.Queue[str | None] = asyncio.Queue()

        def put(done: str) -> None:
            if untold.qsize() < _UNTOLD:
                untold.put_nowait(done)

        async def pass_on() -> None:
            while (done := await untold.get()) is not None:
                await tell(done)

        def report(done: str) -> None:
            loop.call_soon_threadsafe(put, done)

        async def work() -> R:
            listener.set(report)
            return await self.run(function, access, *args, **kwargs)

        telling = asyncio.create_task(pass_on())
        try:
            # In a task, whose context is its own: what listens to this call listens to no other.
            found = await asyncio.create_task(work())
            untold.put_nowait(None)
            await telling
        finally:
            telling.cancel()
        return found
