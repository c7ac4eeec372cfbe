"""How well searches do: what caches answer is counted, and a sample is repeated exactly."""

from __future__ import annotations

import logging
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from recollect.buffered_log import BufferedLog
from recollect.embedding.cached import CacheCounts
from recollect.errors import StoreError, UsageError
from recollect.interruption import Interrupted, Interruption, current
from recollect.model.status import HitCounts, SearchHealth
from recollect.retrieval.candidates import CandidateRequest, Candidates, CandidateSource, Stopwatch
from recollect.retrieval.enhance.plan import QueryPlan, query_vector
from recollect.retrieval.lexical import SCANNED_COLLECTION_CHUNKS
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.collections import CollectionRepository
from recollect.store.search import RowSelection, SearchRepository

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.store.activity import SearchHealthRepository
    from recollect.store.database import Database
    from recollect.store.store import Store


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
        if self._chance() >= self._probe_rate or self._clock() < self._next_probe:
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


# How much of the exact result approximate searches find: now and then one is repeated exactly.


#: Results that are compared.
RECALL_AT = 10

#: An exact search is given up where one of its statements takes longer.
PROBE_SECONDS = 15

#: `check_recall` passes over collections that were measured within so many seconds, by searches or by itself.
FRESH_SECONDS = 3600.0

# By words so many candidates are read, and more where they do not prove the first ten.
_LEXICAL_CANDIDATES = 100

# Scores that differ by more are not the same, wherever they were computed.
_SAME = 1e-4

# Scores of one chunk differ by rounding, where another path computed them.
_ROUNDING = 1e-5

_QUESTIONS = 5
# As many words as people's questions have, in a row: words that belong together, as theirs do.
_WORDS = 10

Scored = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A search, and what it found.

    Attributes:
        scope: Whose search it was.
        request: What was asked of the collection, as the search saw it.
        found: The candidates.
    """

    scope: Scope
    request: CandidateRequest
    found: Candidates

    @property
    def at(self) -> int:
        """How many results are compared."""
        return min(RECALL_AT, self.request.limit)

    @property
    def dense(self) -> Sequence[Scored] | None:
        """The first results of an index, or from memory; None: the database compared every vector, or none."""
        return None if self.found.paths.get("dense", "exact") == "exact" else self.found.dense[: self.at]

    @property
    def lexical(self) -> Sequence[Scored] | None:
        """The first results by words, unproven or from memory; None: the database proved them, or had no words."""
        proven = self.found.paths.get("lexical", "exact") in {"exact", "no terms"}
        return None if proven else self.found.lexical[: self.at]

    @property
    def exact(self) -> bool:
        """Whether there is nothing to measure."""
        return self.dense is None and self.lexical is None


def measure(
    database: Database, sample: Sample, *, contradicted: Callable[[Sample], None] = lambda _: None
) -> SearchHealth | None:
    """Repeat a search exactly, and return the recall of each way that was not exact.

    None where nothing can be said: the collection has changed since the search, there was nothing to find, or even the
    exhaustive search could not prove its result.

    Args:
        database: The store's connections; none of them is used, so that no search waits for one.
        sample: The search.
        contradicted: Told of a search that found what the database does not have, or scored it otherwise.

    Raises:
        StoreError: The search was refused, failed or took too long.
    """
    settings = {"statement_timeout": f"{PROBE_SECONDS}s", "application_name": "recollect probe"}
    with closing(database.separate(max_connections=1, settings=settings)) as aside:
        repository = SearchRepository(aside)
        nearest, worded = _dense(repository, sample), _lexical(repository, sample)
        # Read last: what was compared is then one state of the collection, and the one that was searched.
        searched = sample.request.collection
        unchanged = CollectionRepository(aside).find(sample.scope, searched.name) == searched
    dense = recall(sample.dense, nearest, at=sample.at)
    lexical = recall(sample.lexical, worded, at=sample.at)
    if not unchanged or (dense is None and lexical is None):
        return None
    if _contradicts(sample.dense, nearest) or _contradicts(sample.lexical, worded):
        contradicted(sample)
    return SearchHealth(
        probes=1,
        recall_dense=dense,
        recall_dense_worst=dense,
        recall_lexical=lexical,
        recall_lexical_worst=lexical,
        dense_probes=int(dense is not None),
        lexical_probes=int(lexical is not None),
    )


def check_recall(
    store: Store,
    source: CandidateSource,
    scope: Scope,
    collection: Collection,
    embedder: Callable[[], EmbeddingProvider],
    *,
    limit: int,
) -> int:
    """Ask a collection with words of its own, where its searches are approximate and none was measured lately.

    Each question is asked once as searches do and once exactly; what it finds is added to the collection's counts.

    Args:
        store: Open.
        source: Finds candidates as searches do.
        scope: Whose the collection is; nobody in particular asks.
        collection: Which.
        embedder: Makes its model, once it is needed.
        limit: Candidates that each way contributes, as in searches.

    Returns:
        How many searches were compared.

    Raises:
        StoreError: A search was refused, failed or took too long.
        ProviderError: The embedding model failed.
    """
    if not collection.indexed and collection.chunk_count <= SCANNED_COLLECTION_CHUNKS:
        return 0
    known = store.search_health.recent(scope).get(collection.collection_id, SearchHealth())
    if known.last_probe is not None and known.last_probe >= datetime.now(UTC) - timedelta(seconds=FRESH_SECONDS):
        return 0
    compared = 0
    for passage in store.search_health.passages(scope, collection, count=_QUESTIONS):
        words = passage.split()
        start = random.randrange(max(1, len(words) - _WORDS + 1))
        plan = QueryPlan(query=" ".join(words[start : start + _WORDS]))
        vector = query_vector(plan, embedder())
        request = CandidateRequest(
            collection=collection, plan=plan, mode="hybrid", top_k=RECALL_AT, limit=limit, embedding=vector
        )
        sample = Sample(scope=scope, request=request, found=source.candidates(scope, request, Stopwatch()))
        measured = None if sample.exact else measure(store.database, sample)
        if measured is not None:
            store.search_health.add(scope, {collection.collection_id: measured})
            compared += 1
    return compared


def recall(found: Sequence[Scored] | None, exact: Sequence[Scored] | None, *, at: int) -> float | None:
    """The share of the best ``at`` results that a search found among its first ``at``.

    Results are compared by their scores, so that of several equally good ones any will do.

    Args:
        found: What was found, best first.
        exact: What there was to find, best first.
        at: How many count.

    Returns:
        0 to 1; None where there was nothing to find, or one of the two is not known.
    """
    if found is None or not exact:
        return None
    wanted = exact[:at]
    least = wanted[-1][1]
    enough = least - _ROUNDING * max(1.0, abs(least))
    good = {chunk_id for chunk_id, score in found[:at] if score >= enough}
    return min(1.0, len(good) / len(wanted))


def _contradicts(found: Sequence[Scored] | None, exact: Sequence[Scored] | None) -> bool:
    """Whether something was found with another score than it has, or that would be among the best if it were there."""
    if not found or exact is None:
        return False
    if len(found) > len(exact):
        return True
    known, least = dict(exact), min((score for _, score in exact), default=-math.inf)
    return any(
        abs(score - known[chunk_id]) > _SAME * max(1.0, abs(score))
        if chunk_id in known
        else score > least + _SAME * max(1.0, abs(least))
        for chunk_id, score in found
    )


def _dense(repository: SearchRepository, sample: Sample) -> Sequence[Scored] | None:
    embedding = sample.found.embedding
    if sample.dense is None or embedding is None:
        return None
    rows = RowSelection(sample.request.version_ids)
    return repository.dense(sample.scope, sample.request.collection, embedding, limit=sample.at, rows=rows)


def _lexical(repository: SearchRepository, sample: Sample) -> Sequence[Scored] | None:
    if sample.lexical is None:
        return None
    # No term is too frequent for this budget: every chunk that holds any of them is scored.
    request = replace(sample.request, top_k=sample.at, limit=_LEXICAL_CANDIDATES)
    hits = SqlCandidates(repository, lexical_budget=sys.maxsize).proven(sample.scope, request)
    return hits.scores if hits.exact else None
