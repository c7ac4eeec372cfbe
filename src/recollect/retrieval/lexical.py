"""The lexical arm: BM25 over one collection, exact wherever its own bound proves it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from recollect.model import Scope
from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer, lexeme, term_frequencies
from recollect.retrieval.enhance.plan import QueryPlan, expanded_weights, expansion_terms
from recollect.retrieval.pruning import narrowing_terms, necessary_terms
from recollect.store.collections import Collection
from recollect.store.past import PastParts
from recollect.store.search import LexicalRows, SearchRepository

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
class PooledStatistics:
    """What collections that are searched together say of a query's words: BM25 of all can be compared only by these.

    Attributes:
        elsewhere: Chunks of the other collections that hold a word, by the lexeme that it has here.
        chunks: Of all collections.
        average_length: Of all these chunks, in terms.
    """

    elsewhere: Mapping[int, int]
    chunks: int
    average_length: float


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query as the lexical arm asks the store.

    Attributes:
        collection: Where.
        weights: The weight of each lexeme that the collection has.
        remaining: Lexemes that candidates are not taken by.
        conditions: Sets of lexemes: a candidate holds at least one of each. None: every chunk is a candidate.
        whole: Whether every word of the query takes part.
        narrowed: Whether the conditions leave out chunks that hold the rarest term, because too many do.
        pooled_length: The average length of all collections that are searched together; None: this one alone is.
        rarity: The inverse document frequency in this collection of each word of the query, those included that it
            lacks: what `covered` goes by, whatever else is searched or added to the query.
    """

    collection: Collection
    weights: Mapping[int, float]
    remaining: tuple[int, ...] = ()
    conditions: tuple[tuple[int, ...], ...] = ()
    whole: bool = True
    narrowed: bool = False
    pooled_length: float | None = None
    rarity: Mapping[int, float] = field(default_factory=dict)

    @property
    def average_length(self) -> float:
        """The average length that chunks are scored by."""
        return self.collection.average_length if self.pooled_length is None else self.pooled_length

    def widened(self) -> LexicalQuery:
        """The same query with every chunk that holds a term other than the remaining ones for a candidate."""
        chosen = tuple(term for term in self.weights if term not in self.remaining)
        return replace(self, conditions=(chosen,), narrowed=False)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one search asks of every round."""

    scope: Scope
    query: LexicalQuery
    _: KW_ONLY
    top_k: int
    limit: int
    version_ids: list[int] | None
    past: PastParts | None = None


@dataclass(frozen=True, slots=True)
class LexicalHits:
    """What the lexical arm found.

    Attributes:
        scores: (chunk_id, BM25 score), best first.
        weights: The query's weight of each lexeme, for scoring other chunks.
        exact: Whether the best ``top_k`` are proven to be the best of the whole collection, ties aside.
        coverage: The share of the query's words that each chunk holds, by their rarity.
    """

    scores: list[tuple[int, float]]
    weights: Mapping[int, float]
    exact: bool
    coverage: Mapping[int, float] = field(default_factory=dict)

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

    def prepare(
        self,
        scope: Scope,
        collection: Collection,
        analyzer: Analyzer,
        plan: QueryPlan,
        *,
        version_ids: list[int] | None = None,
        eligible: int | None = None,
        past: PastParts | None = None,
        pooled: PooledStatistics | None = None,
    ) -> LexicalQuery:
        """Weigh a query's words and those that its plan adds, and choose the ones that candidates are taken by.

        Args:
            scope: Whose, and as of when.
            collection: Where.
            analyzer: Of the collection's language.
            plan: The query, and what is added to it.
            version_ids: Only these document versions; None for all.
            eligible: How many chunks a candidate is one of, where it need not be proven that none was left out: then
                no more of them than the budget are scored, whatever the query. None: a proof is wanted.
            past: The parts of the history that are looked through; None in the present, or where everything is.
            pooled: The statistics of all collections that are searched together; None: this one is searched alone.
        """
        terms = term_frequencies(analyzer.query_terms(plan.query), salt=collection.collection_id)
        weights, frequencies, rarity = self._weigh(scope, collection, terms, analyzer, plan, pooled)
        if not weights:
            return LexicalQuery(collection, {}, rarity=rarity)
        query = LexicalQuery(
            collection,
            weights,
            rarity=rarity,
            whole=len(terms) <= MAX_QUERY_TERMS,
            pooled_length=None if pooled is None else pooled.average_length,
        )
        everything = version_ids is None and collection.access_ids is None
        if everything and past is None and collection.chunk_count <= SCANNED_COLLECTION_CHUNKS:
            return query
        found_among = collection.chunk_count if eligible is None else eligible
        proof_within = eligible is None and version_ids is not None
        every_row = scope.as_of is not None and past is None
        if found_among <= SMALL_COLLECTION_CHUNKS or proof_within or every_row:
            return replace(query, conditions=(tuple(frequencies),))
        # Of what the index gives out, only the eligible part counts.
        chunks = max(collection.stats_chunks, 1)
        budget = self._budget * max(1, chunks // found_among)
        choice = bm25.choose_terms(frequencies, budget=budget)
        narrower = () if eligible is None else tuple(narrowing_terms(frequencies, chunks=chunks, budget=budget))
        conditions = narrower or (choice.chosen,)
        return replace(query, remaining=choice.remaining, conditions=conditions, narrowed=bool(narrower))

    def judge(self, query: LexicalQuery, rows: LexicalRows, *, top_k: int, limit: int) -> LexicalHits:
        """The hits among a first round's candidates, as they are: nothing more is fetched to prove them."""
        words = words_in(query, rows)
        found = rescored(query, rows, words)
        proven = len(rows) < limit or _cut_off(query, words) <= _kth(found, top_k)
        missed = _best_outside(query) <= _kth(found, top_k)
        exact = proven and missed and query.whole
        return LexicalHits(_best(found, limit), query.weights, exact=exact, coverage=covered(query, rows, words))

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
        past: PastParts | None = None,
        pooled: PooledStatistics | None = None,
    ) -> LexicalHits:
        """The best ``limit`` chunks for a query, the words that ``plan`` adds to it included.

        Candidates come from the rarest terms first. Where the bound on what the other terms could add does not prove
        the first ``top_k`` exact, chunks that hold enough of the others to come up among them are searched too.
        """
        asked = plan or QueryPlan(query=query)
        prepared = self.prepare(scope, collection, analyzer, asked, version_ids=version_ids, past=past, pooled=pooled)
        if not prepared.weights:
            return LexicalHits([], {}, exact=True)
        wanted = _Wanted(scope, prepared, top_k=top_k, limit=limit, version_ids=version_ids, past=past)
        found, coverage, proven = self._round(wanted, prepared.conditions)
        needed = necessary_terms(prepared.remaining, _bounds(prepared), _kth(found, top_k))
        if needed:
            more, covered_too, proven_too = self._round(wanted, needed)
            found |= more
            coverage |= covered_too
            proven = proven and proven_too
        exact = proven and prepared.whole
        return LexicalHits(_best(found, limit), prepared.weights, exact=exact, coverage=coverage)

    def frequencies(self, scope: Scope, collection: Collection, analyzer: Analyzer, plan: QueryPlan) -> dict[str, int]:
        """In how many chunks of a collection each word of a query stands, and each that its plan adds."""
        words = dict.fromkeys((*analyzer.query_terms(plan.query), *expansion_terms(plan, analyzer)))
        numbers = {word: lexeme(word, collection.collection_id) for word in words}
        if not numbers or collection.reference_length is None:
            return {}
        known = self._repository.document_frequencies(scope, collection, list(dict.fromkeys(numbers.values())))
        return {word: known.get(number, 0) for word, number in numbers.items()}

    def _weigh(
        self,
        scope: Scope,
        collection: Collection,
        counts: Mapping[int, int],
        analyzer: Analyzer,
        plan: QueryPlan,
        pooled: PooledStatistics | None,
    ) -> tuple[dict[int, float], dict[int, int], dict[int, float]]:
        added = term_frequencies(expansion_terms(plan, analyzer), salt=collection.collection_id)
        wanted = list(dict.fromkeys((*counts, *added)))
        if not wanted or collection.reference_length is None:
            return {}, {}, {}
        known = self._repository.document_frequencies(scope, collection, wanted)
        # A term that the statistics lack can only stand in chunks that came after their last refresh, or in the past.
        unseen = 1 if collection.stats_pending or not collection.stats_chunks or scope.as_of is not None else 0
        frequencies = {lexeme: known.get(lexeme, unseen) for lexeme in wanted}
        chunks = max(collection.stats_chunks, collection.chunk_count, 1)
        rarity = {lexeme: bm25.idf(frequencies[lexeme], chunks) for lexeme in counts}
        frequencies = {lexeme: df for lexeme, df in frequencies.items() if df > 0}
        rarest = heapq.nsmallest(MAX_QUERY_TERMS, frequencies, key=lambda lexeme: (frequencies[lexeme], lexeme))
        frequencies = {lexeme: frequencies[lexeme] for lexeme in rarest}
        overall = frequencies
        if pooled is not None:
            # Candidates are chosen by what is frequent here, and weighed by what is frequent in all that is searched.
            overall = {lexeme: df + pooled.elsewhere.get(lexeme, 0) for lexeme, df in frequencies.items()}
            chunks = max(chunks, pooled.chunks)
        weights = bm25.query_weights(counts, document_frequencies=overall, chunks=chunks)
        if plan.expansions:
            idf = {lexeme: bm25.idf(df, chunks) for lexeme, df in overall.items()}
            weights = expanded_weights(
                weights, plan.expansions, analyzer=analyzer, salt=collection.collection_id, idf=idf
            )
        return weights, {lexeme: frequencies[lexeme] for lexeme in weights}, rarity

    def _round(
        self, wanted: _Wanted, conditions: Sequence[Sequence[int]]
    ) -> tuple[dict[int, float], dict[int, float], bool]:
        """The best chunks that hold a term of each condition, what of the query's words they hold, and proof.

        Whether the best ``top_k`` of them are proven, that is.

        The database orders by the stored weights, which go by the reference length; what it cuts off could have come
        further up under today's average. Where that cannot be ruled out, more are fetched.
        """
        limit = wanted.limit
        while True:
            hits = self._repository.lexical(
                wanted.scope,
                wanted.query.collection,
                conditions=conditions,
                query=wanted.query.weights,
                limit=limit,
                version_ids=wanted.version_ids,
                past=wanted.past,
            )
            words = words_in(wanted.query, hits)
            found = rescored(wanted.query, hits, words)
            proven = len(hits) < limit or _cut_off(wanted.query, words) <= _kth(found, wanted.top_k)
            if proven or limit >= _WIDEST * wanted.limit:
                return found, covered(wanted.query, hits, words), proven
            limit *= _WIDEN


def words_in(query: LexicalQuery, rows: LexicalRows) -> bm25.Matches:
    """Which words each chunk holds, of those that are searched for and those that it is covered by."""
    terms = query.weights.keys() | query.rarity.keys()
    return bm25.matches(terms, counts=rows.counts, lexemes=rows.lexemes, stored=rows.weights)


def rescored(query: LexicalQuery, rows: LexicalRows, words: bm25.Matches) -> dict[int, float]:
    """Scores under today's average length, recovered from the stored weights, by chunk id."""
    scores = bm25.rescore(
        query.weights,
        words,
        lengths=rows.lengths,
        reference_length=query.collection.reference_length or 1.0,
        average_length=query.average_length,
    )
    return dict(zip(rows.chunk_ids, scores.tolist(), strict=True))


def covered(query: LexicalQuery, rows: LexicalRows, words: bm25.Matches) -> dict[int, float]:
    """The share of the query's words that each chunk holds, by their rarity; nothing where it has no words."""
    total = math.fsum(query.rarity.values())
    if not total:
        return {}
    return dict(zip(rows.chunk_ids, (bm25.covered(query.rarity, words) / total).tolist(), strict=True))


def _cut_off(query: LexicalQuery, words: bm25.Matches) -> float:
    """The most that a chunk could score today which the database, in its order, put behind these."""
    growth = max(1.0, query.average_length / (query.collection.reference_length or 1.0))
    return float(bm25.stored_scores(query.weights, words).min(initial=math.inf)) * growth * _ROUNDING


def _best(found: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    return heapq.nsmallest(limit, found.items(), key=lambda item: (-item[1], item[0]))


def _kth(found: Mapping[int, float], top_k: int) -> float:
    best = heapq.nlargest(top_k, found.values())
    return best[-1] if len(best) == top_k else 0.0


def _bounds(query: LexicalQuery) -> dict[int, float]:
    """The most that each term can add to a chunk's score."""
    return {
        term: bm25.upper_bound(
            [weight],
            reference_length=query.collection.reference_length or 1.0,
            average_length=query.average_length,
        )
        for term, weight in query.weights.items()
    }


def _best_outside(query: LexicalQuery) -> float:
    """The most that a chunk can score which is no candidate: it holds none of the terms of one of the conditions."""
    bounds = _bounds(query)
    return max(
        (math.fsum(bound for term, bound in bounds.items() if term not in condition) for condition in query.conditions),
        default=0.0,
    )
