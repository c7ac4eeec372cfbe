"""The lexical arm: BM25 over one collection, exact wherever its own bound proves it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from recollect.model import Scope
from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer, term_frequencies
from recollect.retrieval.enhance.plan import QueryPlan, expanded_weights, expansion_terms
from recollect.retrieval.pruning import necessary_terms
from recollect.store.collections import Collection
from recollect.store.search import LexicalRow, SearchRepository

#: A query of more distinct terms is searched by its rarest ones: the others could hardly change the order.
MAX_QUERY_TERMS = 128

#: In collections up to this size every posting list is short enough to be read whole.
SMALL_COLLECTION_CHUNKS = 5_000

#: In collections up to this size scoring every chunk takes less than looking terms up.
SCANNED_COLLECTION_CHUNKS = 2_000


# Candidates are fetched again in such steps, up to so many times the limit, where the order of the stored weights does
# not prove the top k.
_WIDEN = 4
_WIDEST = 16

# The database adds up weights in single precision.
_ROUNDING = 1 + 1e-5


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one search asks of every round."""

    scope: Scope
    collection: Collection
    weights: Mapping[int, float]
    _: KW_ONLY
    top_k: int
    limit: int
    version_ids: list[int] | None
    prove: bool


@dataclass(frozen=True, slots=True)
class LexicalHits:
    """What the lexical arm found.

    Attributes:
        scores: (chunk_id, BM25 score), best first.
        weights: The query's weight of each lexeme, for scoring other chunks.
        exact: Whether the best ``top_k`` are proven to be the best of the whole collection, ties aside.
    """

    scores: list[tuple[int, float]]
    weights: Mapping[int, float]
    exact: bool

    @property
    def path(self) -> str:
        """How it was searched, in a word."""
        if not self.weights:
            return "no terms"
        return "exact" if self.exact else "approximate"


class LexicalArm:
    """Searches by words.

    Args:
        repository: Runs the statements.
        budget: Document frequency that the first round's candidates may add up to.
    """

    def __init__(self, repository: SearchRepository, *, budget: int) -> None:
        self._repository = repository
        self._budget = budget

    def search(
        self,
        scope: Scope,
        collection: Collection,
        analyzer: Analyzer,
        query: str,
        *,
        top_k: int,
        limit: int,
        version_ids: list[int] | None = None,
        plan: QueryPlan | None = None,
        prove: bool = True,
    ) -> LexicalHits:
        """The best ``limit`` chunks for a query, the words that ``plan`` adds to it included.

        Candidates come from the rarest terms first. Where the bound on what the other terms could add does not prove
        the first ``top_k`` exact, chunks that hold enough of the others to come up among them are searched too, unless
        ``prove`` is False: then the reply says that it is not proven.
        """
        terms = term_frequencies(analyzer.query_terms(query), salt=collection.collection_id)
        weights, frequencies = self._weigh(scope, collection, terms, analyzer, plan or QueryPlan(query=query))
        if not weights:
            return LexicalHits([], {}, exact=True)
        small = collection.chunk_count <= SMALL_COLLECTION_CHUNKS or version_ids is not None
        choice = bm25.choose_terms(frequencies, budget=sum(frequencies.values()) if small else self._budget)
        wanted = _Wanted(scope, collection, weights, top_k=top_k, limit=limit, version_ids=version_ids, prove=prove)
        scanned = collection.chunk_count <= SCANNED_COLLECTION_CHUNKS and version_ids is None
        found, proven = self._round(wanted, [] if scanned else [choice.chosen])
        needed = necessary_terms(choice.remaining, _bounds(choice.remaining, wanted), _kth(found, top_k))
        if needed and not prove:
            proven = False
        elif needed:
            more, proven_too = self._round(wanted, needed)
            found |= more
            proven = proven and proven_too
        ordered = heapq.nsmallest(limit, found.items(), key=lambda item: (-item[1], item[0]))
        return LexicalHits(ordered, weights, exact=proven and len(terms) <= MAX_QUERY_TERMS)

    def _weigh(
        self,
        scope: Scope,
        collection: Collection,
        counts: Mapping[int, int],
        analyzer: Analyzer,
        plan: QueryPlan,
    ) -> tuple[dict[int, float], dict[int, int]]:
        added = term_frequencies(expansion_terms(plan, analyzer), salt=collection.collection_id)
        wanted = list(dict.fromkeys((*counts, *added)))
        if not wanted or collection.reference_length is None:
            return {}, {}
        known = self._repository.document_frequencies(scope, collection, wanted)
        # A term that the statistics lack can only stand in chunks that came after their last refresh, or in the past.
        unseen = 1 if collection.stats_pending or not collection.stats_chunks or scope.as_of is not None else 0
        frequencies = {lexeme: known.get(lexeme, unseen) for lexeme in wanted}
        frequencies = {lexeme: df for lexeme, df in frequencies.items() if df > 0}
        rarest = heapq.nsmallest(MAX_QUERY_TERMS, frequencies, key=lambda lexeme: (frequencies[lexeme], lexeme))
        frequencies = {lexeme: frequencies[lexeme] for lexeme in rarest}
        chunks = max(collection.stats_chunks, collection.chunk_count, 1)
        weights = bm25.query_weights(counts, document_frequencies=frequencies, chunks=chunks)
        if plan.expansions:
            idf = {lexeme: bm25.idf(df, chunks) for lexeme, df in frequencies.items()}
            weights = expanded_weights(
                weights, plan.expansions, analyzer=analyzer, salt=collection.collection_id, idf=idf
            )
        return weights, {lexeme: frequencies[lexeme] for lexeme in weights}

    def _round(self, wanted: _Wanted, conditions: Sequence[Sequence[int]]) -> tuple[dict[int, float], bool]:
        """The best chunks that hold a term of each condition, and whether the best ``top_k`` of them are proven.

        The database orders by the stored weights, which go by the reference length; what it cuts off could have come
        further up under today's average. Where that cannot be ruled out, more are fetched.
        """
        growth = max(1.0, wanted.collection.average_length / (wanted.collection.reference_length or 1.0))
        limit = wanted.limit
        while True:
            hits = self._repository.lexical(
                wanted.scope,
                wanted.collection,
                conditions=conditions,
                query=wanted.weights,
                limit=limit,
                version_ids=wanted.version_ids,
            )
            found = rescored(wanted.collection, wanted.weights, dict(hits))
            if len(hits) < limit:
                return found, True
            if _stored_score(wanted.weights, hits[-1][1]) * growth * _ROUNDING <= _kth(found, wanted.top_k):
                return found, True
            if not wanted.prove or limit >= _WIDEST * wanted.limit:
                return found, False
            limit *= _WIDEN


def _stored_score(weights: Mapping[int, float], row: LexicalRow) -> float:
    """A chunk's score by its stored weights: what the database orders by."""
    stored = zip(row.lexemes.tolist(), row.weights.tolist(), strict=True)
    return math.fsum(weights[lexeme] * float(weight) for lexeme, weight in stored if lexeme in weights)


def rescored(collection: Collection, weights: Mapping[int, float], found: Mapping[int, LexicalRow]) -> dict[int, float]:
    """Scores under today's average length, recovered from the stored weights."""
    candidates = [(row.length, row.lexemes, row.weights) for row in found.values()]
    scores = bm25.rescore(
        weights,
        candidates,
        reference_length=collection.reference_length or 1.0,
        average_length=collection.average_length,
    )
    return dict(zip(found, scores.tolist(), strict=True))


def _kth(found: Mapping[int, float], top_k: int) -> float:
    best = heapq.nlargest(top_k, found.values())
    return best[-1] if len(best) == top_k else 0.0


def _bounds(terms: Sequence[int], wanted: _Wanted) -> dict[int, float]:
    """The most that each term can add to a chunk's score."""
    collection = wanted.collection
    return {
        term: bm25.upper_bound(
            [wanted.weights[term]],
            reference_length=collection.reference_length or 1.0,
            average_length=collection.average_length,
        )
        for term in terms
    }
