"""A collection searched in the space that it uses and in another, on the same questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from recollect.evaluation.space_comparison import TOP, compare_cases, compare_samples, sample_of
from recollect.model import RetrievalOptions
from recollect.model.scope import Target

if TYPE_CHECKING:
    from recollect.evaluation.cases import CaseSearch, Suite
    from recollect.evaluation.space_comparison import SpaceComparison
    from recollect.model import RetrievedContext, Scope
    from recollect.model.collection import Collection
    from recollect.pipeline.standpoint import Standpoint


def compare_on_samples(at: Standpoint, count: int, used: Collection, other: Collection) -> SpaceComparison | None:
    """Compare by questions drawn from the collection's own chunks, by vectors alone; None: it has no chunks."""
    scope = at.owner()
    chunks = at.store.spaces.sample(scope, used, limit=count)
    if not chunks:
        return None
    samples = [sample_of(*chunk) for chunk in chunks]
    first, second = (partial(_nearest, at, scope, seen) for seen in (used, other))
    return compare_samples(samples, first, second, names=_names(used, other))


def compare_on_cases(at: Standpoint, suite: Suite, used: Collection, other: Collection) -> SpaceComparison:
    """Compare by test cases, searched for as people search.

    Raises:
        UsageError: No case has must-haves.
    """
    first, second = (_searching(at, seen) for seen in (used, other))
    return compare_cases(suite, first, second, names=_names(used, other))


def _names(used: Collection, other: Collection) -> tuple[str, str]:
    return used.embedding_model, other.embedding_model


def _nearest(at: Standpoint, scope: Scope, place: Collection, query: str) -> list[int]:
    vector = at.assembly.embedders.of(place).embed_query(query)
    found = at.store.search.dense(scope, place, vector, limit=TOP, indexed=place.indexed)
    return [chunk_id for chunk_id, _ in found]


def _searching(at: Standpoint, place: Collection) -> Callable[[CaseSearch], Sequence[RetrievedContext]]:
    from recollect.pipeline.searching import make_trial_searcher

    def seen(found: Collection) -> Collection:
        if found.collection_id != place.collection_id:
            return found
        changed = {
            name: getattr(place, name)
            for name in ("space_id", "embedding_model", "embedding_dimension", "embedding_spec", "indexed")
        }
        return replace(found, **changed)

    searcher = make_trial_searcher(
        at.store, at.assembly.embedders, at.config, seen=seen, rerankers=at.assembly.rerankers
    )
    scope, options = at.owner(), RetrievalOptions()

    def search(asked: CaseSearch) -> Sequence[RetrievedContext]:
        target = Target(collections=(place.name,))
        return searcher.search(replace(scope, as_of=asked.as_of), asked.query, asked.options(options), target).results

    return search
