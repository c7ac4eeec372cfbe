"""Watches searches: counts what the caches answer, and has a sample measured, out of the searches' way."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.embedding.cached import CacheCounts
from recollect.errors import StoreError, UsageError
from recollect.model import Scope
from recollect.model.search_health import HitCounts, SearchHealth
from recollect.retrieval.probe import Sample, sample_of

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import CandidateRequest, Candidates
    from recollect.retrieval.probe import RecallProbe
    from recollect.store.search_health import SearchHealthRepository

logger = logging.getLogger(__name__)

#: Counts are written at most this often, and when the watch ends.
FLUSH_SECONDS = 5.0

#: Probes in a minute at most.
PROBES_PER_MINUTE = 6.0

# After a probe, so many times as long as it took passes before the next one: a fiftieth of one processor at most.
_REST = 50

# What could not be written is tried again after this.
_RETRY_SECONDS = 60.0

# Whoever ends the watch does not wait longer than this for a probe under way, and for the last write.
_PROBE_SECONDS = 0.2
_CLOSE_SECONDS = 1.0

_NICENESS = 10

_NO_COUNTS = CacheCounts(0, 0)

# The tenant and the collection.
_Key = tuple[int, int]


@dataclass(slots=True)
class _Tally:
    """What happened in one collection since the last write."""

    result_hits: int = 0
    result_misses: int = 0
    embedding_hits: int = 0
    embedding_misses: int = 0
    probed: SearchHealth = field(default_factory=SearchHealth)

    def health(self) -> SearchHealth:
        return self.probed + SearchHealth(
            result_cache=HitCounts(hits=self.result_hits, misses=self.result_misses),
            query_embedding_cache=HitCounts(hits=self.embedding_hits, misses=self.embedding_misses),
        )


class SearchMonitor:
    """Watches searches. Safe to share between threads; costs a search microseconds, and never fails one.

    One background thread measures and writes. It starts with the first search.

    Args:
        repository: Where counts go.
        probe: Repeats searches exactly.
        probe_rate: The share of approximate searches that are repeated, 0 to 1; 0 repeats none. One that comes while
            another is repeated, or too soon after it, is not.
        take_query_counts: Gives hits and misses of the cache of query embeddings, in the calling thread and since it
            was last asked there.
        probes_per_minute: At most so many.
        flush_seconds: Counts are written at most this often.
        clock: Seconds that never go back.
        chance: Gives numbers from 0 to below 1; a search is repeated where one is below ``probe_rate``.

    Raises:
        UsageError: ``probe_rate`` is out of range.
    """

    def __init__(
        self,
        repository: SearchHealthRepository,
        probe: RecallProbe,
        *,
        probe_rate: float,
        take_query_counts: Callable[[], CacheCounts] = lambda: _NO_COUNTS,
        probes_per_minute: float = PROBES_PER_MINUTE,
        flush_seconds: float = FLUSH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not 0 <= probe_rate <= 1:
            raise UsageError(f"probe_rate must lie between 0 and 1, not {probe_rate!r}")
        self._repository = repository
        self._probe = probe
        self._probe_rate = probe_rate
        self._take_query_counts = take_query_counts
        self._least_gap = 60.0 / probes_per_minute
        self._flush_seconds = flush_seconds
        self._clock = clock
        self._chance = chance
        self._thread: threading.Thread | None = None
        # Guards everything below.
        self._changed = threading.Condition()
        self._tallies: dict[_Key, _Tally] = {}
        self._flush_at = 0.0
        self._sample: Sample | None = None
        self._probing = False
        self._next_probe = 0.0
        self._closing = False

    def replied(self, scope: Scope, collection: Collection, *, cached: bool) -> None:
        """A search that asked the cache of replies has its reply: from there, or computed."""
        with self._changed:
            tally = self._tally((scope.tenant_id, collection.collection_id))
            if cached:
                tally.result_hits += 1
            else:
                tally.result_misses += 1

    def searched(self, scope: Scope, request: CandidateRequest, found: Candidates) -> None:
        """The candidates of a search are found, in the calling thread."""
        queries = self._take_query_counts()
        if queries.hits or queries.misses:
            with self._changed:
                tally = self._tally((scope.tenant_id, request.collection.collection_id))
                tally.embedding_hits += queries.hits
                tally.embedding_misses += queries.misses
        if found.exact or self._probe_rate == 0 or self._chance() >= self._probe_rate:
            return
        with self._changed:
            if self._sample is None and not self._probing and self._clock() >= self._next_probe:
                self._sample = sample_of(scope, request, found)
                self._work()

    def close(self) -> None:
        """End the watch and write what was counted; idempotent.

        A probe under way is given up. A write that takes long is not waited for, and its counts are lost.
        """
        with self._changed:
            self._closing = True
            self._sample = None
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            if self._probing:
                thread.join(_PROBE_SECONDS)
                self._probe.cancel()
            thread.join(_CLOSE_SECONDS)

    # With the condition held

    def _tally(self, key: _Key) -> _Tally:
        tally = self._tallies.get(key)
        if tally is None:
            if not self._tallies:
                self._flush_at = self._clock() + self._flush_seconds
            tally = self._tallies[key] = _Tally()
            self._work()
        return tally

    def _work(self) -> None:
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name="recollect-search-health", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _wait(self) -> Sample | None:
        """Returns once there is something to do: a sample to measure, counts to write, or an end to make."""
        while not self._closing and self._sample is None:
            wait = self._flush_at - self._clock() if self._tallies else None
            if wait is not None and wait <= 0:
                break
            self._changed.wait(wait)
        sample, self._sample = self._sample, None
        self._probing = sample is not None
        return sample

    # In the background thread

    def _run(self) -> None:
        _lower_priority()
        while True:
            with self._changed:
                sample = self._wait()
            if sample is not None:
                self._measure(sample)
            with self._changed:
                closing = self._closing
                due = bool(self._tallies) and (closing or self._clock() >= self._flush_at)
            if due:
                self._flush()
            if closing:
                return

    def _measure(self, sample: Sample) -> None:
        started = self._clock()
        measured: SearchHealth | None = None
        try:
            measured = self._probe.measure(sample)
        except StoreError as exc:
            logger.info("A search could not be repeated exactly, so its recall is not known: %s", exc)
        except Exception:  # a measurement must not end the thread that writes the counts
            logger.warning("Measuring the recall of searches failed, and stops.", exc_info=True)
            self._probe_rate = 0.0
        now = self._clock()
        with self._changed:
            self._probing = False
            self._next_probe = now + max(self._least_gap, _REST * (now - started))
            if measured is not None:
                tally = self._tally((sample.scope.tenant_id, sample.request.collection.collection_id))
                tally.probed = tally.probed + measured

    def _flush(self) -> None:
        with self._changed:
            tallies, self._tallies = self._tallies, {}
        for key in list(tallies):
            tenant_id, collection_id = key
            try:
                self._repository.add(Scope(tenant_id=tenant_id), collection_id, tallies[key].health())
            except StoreError as exc:
                logger.info("What the caches answered could not be written, it is tried again later: %s", exc)
                self._put_back(tallies)
                return
            del tallies[key]

    def _put_back(self, tallies: dict[_Key, _Tally]) -> None:
        with self._changed:
            for key, old in tallies.items():
                tally = self._tally(key)
                tally.result_hits += old.result_hits
                tally.result_misses += old.result_misses
                tally.embedding_hits += old.embedding_hits
                tally.embedding_misses += old.embedding_misses
                tally.probed = tally.probed + old.probed
            self._flush_at = self._clock() + _RETRY_SECONDS


def _lower_priority() -> None:
    # Linux gives threads a priority of their own; elsewhere this would slow the whole process down.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
