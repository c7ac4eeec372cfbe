"""How much of the exact result approximate searches find: now and then one is repeated exactly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.model.search_health import RetrieverRecall, SearchHealth
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.collections import CollectionRepository
from recollect.store.search import SearchRepository
from recollect.store.search_health import Aside
from recollect.store.search_rows import RowSelection

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model import Scope
    from recollect.retrieval.candidates import CandidateRequest, Candidates
    from recollect.store.database import Database

#: Results that are compared.
RECALL_AT = 10

# By words so many candidates are read, and more where they do not prove the first ten.
_LEXICAL_CANDIDATES = 100

# Scores of one chunk differ by rounding, where another path computed them.
_ROUNDING = 1e-5

Scored = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a search asked, and what it found first.

    Attributes:
        scope: Whose search it was.
        request: What was asked of the collection, as the search saw it.
        at: How many results are compared.
        embedding: The query's vector, where there was one.
        dense: What was found through an approximate index; None where every chunk was compared, or none.
        lexical: What was found by words without proof; None where it is proven, or was not looked for.
    """

    scope: Scope
    request: CandidateRequest
    at: int
    embedding: Vectors | None
    dense: Sequence[Scored] | None
    lexical: Sequence[Scored] | None


def sample_of(scope: Scope, request: CandidateRequest, found: Candidates) -> Sample | None:
    """What a search leaves behind to be compared; None where all of it was exact."""
    at = min(RECALL_AT, request.limit)
    dense = found.dense[:at] if found.paths.get("dense", "exact") != "exact" else None
    proven = found.paths.get("lexical", "exact") in {"exact", "no terms"}
    if found.exact or (dense is None and proven):
        return None
    return Sample(
        scope=scope,
        request=request,
        at=at,
        embedding=found.embedding,
        dense=dense,
        lexical=None if proven else found.lexical[:at],
    )


class RecallProbe:
    """Repeats searches exactly, over a connection of its own.

    Args:
        database: The store's connections; none of them is used, so that no search waits for one.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._aside: Aside | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """Give up the measurement under way, from another thread, and all that would come."""
        self._cancelled = True
        aside = self._aside
        if aside is not None:
            aside.cancel()

    def measure(self, sample: Sample) -> SearchHealth | None:
        """The recall of each way that was not exact; None where nothing can be said.

        That is so where the collection has changed since the search, where there was nothing to find, where even the
        exhaustive search could not prove its result, or where it was cancelled.

        Raises:
            StoreError: The search was refused, failed or took too long.
        """
        with Aside(self._database) as aside:
            self._aside = aside
            try:
                return self._compare(sample, aside.database)
            finally:
                self._aside = None

    def _compare(self, sample: Sample, database: Database) -> SearchHealth | None:
        repository = SearchRepository(database)
        dense = recall(sample.dense, self._dense(repository, sample), at=sample.at)
        lexical = recall(sample.lexical, self._lexical(repository, sample), at=sample.at)
        # Read last: what was compared is then one state of the collection, and the one that was searched.
        searched = sample.request.collection
        unchanged = CollectionRepository(database).find(sample.scope, searched.name) == searched
        if not unchanged or (dense is None and lexical is None):
            return None
        return SearchHealth(probes=1, dense=_recall_of(dense), lexical=_recall_of(lexical))

    def _dense(self, repository: SearchRepository, sample: Sample) -> Sequence[Scored] | None:
        if self._cancelled or sample.dense is None or sample.embedding is None:
            return None
        rows = RowSelection(sample.request.version_ids)
        return repository.dense(sample.scope, sample.request.collection, sample.embedding, limit=sample.at, rows=rows)

    def _lexical(self, repository: SearchRepository, sample: Sample) -> Sequence[Scored] | None:
        if self._cancelled or sample.lexical is None:
            return None
        # No term is too frequent for this budget: every chunk that holds any of them is scored.
        request = replace(sample.request, top_k=sample.at, limit=_LEXICAL_CANDIDATES)
        hits = SqlCandidates(repository, lexical_budget=sys.maxsize).proven(sample.scope, request)
        return hits.scores if hits.exact else None


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


def _recall_of(measured: float | None) -> RetrieverRecall:
    return RetrieverRecall() if measured is None else RetrieverRecall(probes=1, total=measured, worst=measured)
