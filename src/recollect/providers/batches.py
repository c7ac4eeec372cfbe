"""Texts in batches that a provider takes, several of them under way at once."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from recollect.providers.connection import Connection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[T]):
    place: int
    result: T | None = None
    error: BaseException | None = None


# A token is rarely shorter than this many bytes; where it is, the provider says so.
_BYTES_A_TOKEN = 3

# Whoever waits looks up so often: a signal that comes just before a wait begins is noticed only after it.
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """What a provider takes in one request.

    Attributes:
        texts: At most.
        tokens: Of all texts together; None: no limit is known.
        text_tokens: Of one text; what is longer is cut. None: the provider cuts it.
    """

    texts: int
    tokens: int | None = None
    text_tokens: int | None = None

    def within(self, connection: Connection) -> BatchLimits:
        """These, or lower ones where the configuration has such."""
        sizes = [self.texts, connection.batch_size]
        tokens = [self.tokens, connection.batch_tokens]
        return BatchLimits(
            texts=min(size for size in sizes if size is not None),
            tokens=min((count for count in tokens if count is not None), default=None),
            text_tokens=self.text_tokens,
        )


def batches(texts: Sequence[str], limits: BatchLimits) -> list[range]:
    """The texts' places in as few batches as the limits allow, in their order.

    A text that is too long for any batch has one of its own.

    Example:
        >>> batches(["a", "b", "c"], BatchLimits(texts=2))
        [range(0, 2), range(2, 3)]
    """
    found: list[range] = []
    start = tokens = 0
    for place, text in enumerate(texts):
        own = most_tokens(text)
        full = limits.tokens is not None and tokens + own > limits.tokens
        if place > start and (full or place - start == limits.texts):
            found.append(range(start, place))
            start, tokens = place, 0
        tokens += own
    if start < len(texts):
        found.append(range(start, len(texts)))
    return found


def most_tokens(text: str) -> int:
    """More tokens than a text is likely to take, for limits; `llm.base.estimate_tokens` is nearer the truth."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def cut(text: str, tokens: int | None) -> str:
    """The beginning of a text that surely has no more than so many tokens."""
    if tokens is None or most_tokens(text) <= tokens:
        return text
    return text.encode("utf-8", "surrogatepass")[: tokens * _BYTES_A_TOKEN].decode("utf-8", "ignore")


def in_parallel(calls: Sequence[Callable[[threading.Event], T]], *, at_once: int) -> list[T]:
    """The results of calls, in their order; the first failure is raised, and what has not begun is not begun.

    Whoever is interrupted while waiting does not wait for what is under way: neither here nor at the program's end.

    Args:
        calls: Each is given an event that is set when its result is not wanted any more.
        at_once: How many are under way together.
    """
    cancelled = threading.Event()
    if len(calls) <= 1 or at_once == 1:
        return [call(cancelled) for call in calls]
    waiting = iter(enumerate(calls))
    lock = threading.Lock()
    outcomes: queue.SimpleQueue[_Outcome[T]] = queue.SimpleQueue()

    def work() -> None:
        while not cancelled.is_set():
            with lock:
                place, call = next(waiting, (-1, None))
            if call is None:
                return
            try:
                outcomes.put(_Outcome(place, result=call(cancelled)))
            except BaseException as exc:  # noqa: BLE001 - raised in the thread that waits
                cancelled.set()
                outcomes.put(_Outcome(place, error=exc))

    for _ in range(min(at_once, len(calls))):
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(work,), name="recollect-batch", daemon=True).start()
    results: dict[int, T] = {}
    try:
        while len(results) < len(calls):
            try:
                outcome = outcomes.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if outcome.error is not None:
                raise outcome.error
            results[outcome.place] = outcome.result  # type: ignore[assignment]
    finally:
        cancelled.set()
    return [results[place] for place in range(len(calls))]
