"""Who has a place next, where places are few."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from contextvars import copy_context

import pytest

from recollect.fair_share import FairShare
from recollect.interruption import Interrupted, Interruption, current


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Asked:
    """Callers who ask for places, in the order in which they get them."""

    def __init__(self, share: FairShare) -> None:
        self._share = share
        self.had: list[tuple[int, str]] = []
        self._tasks: list[tuple[tuple[int, str], asyncio.Task[None], asyncio.Event]] = []

    async def ask(self, *callers: tuple[int, str]) -> None:
        for caller in callers:
            leave = asyncio.Event()
            self._tasks.append((caller, asyncio.create_task(self._one(caller, leave)), leave))
            await settled()

    async def _one(self, caller: tuple[int, str], leave: asyncio.Event) -> None:
        async with self._share.place(caller):
            self.had.append(caller)
            await leave.wait()

    async def leave(self, caller: tuple[int, str]) -> None:
        """The first one of a caller that has a place gives it back."""
        index = next(i for i, (who, _, _) in enumerate(self._tasks) if who == caller)
        _, task, event = self._tasks.pop(index)
        event.set()
        await task
        await settled()

    async def cancel(self) -> None:
        for _, task, _ in self._tasks:
            task.cancel()
        await asyncio.gather(*(task for _, task, _ in self._tasks), return_exceptions=True)


A, A2, B, B2, C = (1, "a"), (1, "a2"), (2, "b"), (2, "b2"), (3, "c")


def asked(most: int, spare: int, story) -> None:
    async def tell() -> None:
        callers = Asked(FairShare(most, spare=spare))
        await story(callers)
        await callers.cancel()

    asyncio.run(tell())


def test_a_caller_alone_has_every_place_but_the_spare_ones():
    async def story(callers: Asked) -> None:
        await callers.ask(*[A] * 6)
        assert callers.had == [A] * 4
        await callers.leave(A)
        assert callers.had == [A] * 5

    asked(4, 4, story)


def test_a_newcomer_does_not_wait_for_one_caller_with_many():
    async def story(callers: Asked) -> None:
        await callers.ask(*[A] * 50)
        await callers.ask(B)
        assert callers.had == [*[A] * 4, B]
        # As much as the tenant's share, and a credential of the first tenant that has nothing yet.
        await callers.ask(B, B, A2, A2)
        assert callers.had == [*[A] * 4, B, B, A2]

    asked(4, 4, story)


def test_a_place_that_becomes_free_goes_to_the_tenant_with_the_fewest():
    async def story(callers: Asked) -> None:
        await callers.ask(A, A, A, A, B, B, A2, C)
        assert callers.had == [A, A, A]
        for _ in range(3):
            await callers.leave(A)
        assert callers.had[3:] == [B, C, A]
        await callers.leave(B)
        assert callers.had[6:] == [B]
        await callers.leave(A)
        assert callers.had[7:] == [A2]

    asked(3, 0, story)


def test_there_are_never_more_than_all_places_and_who_gives_up_leaves_none_behind():
    async def story(callers: Asked) -> None:
        await callers.ask(*((n, "x") for n in range(20)))
        assert len(callers.had) == 5

    share = FairShare(3, spare=2)

    async def tell() -> None:
        callers = Asked(share)
        await story(callers)
        await callers.cancel()
        async with AsyncExitStack() as held:
            for _ in range(3):
                await asyncio.wait_for(held.enter_async_context(share.place(A)), 10)

    asyncio.run(tell())


def test_a_thread_that_waits_ends_where_nobody_waits_for_it():
    share, interruption, entered = FairShare(1), Interruption(), threading.Event()
    ends: list[str] = []

    def wait() -> None:
        entered.set()
        try:
            with share.place_in_thread(B):
                ends.append("had it")
        except Interrupted:
            ends.append("interrupted")

    context = copy_context()
    context.run(current.set, interruption)
    thread = threading.Thread(target=context.run, args=(wait,))
    with share.place_in_thread(A):
        thread.start()
        assert entered.wait(20)
        interruption.interrupt()
        thread.join(20)
    assert not thread.is_alive()
    assert ends == ["interrupted"]
    with share.place_in_thread(B):
        pass


@pytest.mark.parametrize("most", [1, 4])
def test_threads_share_places(most):
    share, at_once, lock, seen = FairShare(most), [0], threading.Lock(), []

    def work() -> None:
        for _ in range(20):
            with share.place_in_thread(A):
                with lock:
                    at_once[0] += 1
                    seen.append(at_once[0])
                with lock:
                    at_once[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert len(seen) == 160
    assert max(seen) <= most
