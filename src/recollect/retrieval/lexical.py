"""The arithmetic of searches by words: BM25 over one collection, exact wherever its own bound proves it. Pure."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from recollect.retrieval import bm25
from recollect.retrieval.analysis import term_frequencies
from recollect.retrieval.candidates import CandidateRequest, Candidates, analyzer_for
from recollect.retrieval.enhance.plan import expanded_weights, expansion_terms
from recollect.store.search_rows import LexicalRows

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.collection import Collection
    from recollect.store.search_rows import CandidateRows


#: A query of more distinct terms is searched by its rarest ones: the others could hardly change the order.
MAX_QUERY_TERMS = 128

#: In collections up to this size every posting list is short enough to be read whole.
SMALL_COLLECTION_CHUNKS = 5_000

#: In collections up to this size scoring every chunk takes less than looking terms up.
SCANNED_COLLECTION_CHUNKS = 2_000

# The database adds up weights in single precision.
_ROUNDING = 1 + 1e-5


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The lexemes of a query.

    Attributes:
        counts: How often the query has each.
        wanted: These, and those that its plan adds.
        analyses: The lexemes of each language that the query is asked in.
    """

    counts: Mapping[int, int]
    wanted: list[int]
    analyses: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, request: CandidateRequest) -> QueryTerms:
        """Those of a request, in the languages of its collection."""
        analyzer, salt = analyzer_for(request.collection), request.collection.collection_id
        analyses = [term_frequencies(terms, salt=salt) for terms in analyzer.query_analyses(request.plan.query)]
        counts = analyses[0]
        for other in analyses[1:]:
            counts = counts | {number: max(count, counts.get(number, 0)) for number, count in other.items()}
        added = term_frequencies(expansion_terms(request.plan, analyzer), salt=salt)
        return cls(counts, list(dict.fromkeys((*counts, *added))), tuple(map(frozenset, analyses)))


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query by words as the store is asked.

    Attributes:
        weights: The weight of each lexeme that anything searched has.
        reference_length: The average length that stored weights were computed with.
        average_length: The one that is scored by: of all collections that are searched together.
        remaining: Lexemes that candidates are not taken by.
        conditions: Sets of lexemes: a candidate holds at least one of each. None: every chunk is a candidate.
        whole: Whether every word of the query takes part.
        narrowed: Whether the conditions leave out chunks that hold the rarest term, because too many do.
        fractional: Whether terms occur a fraction of a time, as those of the turns before a turn do.
        rarity: The inverse document frequency in this collection of each word of the query, those included that it
            lacks: what `covered` goes by, whatever else is searched or added to the query.
        analyses: The lexemes of each language that the query is asked in: a chunk covers the query as well as it does
            in one of them.
        usually_beside: How many chunks stand beside one in its document, on average: 0 to 2.
    """

    weights: Mapping[int, float]
    reference_length: float = 1.0
    average_length: float = 1.0
    remaining: tuple[int, ...] = ()
    conditions: tuple[tuple[int, ...], ...] = ()
    whole: bool = True
    narrowed: bool = False
    fractional: bool = False
    rarity: Mapping[int, float] = field(default_factory=dict)
    analyses: tuple[frozenset[int], ...] = ()
    usually_beside: float = 2.0

    def widened(self) -> LexicalQuery:
        """The same query with every chunk that holds a term other than the remaining ones for a candidate."""
        chosen = tuple(term for term in self.weights if term not in self.remaining)
        return replace(self, conditions=(chosen,), narrowed=False)


@dataclass(frozen=True, slots=True)
class LexicalHits:
    """What was found by words.

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


def usually_beside(collections: Sequence[Collection]) -> float:
    """How many chunks stand beside one in its document, on average over collections: 0 to 2."""
    documents = sum(one.document_count for one in collections)
    chunks = sum(one.chunk_count for one in collections)
    return 2 * max(0.0, 1 - documents / max(chunks, 1))


def lexical_query(
    request: CandidateRequest,
    terms: QueryTerms,
    known: Mapping[int, int],
    *,
    as_of: datetime | None,
    budget: int,
    eligible: int | None,
) -> LexicalQuery:
    """Weigh a query's words and those that its plan adds, and choose the ones that candidates are taken by.

    Args:
        request: What is asked.
        terms: Its lexemes.
        known: In how many chunks each stands, by the collection's statistics; those that they lack are absent.
        as_of: The moment that is searched; None: the present.
        budget: Document frequency that the first round's candidates may add up to.
        eligible: How many chunks a candidate is one of, where it need not be proven that none was left out: then no
            more of them than the budget are scored, whatever the query. None: a proof is wanted.
    """
    collection, pooled = request.collection, request.pooled
    weights, frequencies, rarity = _weighed(request, terms, known, as_of)
    if not weights:
        return LexicalQuery({}, rarity=rarity, analyses=terms.analyses)
    query = LexicalQuery(
        weights,
        reference_length=collection.reference_length or 1.0,
        average_length=collection.average_length if pooled is None else pooled.average_length,
        rarity=rarity,
        analyses=terms.analyses,
        whole=len(terms.counts) <= MAX_QUERY_TERMS,
        usually_beside=usually_beside([collection]) if pooled is None else pooled.usually_beside,
    )
    everything = request.versions is None and collection.access_ids is None
    if everything and request.past is None and collection.chunk_count <= SCANNED_COLLECTION_CHUNKS:
        return query
    found_among = collection.chunk_count if eligible is None else eligible
    proof_within = eligible is None and request.versions is not None
    every_row = as_of is not None and request.past is None
    if found_among <= SMALL_COLLECTION_CHUNKS or proof_within or every_row:
        return replace(query, conditions=(tuple(frequencies),))
    # Of what the index gives out, only the eligible part counts.
    chunks = max(collection.stats_chunks, 1)
    budget *= max(1, chunks // found_among)
    choice = bm25.choose_terms(frequencies, budget=budget)
    narrower = () if eligible is None else tuple(narrowing_terms(frequencies, chunks=chunks, budget=budget))
    conditions = narrower or (choice.chosen,)
    return replace(query, remaining=choice.remaining, conditions=conditions, narrowed=bool(narrower))


def _weighed(
    request: CandidateRequest, terms: QueryTerms, known: Mapping[int, int], as_of: datetime | None
) -> tuple[dict[int, float], dict[int, int], dict[int, float]]:
    """Weights, document frequencies here, and inverse ones here, by lexeme."""
    collection, plan, pooled = request.collection, request.plan, request.pooled
    if not terms.wanted or collection.reference_length is None:
        return {}, {}, {}
    # A term that the statistics lack can only stand in chunks that came after their last refresh, or in the past.
    unseen = 1 if collection.stats_pending or not collection.stats_chunks or as_of is not None else 0
    frequencies = {lexeme: known.get(lexeme, unseen) for lexeme in terms.wanted}
    chunks = max(collection.stats_chunks, collection.chunk_count, 1)
    rarity = {lexeme: bm25.idf(frequencies[lexeme], chunks) for lexeme in terms.counts}
    frequencies = {lexeme: df for lexeme, df in frequencies.items() if df > 0}
    rarest = heapq.nsmallest(MAX_QUERY_TERMS, frequencies, key=lambda lexeme: (frequencies[lexeme], lexeme))
    frequencies = {lexeme: frequencies[lexeme] for lexeme in rarest}
    overall = frequencies
    if pooled is not None:
        # Candidates are chosen by what is frequent here, and weighed by what is frequent in all that is searched.
        overall = {lexeme: df + pooled.elsewhere.get(lexeme, 0) for lexeme, df in frequencies.items()}
        chunks = max(chunks, pooled.chunks)
    weights = bm25.query_weights(terms.counts, document_frequencies=overall, chunks=chunks)
    if plan.expansions:
        idf = {lexeme: bm25.idf(df, chunks) for lexeme, df in overall.items()}
        analyzer = analyzer_for(collection)
        weights = expanded_weights(weights, plan.expansions, analyzer=analyzer, salt=collection.collection_id, idf=idf)
    return weights, {lexeme: frequencies[lexeme] for lexeme in weights}, rarity


@dataclass(frozen=True, slots=True)
class Scored:
    """Chunks that the database found by words, scored under today's average length.

    Attributes:
        scores: By chunk id.
        coverage: The share of the query's words that each holds.
        proven: Whether the best ``top_k`` of those that were looked for are among them: of what the database cut off,
            in its order, none can score more.
    """

    scores: dict[int, float]
    coverage: dict[int, float]
    proven: bool

    @classmethod
    def of(cls, query: LexicalQuery, rows: LexicalRows, *, limit: int, top_k: int) -> Scored:
        """Of the rows that the database gave for a query, ``limit`` at most."""
        words = words_in(query, rows)
        scores = rescored(query, rows, words)
        proven = len(rows) < limit or _cut_off(query, words) <= _kth(scores, top_k)
        return cls(scores, covered(query, rows, words), proven)

    def joined(self, more: Scored) -> Scored:
        """Together with what another round found."""
        return Scored(self.scores | more.scores, self.coverage | more.coverage, self.proven and more.proven)

    def hits(self, query: LexicalQuery, *, limit: int, exact: bool = True) -> LexicalHits:
        """The best of them; ``exact``: whether nothing outside of what was looked for can be better."""
        proven = exact and self.proven and query.whole
        return LexicalHits(_best(self.scores, limit), query.weights, exact=proven, coverage=self.coverage)


def judged(query: LexicalQuery, rows: LexicalRows, *, top_k: int, limit: int) -> LexicalHits:
    """The hits among a first round's candidates, as they are: nothing more is fetched to prove them."""
    found = Scored.of(query, rows, limit=limit, top_k=top_k)
    return found.hits(query, limit=limit, exact=_best_outside(query) <= _kth(found.scores, top_k))


def necessary(query: LexicalQuery, found: Scored, *, top_k: int) -> Sequence[Sequence[int]]:
    """The conditions of what a second round has to look for, so that nothing better was left out."""
    return necessary_terms(query.remaining, _bounds(query), _kth(found.scores, top_k))


def take(found: Candidates, hits: LexicalHits) -> None:
    """Take what was found by words among the candidates."""
    found.lexical, found.paths["lexical"] = hits.scores, hits.path
    found.bm25 = dict(hits.scores)
    found.coverage = dict(hits.coverage)
    found.weights = hits.weights
    found.lexical_exact = hits.exact


def complete(found: Candidates, query: LexicalQuery, nearest: CandidateRows) -> None:
    """Take what was found by meaning among the candidates, with its scores by words."""
    found.dense = list(nearest.similarities.items())
    found.similarities |= nearest.similarities
    found.vectors |= nearest.vectors
    words = words_in(query, nearest.lexical)
    if query.weights:
        found.bm25 |= rescored(query, nearest.lexical, words)
    found.coverage |= covered(query, nearest.lexical, words)


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
        reference_length=query.reference_length,
        average_length=query.average_length,
        fractional=query.fractional,
    )
    return dict(zip(rows.chunk_ids, scores.tolist(), strict=True))


def in_context(query: LexicalQuery, rows: LexicalRows, beside: LexicalRows) -> dict[int, float]:
    """Scores of chunks read together with those beside them, by chunk id; see `bm25.rescore_in_context`.

    Args:
        query: What is searched for.
        rows: The chunks; one may be there twice.
        beside: The rows beside these, by the chunk that each stands beside.
    """
    numbers = {chunk_id: place for place, chunk_id in enumerate(rows.chunk_ids)}
    scores = bm25.rescore_in_context(
        query.weights,
        words_in(query, rows),
        words_in(query, beside),
        places=np.array([numbers[chunk_id] for chunk_id in beside.chunk_ids], dtype=np.intp),
        lengths=rows.lengths,
        beside_lengths=beside.lengths,
        reference_length=query.reference_length,
        average_length=query.average_length,
        usually_beside=query.usually_beside,
    )
    return dict(zip(rows.chunk_ids, scores.tolist(), strict=True))


def covered(query: LexicalQuery, rows: LexicalRows, words: bm25.Matches) -> dict[int, float]:
    """The share of the query's words that each chunk holds, by their rarity; nothing where it has no words."""
    shares = []
    for analysis in query.analyses:
        rarity = {lexeme: weight for lexeme, weight in query.rarity.items() if lexeme in analysis}
        total = math.fsum(rarity.values())
        if total:
            shares.append(bm25.covered(rarity, words) / total)
    if not shares:
        return {}
    return dict(zip(rows.chunk_ids, np.maximum.reduce(shares).tolist(), strict=True))


def _cut_off(query: LexicalQuery, words: bm25.Matches) -> float:
    """The most that a chunk could score today which the database, in its order, put behind these."""
    growth = max(1.0, query.average_length / (query.reference_length))
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
            reference_length=query.reference_length,
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


# Which terms a chunk must hold to score above a threshold, as conditions that an inverted index answers.


#: More conditions cost the index more than they spare in chunks that need not be scored.
MAX_CONDITIONS = 8


def necessary_terms(
    terms: Sequence[int], bounds: Mapping[int, float], threshold: float, *, limit: int = MAX_CONDITIONS
) -> list[tuple[int, ...]]:
    """Conditions that every chunk meets whose score exceeds a threshold.

    A set of terms is such a condition where the others together cannot lift a chunk above the threshold: then a chunk
    above it holds at least one of the set (MaxScore; Turtle and Flood 1995). Several sets that overlap little say more:
    a chunk must hold a term of each, hence several terms (as in WAND; Broder et al. 2003).

    Args:
        terms: All that a chunk can score by, rarest first.
        bounds: The most that each of them can add.
        threshold: Chunks that score this or less are of no interest.
        limit: How many conditions at most.

    Returns:
        The conditions, the rarest terms in the first; none at all where no chunk can exceed the threshold.

    Example:
        >>> necessary_terms([1, 2, 3], {1: 3.0, 2: 3.0, 3: 3.0}, 5.0)
        [(1, 2), (2, 3), (1, 3)]
    """
    first = _condition(terms, bounds, threshold)
    if not first:
        return []
    found = [first]
    # Without one or two of the terms of a condition that is known already, another one must do.
    without: deque[tuple[int, ...]] = deque((term,) for term in first)
    tried = set(without)
    while without and len(found) < limit:
        left_out = without.popleft()
        condition = _condition([term for term in terms if term not in left_out], bounds, threshold, beside=left_out)
        if condition is None or condition in found:
            continue
        found.append(condition)
        if len(left_out) == 1:
            pairs = [(left_out[0], term) for term in condition]
            fresh = [pair for pair in pairs if pair not in tried and pair[::-1] not in tried]
            tried.update(fresh)
            without.extend(fresh)
    return found


def narrowing_terms(frequencies: Mapping[int, int], *, chunks: int, budget: int) -> list[tuple[int, ...]]:
    """Conditions that about as many chunks meet as a budget allows, where too many hold the rarest term alone.

    They hold the rarest term, and of what is left of the terms some as well: as many, the rarest first, as are expected
    to stay within the budget. Chunks that score well hold several of a query's terms, so that little is lost; how much
    may be lost, the bound on what a chunk outside a condition can score tells. Terms are taken to occur independently
    of one another. They do not, mostly they occur together: more chunks remain than are expected.

    Args:
        frequencies: How many chunks hold each term.
        chunks: Of the collection.
        budget: How many chunks are to meet all conditions.

    Returns:
        The conditions; none where the rarest term stays within the budget by itself.

    Example:
        >>> narrowing_terms({1: 500, 2: 1_000, 3: 4_000}, chunks=10_000, budget=100)
        [(1,), (2,)]
        >>> narrowing_terms({1: 500, 2: 1_000, 3: 4_000}, chunks=10_000, budget=240)
        [(1,), (2, 3)]
    """
    rarest_first = deque(sorted((frequency, term) for term, frequency in frequencies.items()))
    if not rarest_first or rarest_first[0][0] <= budget:
        return []
    frequency, rarest = rarest_first.popleft()
    expected = float(frequency)
    conditions: list[tuple[int, ...]] = [(rarest,)]
    while rarest_first and expected > budget:
        taken: list[int] = []
        without = 1.0
        while rarest_first and (
            not taken or expected * (1 - without * _share_without(rarest_first[0][0], chunks)) <= budget
        ):
            frequency, term = rarest_first.popleft()
            without *= _share_without(frequency, chunks)
            taken.append(term)
        conditions.append(tuple(taken))
        expected *= 1 - without
    return conditions


def _share_without(frequency: int, chunks: int) -> float:
    return 1 - min(frequency / chunks, 1.0)


def _condition(
    terms: Sequence[int], bounds: Mapping[int, float], threshold: float, *, beside: tuple[int, ...] = ()
) -> tuple[int, ...] | None:
    """The first of the terms without which the rest, and those beside, reach the threshold at most; None: no such."""
    for taken in range(len(terms) + 1):
        rest = math.fsum(bounds[term] for term in (*terms[taken:], *beside))
        if rest <= threshold:
            return tuple(terms[:taken])
    return None
