"""How much of the exact result approximate searches find: now and then one is repeated exactly."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.retrieval.arms import analyzer_of
from recollect.retrieval.lexical import LexicalArm
from recollect.store.collections import CollectionRepository
from recollect.store.search import SearchRepository
from recollect.store.search_health import ArmRecall, Aside, SearchHealth

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model import Scope
    from recollect.retrieval.arms import ArmRequest, ArmResults
    from recollect.retrieval.enhance.plan import QueryPlan
    from recollect.store.collections import Collection
    from recollect.store.database import Database
    from recollect.store.past import PastParts

#: Results that are compared.
RECALL_AT = 10

# The lexical arm reads so many candidates, and more where they do not prove the first ten.
_LEXICAL_CANDIDATES = 100

# Scores of one chunk differ by rounding, where another path computed them.
_ROUNDING = 1e-5

Scored = tuple[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a search asked, and what its arms found first.

    Attributes:
        scope: Whose search it was.
        place: The collection, as the search saw it.
        plan: The query and what was added to it.
        version_ids: The versions that pass the filter, None for all.
        past: The parts of the history that were looked through; None in the present.
        at: How many results are compared.
        embedding: The query's vector, where the dense arm ran.
        dense: What that arm found by its index; None where it was exact, or did not run.
        lexical: What that arm found without proof; None where it was exact, or did not run.
    """

    scope: Scope
    place: Collection
    plan: QueryPlan
    version_ids: list[int] | None
    past: PastParts | None
    at: int
    embedding: Vectors | None
    dense: Sequence[Scored] | None
    lexical: Sequence[Scored] | None


def sample_of(scope: Scope, request: ArmRequest, arms: ArmResults) -> Sample | None:
    """What a search leaves behind to be compared; None where all of it was exact."""
    at = min(RECALL_AT, request.limit)
    dense = arms.dense[:at] if arms.paths.get("dense", "exact") != "exact" else None
    proven = arms.paths.get("lexical", "exact") in {"exact", "no terms"}
    if arms.exact or (dense is None and proven):
        return None
    return Sample(
        scope=scope,
        place=request.place,
        plan=request.plan,
        version_ids=request.version_ids,
        past=request.past,
        at=at,
        embedding=arms.embedding,
        dense=dense,
        lexical=None if proven else arms.lexical[:at],
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
        """The recall of each arm that was not exact; None where nothing can be said.

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
        unchanged = CollectionRepository(database).find(sample.scope, sample.place.name) == sample.place
        if not unchanged or (dense is None and lexical is None):
            return None
        return SearchHealth(probes=1, dense=_arm(dense), lexical=_arm(lexical))

    def _dense(self, repository: SearchRepository, sample: Sample) -> Sequence[Scored] | None:
        if self._cancelled or sample.dense is None or sample.embedding is None:
            return None
        return repository.dense(
            sample.scope,
            sample.place,
            sample.embedding,
            limit=sample.at,
            version_ids=sample.version_ids,
            indexed=False,
        )

    def _lexical(self, repository: SearchRepository, sample: Sample) -> Sequence[Scored] | None:
        if self._cancelled or sample.lexical is None:
            return None
        # No term is too frequent for this budget: every chunk that holds any of them is scored.
        hits = LexicalArm(repository, budget=sys.maxsize).search(
            sample.scope,
            sample.place,
            analyzer_of(sample.place.language),
            sample.plan.query,
            top_k=sample.at,
            limit=_LEXICAL_CANDIDATES,
            version_ids=sample.version_ids,
            plan=sample.plan,
            past=sample.past,
        )
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


def _arm(measured: float | None) -> ArmRecall:
    return ArmRecall() if measured is None else ArmRecall(probes=1, total=measured, worst=measured)
