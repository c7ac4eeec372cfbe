"""The arithmetic of searches by words: BM25 over one collection, exact wherever its own bound proves it. Pure.

The ranking function is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with k1 = 1.2, b = 0.75 and the inverse document frequency ``ln(1 + (N - df + 0.5) / (df + 0.5))``, which is never
negative. A term that a query repeats counts as often as it is repeated.

The index stores, for each chunk, the weight of each term under a *reference* average length that was frozen when the
collection was small. A search takes candidates by the inner product of these weights with the query's, and scores them
again under today's average length: `Counted` recovers the term frequencies from the stored weights, so its scores are
exact, and :func:`upper_bound` says how much a chunk that was no candidate could have scored.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect.retrieval.analysis import term_frequencies
from recollect.retrieval.candidates import CandidateRequest, Candidates, analyzer_for
from recollect.retrieval.enhance.plan import expanded_weights, expansion_terms
from recollect.store.search import CandidateRows, LexicalRows

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.collection import Collection

K1 = 1.2
B = 0.75

#: How often a term counts that stands in the chunk before or after, beside 1 for the chunk itself; see
#: ``docs/explanation/fusion.md``.
BESIDE = 0.5

#: In a chunk's score in context, each of the query's terms that it holds itself adds its weight to the power of
#: ``SAID_POWER``, so many times: what stands there once says nearly as much as what stands there often, and rare terms
#: say more than BM25 has it. ``docs/explanation/fusion.md`` has the figures.
SAID, SAID_POWER = 0.8, 1.2

#: pgvector stores at most this many elements in a sparsevec.
MAX_ELEMENTS = 16_000

#: No document weight reaches this: it is the limit for infinitely many occurrences.
MAX_WEIGHT = K1 + 1.0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TermChoice:
    """Which terms of a query candidates are taken by.

    Attributes:
        chosen: Lexemes, rarest first. A chunk that holds any of them is a candidate.
        remaining: The query's other lexemes that occur in the collection, rarest first.
    """

    chosen: tuple[int, ...]
    remaining: tuple[int, ...]


def idf(document_frequency: int, chunks: int) -> float:
    """The inverse document frequency of a term.

    Args:
        document_frequency: How many chunks hold the term. Statistics may lag behind: more than ``chunks`` counts as
            ``chunks``.
        chunks: How many chunks the collection has.

    Returns:
        More than 0, greater for rarer terms.
    """
    df = min(document_frequency, chunks)
    return math.log1p((chunks - df + 0.5) / (df + 0.5))


def query_weights(
    term_frequencies: Mapping[int, int], *, document_frequencies: Mapping[int, int], chunks: int
) -> dict[int, float]:
    """The weights of a query's terms: inverse document frequency times occurrences in the query.

    Args:
        term_frequencies: Occurrences in the query by lexeme.
        document_frequencies: Chunks that hold the lexeme; a lexeme that is missing or 0 here gets no weight, since no
            chunk can score by it.
        chunks: How many chunks the collection has.
    """
    return {
        lexeme: count * idf(frequency, chunks)
        for lexeme, count in term_frequencies.items()
        if (frequency := document_frequencies.get(lexeme, 0)) > 0
    }


def document_weights(
    term_frequencies: Mapping[int, int], *, length: int, average_length: float, limit: int = MAX_ELEMENTS
) -> dict[int, float]:
    """The weights of a chunk's terms, each in (0, ``MAX_WEIGHT``].

    Args:
        term_frequencies: Occurrences in the chunk by lexeme, each at least 1.
        length: The chunk's number of terms, repetitions included.
        average_length: The collection's reference average length; must be kept with the weights, to recover the term
            frequencies.
        limit: Keep this many of the heaviest weights (of equal ones, the smaller lexemes).

    Returns:
        Weights by lexeme, in ascending order of lexeme, exact for float32.
    """
    lexemes = np.fromiter(term_frequencies.keys(), dtype=np.int64, count=len(term_frequencies))
    counts = np.fromiter(term_frequencies.values(), dtype=np.float64, count=len(term_frequencies))
    weighed = weights(counts, np.array([length]), average_length=average_length)
    kept = heaviest(lexemes, weighed, limit=limit)
    return dict(zip(lexemes[kept].tolist(), weighed[kept].tolist(), strict=True))


def weights(counts: npt.NDArray[Any], lengths: npt.NDArray[Any], *, average_length: float) -> npt.NDArray[np.float32]:
    """:func:`document_weights` of many occurrences at once.

    Args:
        counts: How often a term occurs in a chunk, each at least 1.
        lengths: The number of terms of the chunk in question: one for each count, or one for all.
        average_length: The collection's reference average length.
    """
    saturation = _saturation(lengths.astype(np.float64), average_length)
    result: npt.NDArray[np.float32] = (counts * MAX_WEIGHT / (counts + saturation)).astype(np.float32)
    return result


def heaviest(
    lexemes: npt.NDArray[np.integer[Any]], weights: npt.NDArray[np.float32], *, limit: int = MAX_ELEMENTS
) -> npt.NDArray[np.intp]:
    """Where the heaviest weights stand (of equal ones, those of smaller lexemes), in ascending order of lexeme.

    Args:
        lexemes: Of one chunk, in any order.
        weights: Parallel to ``lexemes``.
        limit: How many to keep at most.
    """
    kept = np.lexsort((lexemes, -weights))[:limit] if len(lexemes) > limit else np.arange(len(lexemes))
    return kept[np.argsort(lexemes[kept])]


def term_frequency(weight: float, *, length: int, average_length: float) -> int:
    """How often a term occurs in a chunk, from its stored weight: the inverse of :func:`document_weights`.

    Exact for up to 1,000 occurrences whatever the lengths. Far above that, neighbouring frequencies can share one
    float32 weight; the one returned then has the same weight, so that a score does not change by more than float32's
    precision.

    Args:
        weight: As stored, rounded to float32.
        length: The chunk's number of terms.
        average_length: The one that the weight was computed with.

    Returns:
        1 to ``length``.
    """
    lengths = np.array([length], dtype=np.float64)
    return int(_term_frequencies(np.array([weight]), _saturation(lengths, average_length), lengths)[0])


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """How often n chunks hold each of some words; scores of all of them are computed at once.

    Attributes:
        terms: Lexemes, ascending.
        counts: Shape (terms, n).
        lengths: Shape (n,): how many terms each chunk has.
    """

    terms: Sequence[int]
    counts: Floats
    lengths: Floats

    @classmethod
    def of(cls, query: LexicalQuery, rows: LexicalRows) -> Counted:
        """The words that a query is scored and covered by, in rows of the store, recovered from their weights."""
        terms = query.terms
        counts, lengths = np.zeros((len(terms), len(rows))), rows.lengths.astype(np.float64)
        if terms and len(rows.lexemes):
            wanted = np.array(terms, dtype=np.int64)
            places = np.minimum(wanted.searchsorted(rows.lexemes), len(wanted) - 1)
            hits = np.flatnonzero(wanted[places] == rows.lexemes)
            owners = np.arange(len(rows)).repeat(rows.counts)[hits]
            own = lengths[owners]
            saturation = _saturation(own, query.reference_length)
            whole = None if query.fractional else own
            stored = rows.weights[hits].astype(np.float64)
            counts[places[hits], owners] = _term_frequencies(stored, saturation, whole)
        return cls(terms, counts, lengths)

    def scores(self, query: LexicalQuery, average_length: float | None = None) -> Floats:
        """BM25 of each chunk, shape (n,), under today's average length or another one."""
        return self._scored(query, query.average_length if average_length is None else average_length)

    def in_context(self, query: LexicalQuery, beside: Counted) -> Floats:
        """BM25 of each chunk read together with the chunks beside it, whose terms count `BESIDE` times; shape (n,).

        Frequencies and lengths are added up before they are saturated, as BM25F does with the fields of a document
        (Robertson, Zaragoza and Taylor 2004): a word that a chunk has itself gains little from standing beside it, too.
        What it says itself counts once more, however often it says it (`SAID`).

        Args:
            query: What is searched for.
            beside: Of each chunk, what those beside it hold together.
        """
        both = Counted(self.terms, self.counts + BESIDE * beside.counts, self.lengths + BESIDE * beside.lengths)
        said: Floats = SAID * self._each(query.weights) ** SAID_POWER @ (self.counts > 0)
        return said + both._scored(query, query.average_length * (1 + query.usually_beside * BESIDE))

    def coverage(self, query: LexicalQuery) -> Floats:
        """The share of the query's words that each chunk holds, by their rarity, shape (n,); empty without words."""
        shares = []
        for analysis in query.analyses:
            rarity = self._each({term: weight for term, weight in query.rarity.items() if term in analysis})
            if total := math.fsum(rarity.tolist()):
                shares.append(rarity @ (self.counts > 0) / total)
        return np.maximum.reduce(shares) if shares else np.zeros(0)

    def _scored(self, query: LexicalQuery, average_length: float) -> Floats:
        saturation = _saturation(self.lengths, average_length)
        scores: Floats = self._each(query.weights) @ (self.counts * MAX_WEIGHT / (self.counts + saturation))
        return scores

    def _each(self, values: Mapping[int, float]) -> Floats:
        return np.array([values.get(term, 0.0) for term in self.terms])


def choose_terms(document_frequencies: Mapping[int, int], *, budget: int) -> TermChoice:
    """Choose the terms to take candidates by: the rarest, as long as their posting lists fit the budget together.

    Args:
        document_frequencies: Chunks that hold each of the query's lexemes; those with 0 are left out.
        budget: How many posting-list entries may be read. The rarest term is chosen even where it alone exceeds this.
    """
    rarest_first = sorted((frequency, lexeme) for lexeme, frequency in document_frequencies.items() if frequency > 0)
    taken = spent = 0
    for frequency, _ in rarest_first:
        spent += frequency
        if taken and spent > budget:
            break
        taken += 1
    ordered = [lexeme for _, lexeme in rarest_first]
    return TermChoice(tuple(ordered[:taken]), tuple(islice(ordered, taken, None)))


def upper_bound(
    weights: Sequence[float],
    max_weights: Sequence[float] | None = None,
    *,
    reference_length: float = 1.0,
    average_length: float = 1.0,
) -> float:
    """What a chunk that holds none of the chosen terms can score at most (MaxScore; Turtle and Flood 1995).

    Where the k-th best candidate scores more than this, the top k is exact.

    Args:
        weights: The query's weights of the remaining terms.
        max_weights: The greatest stored weight of each of these terms in the collection, in the same order; None: the
            limit that no weight exceeds.
        reference_length: The average length that the stored weights were computed with.
        average_length: Today's average length. Where it has grown by a factor, weights may have grown by as much, so
            the bound is that much looser.
    """
    slack = max(1.0, average_length / reference_length) * (1 + 1e-6)  # and float32's rounding
    limits = [MAX_WEIGHT] * len(weights) if max_weights is None else max_weights
    return math.fsum(weight * min(MAX_WEIGHT, limit * slack) for weight, limit in zip(weights, limits, strict=True))


def _saturation(lengths: Floats, average_length: float) -> Floats:
    """The term frequencies at which half of the maximal weight is reached, for chunks of these lengths."""
    constant, slope = saturation_line(average_length)
    return constant + slope * lengths


def saturation_line(average_length: float) -> tuple[float, float]:
    """How often a term must occur for half of `MAX_WEIGHT`: a constant, and what each term of a chunk adds to it."""
    return K1 * (1 - B), K1 * B / max(average_length, 1e-9)


def occurrences(
    stored: npt.NDArray[np.float32], lengths: npt.NDArray[Any], *, average_length: float
) -> npt.NDArray[np.uint16]:
    """How often terms occur, from many stored weights: `term_frequency` of each, 65,535 at most.

    Args:
        stored: As stored.
        lengths: Parallel to ``stored``: the number of terms of the chunk in question.
        average_length: The one that the weights were computed with.
    """
    own = lengths.astype(np.float64)
    found = _term_frequencies(stored.astype(np.float64), _saturation(own, average_length), own)
    return np.minimum(found, np.iinfo(np.uint16).max).astype(np.uint16)


def _term_frequencies(stored: Floats, saturation: Floats, lengths: Floats | None) -> Floats:
    """Occurrences, by weights; whole ones of chunks of these lengths, or where there are none, as they come out."""
    occurrences: Floats = stored * saturation / np.maximum(MAX_WEIGHT - stored, np.finfo(np.float32).eps)
    return occurrences if lengths is None else np.clip(np.rint(occurrences), 1, np.maximum(lengths, 1))


# Searches by words over one collection.

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
            lacks: what coverage goes by, whatever else is searched or added to the query.
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

    @property
    def terms(self) -> list[int]:
        """Every lexeme that it weighs, or that a chunk is covered by; ascending."""
        return sorted(self.weights.keys() | self.rarity.keys())

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
    choice = choose_terms(frequencies, budget=budget)
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
    rarity = {lexeme: idf(frequencies[lexeme], chunks) for lexeme in terms.counts}
    frequencies = {lexeme: df for lexeme, df in frequencies.items() if df > 0}
    rarest = heapq.nsmallest(MAX_QUERY_TERMS, frequencies, key=lambda lexeme: (frequencies[lexeme], lexeme))
    frequencies = {lexeme: frequencies[lexeme] for lexeme in rarest}
    overall = frequencies
    if pooled is not None:
        # Candidates are chosen by what is frequent here, and weighed by what is frequent in all that is searched.
        overall = {lexeme: df + pooled.elsewhere.get(lexeme, 0) for lexeme, df in frequencies.items()}
        chunks = max(chunks, pooled.chunks)
    weights = query_weights(terms.counts, document_frequencies=overall, chunks=chunks)
    if plan.expansions:
        rarities = {lexeme: idf(df, chunks) for lexeme, df in overall.items()}
        weights = expanded_weights(
            weights, plan.expansions, analyzer=analyzer_for(collection), salt=collection.collection_id, idf=rarities
        )
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
        counted = Counted.of(query, rows)
        scores = by_id(rows.chunk_ids, counted.scores(query))
        proven = len(rows) < limit or _cut_off(query, counted) <= _kth(scores, top_k)
        return cls(scores, by_id(rows.chunk_ids, counted.coverage(query)), proven)

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
    counted = Counted.of(query, nearest.lexical)
    if query.weights:
        found.bm25 |= by_id(nearest.lexical.chunk_ids, counted.scores(query))
    found.coverage |= by_id(nearest.lexical.chunk_ids, counted.coverage(query))


def by_id(chunk_ids: Sequence[int], values: Floats) -> dict[int, float]:
    """What is said of each chunk; nothing where nothing is said of any."""
    return dict(zip(chunk_ids, values.tolist(), strict=True)) if len(values) else {}


def in_context(query: LexicalQuery, rows: LexicalRows, beside: LexicalRows) -> dict[int, float]:
    """Scores of chunks read together with those beside them, by chunk id; see `Counted.in_context`.

    Args:
        query: What is searched for.
        rows: The chunks; one may be there twice.
        beside: The rows beside these, by the chunk that each stands beside.
    """
    own, others = Counted.of(query, rows), Counted.of(query, beside)
    numbers = {chunk_id: place for place, chunk_id in enumerate(rows.chunk_ids)}
    places = np.array([numbers[chunk_id] for chunk_id in beside.chunk_ids], dtype=np.intp)
    counts, lengths = np.zeros_like(own.counts), np.zeros_like(own.lengths)
    np.add.at(counts.T, places, others.counts.T)
    np.add.at(lengths, places, others.lengths)
    return by_id(rows.chunk_ids, own.in_context(query, Counted(own.terms, counts, lengths)))


def _cut_off(query: LexicalQuery, counted: Counted) -> float:
    """The most that a chunk could score today which the database, in its order, put behind these."""
    growth = max(1.0, query.average_length / query.reference_length)
    stored = counted.scores(query, query.reference_length)
    return float(stored.min(initial=math.inf)) * growth * _ROUNDING


def _best(found: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    return heapq.nsmallest(limit, found.items(), key=lambda item: (-item[1], item[0]))


def _kth(found: Mapping[int, float], top_k: int) -> float:
    best = heapq.nlargest(top_k, found.values())
    return best[-1] if len(best) == top_k else 0.0


def _bounds(query: LexicalQuery) -> dict[int, float]:
    """The most that each term can add to a chunk's score."""
    return {
        term: upper_bound(
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
