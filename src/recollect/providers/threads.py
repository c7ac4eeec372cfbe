"""What can only be waited for in a thread, as an asynchronous iterator."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    value: T


async def items_of_thread(read: Callable[[], Iterator[T]], *, stop: Callable[[], None]) -> AsyncIterator[T]:
    """Items that a thread reads, as they come.

    Args:
        read: Iterated over in a thread of its own, to its end or until nobody wants more.
        stop: Called when nobody wants more: it makes a `read` that waits give up. Safe to call at any time.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[_Item[T] | BaseException | None] = asyncio.Queue()
    unwanted = threading.Event()

    def hand_over(item: _Item[T] | BaseException | None) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, item)
        except RuntimeError:  # the loop is closed
            unwanted.set()

    def run() -> None:
        try:
            for value in read():
                hand_over(_Item(value))
                if unwanted.is_set():
                    return
        except BaseException as exc:  # noqa: BLE001 - raised where the items are awaited
            hand_over(exc)
        else:
            hand_over(None)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="recollect-stream", daemon=True).start()
    try:
        while (item := await queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item.value
    finally:
        unwanted.set()
        stop()
