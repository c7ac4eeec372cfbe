"""Stages that overlap: reading ahead within bounds, and writing one batch while the next is embedded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from recollect import interruption

if TYPE_CHECKING:
    from recollect.ingest.prepare import CutDocument

P = ParamSpec("P")
Item = TypeVar("Item")
Made = TypeVar("Made")
Embedded = TypeVar("Embedded")

# A batch is embedded and stored once it is this large: enough to sort texts by length, little enough to be lost.
BATCH_CHUNKS = 256
BATCH_DOCUMENTS = 64

# How far ahead documents may be read: enough for a full batch, little enough to bound the memory.
DOCUMENTS_AHEAD = 2 * BATCH_DOCUMENTS
BYTES_AHEAD = 16 * 1024 * 1024

#: Batches that are embedded at a time.
EMBEDDED_AT_ONCE = 2


class _Workers(ThreadPoolExecutor):
    """Threads with the context variables of whoever gives them work: what interrupts that one, interrupts them."""

    def submit(self, fn: Callable[P, Made], /, *args: P.args, **kwargs: P.kwargs) -> Future[Made]:
        return super().submit(copy_context().run, partial(fn, *args, **kwargs))


@contextmanager
def threads(count: int, name: str, *, on_error: Callable[[], None] | None = None) -> Iterator[ThreadPoolExecutor]:
    """Worker threads; leaving waits for what they are at, but not for what they have not begun.

    Args:
        count: How many.
        name: What they are called after.
        on_error: Called when they are left by an error or an interrupt, before that wait.
    """
    workers = _Workers(count, thread_name_prefix=f"recollect-{name}")
    try:
        yield workers
    except BaseException:
        if on_error is not None:
            on_error()
        raise
    finally:
        workers.shutdown(wait=True, cancel_futures=True)


def ahead(
    workers: ThreadPoolExecutor,
    make: Callable[[Item], Made],
    items: Iterable[Item],
    *,
    size: Callable[[Item], int],
    max_items: int,
    max_size: int,
) -> Iterator[Made]:
    """``map(make, items)`` in order, made ahead by ``workers``.

    Args:
        workers: Threads that call ``make``.
        make: Called once an item.
        items: Any number of them; taken only as far ahead as the bounds allow.
        size: What an item weighs.
        max_items: How many may be made ahead.
        max_size: What they may weigh together; a single item may weigh more.
    """
    waiting: deque[tuple[int, Future[Made]]] = deque()
    in_flight = 0
    for item in items:
        interruption.check()
        weight = size(item)
        while waiting and (len(waiting) >= max_items or in_flight + weight > max_size):
            done, future = waiting.popleft()
            in_flight -= done
            yield future.result()
        waiting.append((weight, workers.submit(make, item)))
        in_flight += weight
    while waiting:
        interruption.check()
        yield waiting.popleft()[1].result()


def batches(
    items: Iterable[Item], *, cut: Callable[[Item], CutDocument], source_id: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Items in batches that are embedded together and stored in one transaction.

    A batch holds documents of one source, each identity once (a statement cannot give one document two versions),
    and ends once it is large enough.
    """
    batch: list[Item] = []
    taken: set[tuple[str | None, bool]] = set()
    chunks = 0
    for item in items:
        document = cut(item)
        own = [document, *document.attached]
        named = {(one.document.id or one.document.source, one.document.id is not None) for one in own}
        full = chunks >= BATCH_CHUNKS or len(batch) >= BATCH_DOCUMENTS
        if batch and (full or not named.isdisjoint(taken) or source_id(item) != source_id(batch[0])):
            yield batch
            batch, taken, chunks = [], set(), 0
        batch.append(item)
        taken |= named
        chunks += sum(len(one.chunks) for one in own)
    if batch:
        yield batch


def embed_and_write(
    batches: Iterable[Item], embed: Callable[[Item], Embedded], write: Callable[[Item, Embedded], None]
) -> None:
    """Embed batches while the ones before them are written in another thread.

    Two batches are embedded at a time, so that the processors have work while one of them asks the cache or waits for
    its last text. Batches are written in order, one at a time; a failure of ``write`` surfaces at the next batch or at
    the end.
    """
    writing: Future[None] | None = None

    def embedded(batch: Item) -> tuple[Item, Embedded]:
        return batch, embed(batch)

    with threads(1, "writer") as writer, threads(EMBEDDED_AT_ONCE, "embed-batch") as embedders:
        made = ahead(
            embedders, embedded, batches, size=lambda _: 1, max_items=EMBEDDED_AT_ONCE, max_size=EMBEDDED_AT_ONCE
        )
        for batch, vectors in made:
            if writing is not None:
                writing.result()
            writing = writer.submit(write, batch, vectors)
        if writing is not None:
            writing.result()


def windows(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of ``size``, the last one shorter."""
    iterator = iter(items)
    while window := list(islice(iterator, size)):
        yield window
