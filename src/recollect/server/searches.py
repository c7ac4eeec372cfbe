"""Searches that requests wait for: callers share the threads, for a limited time and only while the client waits."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from recollect.embedding.making import is_of_this_machine
from recollect.fair_share import FairShare
from recollect.pipeline.threads import Threads

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.server.caller import Caller


P = ParamSpec("P")


R = TypeVar("R")


# A search waits for a provider's model most of its time, and computes little meanwhile.
_WAITING_SEARCHES = 40


_FEWEST_SEARCHES = 4


class Searches:
    """Computes searches in threads.

    When the client closes its connection or the time is over, the search is stopped: its statement is cancelled and its
    thread is free before `run` returns. Tenants and their credentials have equal shares of the threads.

    Args:
        config: Says how many run at a time, and for how long each.
    """

    def __init__(self, config: RAGConfig) -> None:
        most = concurrent_searches(config)
        self._seconds = config.server.search_seconds
        # As many again for callers who would have to wait for those of others.
        self._share = FairShare(most, spare=most)
        self._threads = Threads(2 * most, name="recollect-search")

    async def run(self, request: Request, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute something that only reads, once it is the caller's turn.

        Args:
            request: Who waits for it; it was admitted, and its body was read.
            function: Called in a thread.
            *args: Its arguments.
            **kwargs: Its arguments.

        Raises:
            HTTPException: It took too long.
            ClientDisconnect: Nobody waits for it any more.
        """
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self.run_long(request, function, *args, **kwargs)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise HTTPException(
                503,
                f"The search was stopped after {self._seconds:g} seconds. Ask for fewer candidates or passages, or try "
                "again later.",
            ) from exc

    async def run_long(self, request: Request, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """As `run`, for as long as the client waits."""
        caller: Caller = request.state.caller
        place = caller.tenant, str(caller.credential)

        async def in_turn() -> R:
            async with self._share.place(place):
                return await self._threads.run(function, *args, **kwargs)

        return await while_connected(request, in_turn())

    async def close(self) -> None:
        """Wait for what runs, and let go of the threads."""
        await self._threads.close()


def concurrent_searches(config: RAGConfig) -> int:
    """How many searches a process computes at a time.

    More at once than the processors can compute make each slower and none sooner: they take the interpreter's lock and
    the caches from each other, and who came first is no longer served first.
    """
    most = config.server.concurrent_searches
    if most is None:
        enhance = config.retrieval.enhance
        waits = enhance.multi_query > 0 or enhance.hyde or not is_of_this_machine(config.embedding.provider)
        waits = waits or config.reranking.provider not in {"none", "local"}
        most = _WAITING_SEARCHES if waits else max(_FEWEST_SEARCHES, 2 * (os.cpu_count() or 1))
    return most


# A client that goes away ends the work that is done for it, also where the answer would be sent whole.


T = TypeVar("T")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What some work gives, which is cancelled when the client closes its connection.

    Args:
        request: Its body has been read.
        work: Ends soon when it is cancelled.

    Raises:
        ClientDisconnect: Nobody waits for it any more.
    """
    doing, left = asyncio.current_task(), False
    assert doing is not None, "requests are answered in tasks"

    async def watch() -> None:
        nonlocal left
        while (await request.receive())["type"] != "http.disconnect":
            continue
        left = True
        doing.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        return await work
    except BaseException as exc:
        # Others may have cancelled it too, for instance a timeout.
        if left and not doing.uncancel() and isinstance(exc, asyncio.CancelledError):
            raise ClientDisconnect from None
        raise
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await watching
