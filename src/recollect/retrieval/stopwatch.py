"""Milliseconds by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from recollect.interruption import check


class Stopwatch:
    """Times the stages of one search; stages may overlap, in several threads."""

    def __init__(self) -> None:
        self._timings_ms: dict[str, float] = {}
        self._start = time.perf_counter()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens inside; a stage that comes twice is added up.

        Raises:
            Interrupted: Nobody waits for the search any more.
        """
        check()
        start = time.perf_counter()
        yield
        elapsed_ms = (time.perf_counter() - start) * 1000
        self._timings_ms[name] = self._timings_ms.get(name, 0.0) + elapsed_ms

    def timings_ms(self) -> Mapping[str, float]:
        """Every stage so far, and ``total`` since the beginning."""
        return {**self._timings_ms, "total": (time.perf_counter() - self._start) * 1000}
