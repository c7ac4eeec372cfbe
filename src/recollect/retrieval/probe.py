"""How much of the exact result approximate searches find: now and then one is repeated exactly."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from recollect.model.search_health import SearchHealth
from recollect.retrieval.candidates import CandidateRequest, Stopwatch
from recollect.retrieval.enhance.plan import QueryPlan, query_vector
from recollect.retrieval.lexical import SCANNED_COLLECTION_CHUNKS
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.collections import CollectionRepository
from recollect.store.search import SearchRepository
from recollect.store.search_rows import RowSelection

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import Candidates, CandidateSource
    from recollect.store.database import Database
    from recollect.store.store import Store

#: Results that are compared.
RECALL_AT = 10

#: An exact search is given up where one of its statements takes longer.
PROBE_SECONDS = 15

#: `check_recall` passes over collections that were measured within so many seconds, by searches or by itself.
FRESH_SECONDS = 3600.0

# By words so many candidates are read, and more where they do not prove the first ten.
_LEXICAL_CANDIDATES = 100

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
        """The first results of an approximate index; None: every vector was compared, or none."""
        return None if self.found.paths.get("dense", "exact") == "exact" else self.found.dense[: self.at]

    @property
    def lexical(self) -> Sequence[Scored] | None:
        """The first results by words, found without proof; None: they are proven, or were not looked for."""
        proven = self.found.paths.get("lexical", "exact") in {"exact", "no terms"}
        return None if proven else self.found.lexical[: self.at]

    @property
    def exact(self) -> bool:
        """Whether there is nothing to measure."""
        return self.found.exact or (self.dense is None and self.lexical is None)


def measure(database: Database, sample: Sample) -> SearchHealth | None:
    """Repeat a search exactly, and return the recall of each way that was not exact.

    None where nothing can be said: the collection has changed since the search, there was nothing to find, or even the
    exhaustive search could not prove its result.

    Args:
        database: The store's connections; none of them is used, so that no search waits for one.
        sample: The search.

    Raises:
        StoreError: The search was refused, failed or took too long.
    """
    settings = {"statement_timeout": f"{PROBE_SECONDS}s", "application_name": "recollect probe"}
    with closing(database.separate(max_connections=1, settings=settings)) as aside:
        repository = SearchRepository(aside)
        dense = recall(sample.dense, _dense(repository, sample), at=sample.at)
        lexical = recall(sample.lexical, _lexical(repository, sample), at=sample.at)
        # Read last: what was compared is then one state of the collection, and the one that was searched.
        searched = sample.request.collection
        unchanged = CollectionRepository(aside).find(sample.scope, searched.name) == searched
    if not unchanged or (dense is None and lexical is None):
        return None
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
