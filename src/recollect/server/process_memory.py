"""How memory is handed out and taken back in a process of many threads that runs for months."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# <malloc.h>
_M_ARENA_MAX = -8
_ARENAS = 2

# Objects that a young collection waits for, and how many of each kind the next older one does. By default it comes
# several times in every search, and looks each time at what the searches that run are just using.
_THRESHOLDS = (10_000, 20, 10)


def keep_few_arenas() -> bool:
    """Have all threads share two heaps of the C library, where it would give every thread one of its own.

    What libraries in C allocate (models, the driver, compression) is small beside what is kept in half-empty heaps: a
    server of 70 threads under half an hour of mixed load holds 23 MiB less, and is as large as it gets after twenty
    minutes instead of forty. Python's own objects do not come from there. ``MALLOC_ARENA_MAX`` says otherwise, and
    other C libraries than glibc have no such heaps.

    Returns:
        Whether anything was set.
    """
    if "MALLOC_ARENA_MAX" in os.environ or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl
        return False
    return bool(mallopt(_M_ARENA_MAX, _ARENAS))


@contextmanager
def seldom_collecting() -> Iterator[Callable[[], None]]:
    """Have Python look for garbage in cycles less often, within the block.

    A server's objects are freed by their counts; what it makes in cycles is little.

    Yields:
        To be called once everything that stays is there: modules, routes, models. It is not looked through any more,
        which would stop all threads for a tenth of a second.
    """

    def settle() -> None:
        gc.collect()
        gc.freeze()

    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield settle
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
