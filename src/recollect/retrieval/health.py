"""Watches searches: counts what the caches answer, and has a sample measured, out of the searches' way."""

from __future__ import annotations

import logging
import math
import random
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from recollect.buffered_log import BufferedLog
from recollect.embedding.cached import CacheCounts
from recollect.errors import StoreError, UsageError
from recollect.interruption import Interrupted, Interruption, current
from recollect.model.search_health import HitCounts, SearchHealth
from recollect.retrieval.probe import Sample

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import CandidateRequest, Candidates
    from recollect.store.search_health import SearchHealthRepository

logger = logging.getLogger(__name__)

#: Counts are written this often, and when the watch ends.
FLUSH_SECONDS = 5.0

#: So many seconds lie between two probes at least.
PROBE_GAP_SECONDS = 10.0

# After a probe, so many times as long as it took passes before the next one: a fiftieth of one processor at most.
_REST = 50

# The collection, and what happened in it.
_Entry: TypeAlias = "tuple[int, SearchHealth | Sample]"

_KEPT = SearchHealth(result_cache=HitCounts(hits=1))
_MADE = SearchHealth(result_cache=HitCounts(misses=1))


class SearchMonitor:
    """Watches searches. Safe to share between threads; costs a search microseconds, and never fails one.

    Args:
        repository: Where counts go.
        probe: Repeats a search exactly and returns its recall; None: nothing can be said.
        probe_rate: The share of approximate searches that are repeated, 0 to 1; 0 repeats none. One that comes while
            another is repeated, or too soon after it, is not.
        take_query_counts: Gives hits and misses of the cache of query embeddings, in the calling thread and since it
            was last asked there.
        flush_seconds: Counts are written, and searches repeated, this often.
        clock: Seconds that never go back.
        chance: Gives numbers from 0 to below 1; a search is repeated where one is below ``probe_rate``.

    Raises:
        UsageError: ``probe_rate`` is out of range.
    """

    def __init__(
        self,
        repository: SearchHealthRepository,
        probe: Callable[[Sample], SearchHealth | None],
        *,
        probe_rate: float,
        take_query_counts: Callable[[], CacheCounts] = lambda: CacheCounts(0, 0),
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
        self._clock = clock
        self._chance = chance
        self._next_probe = 0.0
        self._closed = False
        self._end = Interruption()
        self._log: BufferedLog[_Entry] = BufferedLog(
            self._write,
            name="search-counts",
            flush_seconds=flush_seconds,
            batch=100_000,
            keeps=True,
            level=logging.INFO,
        )

    def replied(self, scope: Scope, collection: Collection, *, cached: bool) -> None:
        """A search that asked the cache of replies has its reply: from there, or computed."""
        self._add(scope, collection, _KEPT if cached else _MADE)

    def searched(self, scope: Scope, request: CandidateRequest, found: Candidates) -> None:
        """The candidates of a search are found, in the calling thread."""
        queries = self._take_query_counts()
        if queries.hits or queries.misses:
            counts = HitCounts(hits=queries.hits, misses=queries.misses)
            self._add(scope, request.collection, SearchHealth(query_embedding_cache=counts))
        if found.exact or self._chance() >= self._probe_rate or self._clock() < self._next_probe:
            return
        sample = Sample(scope=scope, request=request, found=found)
        if not sample.exact:
            # Until it is measured. Of two threads that come at once both may be taken, which does no harm.
            self._next_probe = math.inf
            self._add(scope, request.collection, sample)

    def close(self) -> None:
        """End the watch and write what was counted; idempotent. A probe under way is given up."""
        self._closed = True
        self._end.interrupt()
        self._log.close()

    def _add(self, scope: Scope, collection: Collection, happened: SearchHealth | Sample) -> None:
        if not self._closed:
            self._log.add(scope.tenant_id, (collection.collection_id, happened))

    def _write(self, scope: Scope, entries: list[_Entry]) -> None:
        added: defaultdict[int, SearchHealth] = defaultdict(SearchHealth)
        for number, happened in entries:
            added[number] += self._measured(happened) if isinstance(happened, Sample) else happened
        # Nothing is known of a search that could not be measured.
        self._repository.add(scope, {number: one for number, one in added.items() if one != SearchHealth()})

    def _measured(self, sample: Sample) -> SearchHealth:
        started = self._clock()
        running = current.set(self._end)
        try:
            with suppress(Interrupted):
                self._end.check()
                return self._probe(sample) or SearchHealth()
        except StoreError as exc:
            logger.info("A search could not be repeated exactly, so its recall is not known: %s", exc)
        except Exception:  # a measurement must not cost the counts
            logger.warning("Measuring the recall of searches failed, and stops.", exc_info=True)
            self._probe_rate = 0.0
        finally:
            current.reset(running)
            now = self._clock()
            self._next_probe = now + max(PROBE_GAP_SECONDS, _REST * (now - started))
        return SearchHealth()
