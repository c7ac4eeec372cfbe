"""BM25 arithmetic over sparse vectors of document weights. Pure: no I/O, no state.

The ranking function is that of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with k1 = 1.2, b = 0.75 and the inverse document frequency ``ln(1 + (N - df + 0.5) / (df + 0.5))``, which is never
negative. A term that a query repeats counts as often as it is repeated.

The index stores, for each chunk, the weight of each term under a *reference* average length that was frozen when the
collection was small. A search takes candidates by the inner product of these weights with the query's, and scores them
again under today's average length: :func:`rescore` recovers the term frequencies from the stored weights, so its scores
are exact, and :func:`upper_bound` says how much a chunk that was no candidate could have scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError

K1 = 1.2
B = 0.75

#: How often a term counts that stands in the chunk before or after, beside 1 for the chunk itself; see
#: ``docs/explanation/fusion.md``.
BESIDE = 0.5

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
        average_length: The collection's reference average length; must be kept with the weights, for
            :func:`rescore` needs it.
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


@dataclass(frozen=True, slots=True)
class Matches:
    """Where candidates hold terms of a query: looked up once for everything that is added up over them.

    Attributes:
        candidates: How many there are.
        terms: The query's lexemes, ascending.
        owners: Of each match, whose it is, by the candidate's place.
        places: Of each match, the place of its lexeme in ``terms``.
        stored: Of each match, the stored weight.
    """

    candidates: int
    terms: tuple[int, ...]
    owners: npt.NDArray[np.intp]
    places: npt.NDArray[np.intp]
    stored: Floats

    def added_up(self, parts: Floats) -> Floats:
        """The sum of what each candidate's matches bring; ``parts`` is parallel to ``owners``."""
        return np.bincount(self.owners, weights=parts, minlength=self.candidates).astype(np.float64, copy=False)

    def each(self, values: Mapping[int, float]) -> Floats:
        """What the lexeme of each match has among values by lexeme, 0 where it has none."""
        return np.array([values.get(term, 0.0) for term in self.terms], dtype=np.float64)[self.places]


def matches(terms: Iterable[int], *, counts: Ints, lexemes: Ints, stored: npt.NDArray[np.float32]) -> Matches:
    """Find terms among the elements of n candidates.

    Args:
        terms: Lexemes; those that candidates hold besides are ignored, so that all or only the matching ones may be
            given.
        counts: Shape (n,): how many of the elements below are each candidate's.
        lexemes: Shape (counts.sum(),): the first candidate's in any order, then the second's, …
        stored: Parallel to ``lexemes``: their stored weights.
    """
    wanted = np.array(sorted(terms), dtype=np.int64)
    if not len(wanted):
        nothing = np.zeros(0, dtype=np.intp)
        return Matches(len(counts), (), nothing, nothing, np.zeros(0))
    places = np.minimum(wanted.searchsorted(lexemes), len(wanted) - 1)
    hits = np.flatnonzero(wanted[places] == lexemes)
    owners = np.arange(len(counts)).repeat(counts)[hits]
    return Matches(len(counts), tuple(wanted.tolist()), owners, places[hits], stored[hits].astype(np.float64))


def stored_scores(weights: Mapping[int, float], found: Matches) -> Floats:
    """Scores of candidates by their stored weights: what the database orders them by. Arguments as in `rescore`."""
    return found.added_up(found.each(weights) * found.stored)


def rescore(
    weights: Mapping[int, float],
    found: Matches,
    *,
    lengths: npt.NDArray[Any],
    reference_length: float,
    average_length: float,
    fractional: bool = False,
) -> Floats:
    """Exact BM25 scores of n candidates under today's average length.

    Args:
        weights: The query's, from :func:`query_weights`.
        found: Where the candidates hold its terms, and others perhaps, which have no weight.
        lengths: Shape (n,): the candidates' numbers of terms.
        reference_length: The average length that the stored weights were computed with.
        average_length: Today's average length.
        fractional: Whether terms may occur a fraction of a time.

    Returns:
        One score per candidate, in their order.
    """
    own_lengths = lengths.astype(np.float64)[found.owners]
    frequencies = _term_frequencies(
        found.stored, _saturation(own_lengths, reference_length), None if fractional else own_lengths
    )
    saturation = _saturation(own_lengths, average_length)
    return found.added_up(found.each(weights) * frequencies * MAX_WEIGHT / (frequencies + saturation))


def rescore_in_context(
    weights: Mapping[int, float],
    found: Matches,
    beside: Matches,
    *,
    places: npt.NDArray[np.intp],
    lengths: npt.NDArray[Any],
    beside_lengths: npt.NDArray[Any],
    reference_length: float,
    average_length: float,
    usually_beside: float = 2.0,
) -> Floats:
    """BM25 scores of n candidates, each read together with the chunks beside it, whose terms count `BESIDE` times.

    Frequencies and lengths are added up before they are saturated, as BM25F does with the fields of a document
    (Robertson, Zaragoza and Taylor 2004): a word that a chunk has itself gains little from standing beside it, too.

    Args:
        weights: The query's, from :func:`query_weights`.
        found: Where the candidates hold its terms.
        beside: Where m chunks beside them do; of the same terms.
        places: Shape (m,): the place of the candidate that each of those stands beside.
        lengths: Shape (n,): the candidates' numbers of terms.
        beside_lengths: Shape (m,): the same of the chunks beside them.
        reference_length: The average length that the stored weights were computed with.
        average_length: Today's average length.
        usually_beside: How many chunks stand beside one, on average: 0 to 2.

    Returns:
        One score per candidate, in their order.

    Raises:
        UsageError: ``found`` and ``beside`` are of different terms.
    """
    if found.terms != beside.terms:
        raise UsageError("Chunks and those beside them must be looked through for the same terms.")
    terms = len(found.terms)
    if not terms:
        return np.zeros(found.candidates)
    cells = np.concatenate([found.owners * terms + found.places, places[beside.owners] * terms + beside.places])
    counted = np.concatenate(
        [_counted(found, lengths, reference_length), BESIDE * _counted(beside, beside_lengths, reference_length)]
    )
    frequencies = np.bincount(cells, weights=counted, minlength=found.candidates * terms).reshape(-1, terms)
    whole = lengths + BESIDE * np.bincount(places, weights=beside_lengths, minlength=found.candidates)
    saturation = _saturation(whole.astype(np.float64), average_length * (1 + usually_beside * BESIDE))
    own = np.array([weights.get(term, 0.0) for term in found.terms])
    scores: Floats = (frequencies * MAX_WEIGHT / (frequencies + saturation[:, None])) @ own
    return scores


def _counted(found: Matches, lengths: npt.NDArray[Any], reference_length: float) -> Floats:
    own = lengths.astype(np.float64)[found.owners]
    return _term_frequencies(found.stored, _saturation(own, reference_length), own)


def covered(weights: Mapping[int, float], found: Matches) -> Floats:
    """The weights of those of a query's terms that each candidate holds, added up; arguments as in `rescore`."""
    return found.added_up(found.each(weights))


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
    return K1 * (1 - B + B * lengths / max(average_length, 1e-9))


def _term_frequencies(stored: Floats, saturation: Floats, lengths: Floats | None) -> Floats:
    """Occurrences, by weights; whole ones of chunks of these lengths, or where there are none, as they come out."""
    occurrences: Floats = stored * saturation / np.maximum(MAX_WEIGHT - stored, np.finfo(np.float32).eps)
    return occurrences if lengths is None else np.clip(np.rint(occurrences), 1, np.maximum(lengths, 1))
