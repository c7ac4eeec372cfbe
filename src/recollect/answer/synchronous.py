"""An asynchronous stream for callers that are not asynchronous, also where an event loop is running already."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from recollect.interruption import Interrupted, stoppable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

T = TypeVar("T")

# Items that wait to be taken; whoever reads slowly makes the stream wait, not the memory grow.
_AHEAD = 16


@dataclass(frozen=True, slots=True)
class _Item(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


def iterate(stream: AsyncIterator[T], *, in_thread: bool = True) -> Iterator[T]:
    """The items of an asynchronous stream, one by one, as they come.

    The stream runs in an event loop of its own, in a thread of its own, so that a loop in the calling thread (a
    notebook's) does not matter. It is no further ahead than a few items: where nobody takes them, it waits. An iterator
    that is dropped half-way cancels the stream.

    Args:
        stream: Used by nobody else.
        in_thread: False for a stream that never waits: it is driven in the calling thread, without any loop.

    Raises:
        Exception: Whatever the stream raises.
    """
    return _in_thread(stream) if in_thread else _driven(stream)


def _driven(stream: AsyncIterator[T]) -> Iterator[T]:
    while True:
        step = stream.__anext__()
        try:
            step.__await__().__next__()
        except StopIteration as done:
            yield done.value
        except StopAsyncIteration:
            return
        else:
            raise RuntimeError("The stream waits for something; iterate it with in_thread=True.")


def _in_thread(stream: AsyncIterator[T]) -> Iterator[T]:
    items: queue.Queue[_Item[T] | _End] = queue.Queue()
    loop = asyncio.new_event_loop()
    room = asyncio.Semaphore(_AHEAD)

    async def pump() -> None:
        try:
            async for value in stream:
                await room.acquire()
                items.put(_Item(value))
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def run() -> None:
        error: BaseException | None = None
        try:
            loop.run_until_complete(task)
        except BaseException as exc:  # noqa: BLE001  # handed to the consumer, who raises it
            error = exc
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            items.put(_End(error))

    task = loop.create_task(pump())
    thread = threading.Thread(target=run, name="recollect-stream", daemon=True)
    thread.start()
    try:
        while True:
            with stoppable(lambda: items.put(_End(Interrupted()))):
                item = items.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(room.release)
            yield item.value
    finally:
        # A loop that has closed by itself refuses calls: then there is nothing left to cancel.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
