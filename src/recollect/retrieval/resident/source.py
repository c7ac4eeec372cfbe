"""Candidates from copies of collections in memory, where there is one; from the database otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect.fair_share import FairShare
from recollect.retrieval.candidates import CandidateRequest, Candidates, CandidateSource, Stopwatch
from recollect.retrieval.lexical import Counted, LexicalQuery, QueryTerms, lexical_query
from recollect.retrieval.resident import kernels
from recollect.retrieval.resident.generation import Eligible, Generation, Part
from recollect.retrieval.resident.kernels import Rows
from recollect.retrieval.resident.segment import codes_of

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model import Scope
    from recollect.model.collection import Collection

#: What replies name as the path of a search that was answered from memory.
RESIDENT = "resident"

# Of so many chunks, whose codes are nearest to the query's, the vectors are compared; of more than 100,000 chunks of
# more, which grow by this power.
_RESCORED = 1_500
_GROWTH = 0.4

# This many searches compute at once: while one compares codes, the other holds the interpreter's lock. More threads
# would only wait for that lock, and each that waits slows down the one that holds it. As many places again are for
# tenants that have none.
_AT_ONCE = 2

_NO_ROWS = np.zeros(0, dtype=np.int32)


class ResidentCandidates:
    """A `recollect.retrieval.candidates.CandidateSource`. Safe to share between threads.

    Args:
        find: Gives the copy of a collection at its revision, or a later one; None where there is none.
        database: Finds candidates where no copy does.
    """

    def __init__(self, find: Callable[[Scope, Collection], Generation | None], database: CandidateSource) -> None:
        self._find = find
        self._database = database
        self._places = FairShare(_AT_ONCE, spare=_AT_ONCE)

    def candidates(self, scope: Scope, request: CandidateRequest, watch: Stopwatch) -> Candidates:
        """See `CandidateSource.candidates`."""
        if request.empty or scope.as_of is not None or request.past is not None or request.collection.hidden:
            return self._database.candidates(scope, request, watch)
        with watch.stage(RESIDENT):
            generation = self._find(scope, request.collection)
            if generation is not None:
                with self._places.place_in_thread((scope.tenant_id, None)):
                    return _Search(request, generation).found()
        return self._database.candidates(scope, request, watch)

    def frequencies(self, scope: Scope, request: CandidateRequest) -> Mapping[str, int]:
        """See `CandidateSource.frequencies`."""
        return self._database.frequencies(scope, request)

    def similarities(
        self, scope: Scope, embedding: Vectors, chunk_ids: Sequence[int], *, space_ids: Sequence[int]
    ) -> dict[int, float]:
        """See `CandidateSource.similarities`."""
        return self._database.similarities(scope, embedding, chunk_ids, space_ids=space_ids)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of some rows of a part.

    Attributes:
        rows: Ascending.
        near: Which of them were found by meaning.
        worded: Which of them were found by words.
    """

    part: Part
    rows: Rows
    near: npt.NDArray[np.bool_]
    worded: npt.NDArray[np.bool_]


class _Search:
    """One search of one copy."""

    def __init__(self, request: CandidateRequest, generation: Generation) -> None:
        self._request = request
        self._generation = generation
        self._embedding = None if request.embedding is None else _as_stored(request.embedding)
        self._eligible = [part.eligible(request.versions, request.collection.access_ids) for part in generation.parts]
        self._query = LexicalQuery({})
        if request.mode != "dense":
            terms = QueryTerms.of(request)
            known = generation.term_counts.of(terms.wanted) if terms.wanted else {}
            self._query = lexical_query(request, terms, known, as_of=None, budget=sys.maxsize, eligible=None)

    def found(self) -> Candidates:
        """The candidates."""
        request, query = self._request, self._query
        compares = self._embedding is not None
        near = [self._near(*one) for one in self._parts] if compares and request.mode != "lexical" else None
        worded = [self._worded(*one) for one in self._parts] if query.weights else None
        parts = [
            _joined(part, None if near is None else near[place], None if worded is None else worded[place])
            for place, part in enumerate(self._generation.parts)
        ]
        found = Candidates(embedding=request.embedding)
        chunk_ids = _end_to_end([one.part.segment.chunk_ids[one.rows] for one in parts])
        if compares:
            self._compare(found, parts, chunk_ids)
        if request.mode != "dense":
            self._read(found, parts, chunk_ids)
        return found

    @property
    def _parts(self) -> Sequence[tuple[Part, Eligible]]:
        return list(zip(self._generation.parts, self._eligible, strict=True))

    def _near(self, part: Part, eligible: Eligible) -> Rows:
        """The rows among which the nearest are."""
        if eligible.rows is not None:
            rows, limit = eligible.rows, self._request.limit
            if len(rows) <= 2 * limit:
                return rows
            return _best(rows, kernels.products(part.segment.vectors, self._vector, rows), limit)
        segment = part.segment
        rescored = max(_RESCORED, 10 * self._request.limit)
        growth = max(1.0, eligible.count / 100_000) ** _GROWTH
        ranges = segment.lists.probed(self._vector, eligible.count / len(segment))
        limit = int(rescored * growth)
        query = codes_of(self._vector[None])[:, 0]
        places = kernels.nearest_codes(segment.codes, query, ranges, mask=eligible.embedded, limit=limit)
        rows = segment.lists.rows_at(places)
        return _best(rows, kernels.products(segment.vectors, self._vector, rows), self._request.limit)

    @property
    def _vector(self) -> npt.NDArray[np.float32]:
        if self._embedding is None:  # nothing asks for it then
            raise ValueError("The search has no vector.")
        return self._embedding

    def _worded(self, part: Part, eligible: Eligible) -> Rows:
        """The rows among which those are that score most by words."""
        query, segment = self._query, part.segment
        ranges, weights, saturation = segment.query(query.weights, query.average_length)
        scores = part.scratch()
        rows = kernels.best_by_words(
            segment.holders,
            segment.counts,
            ranges,
            weights,
            segment.lengths,
            saturation,
            scores=scores,
            mask=eligible.mask,
            limit=self._request.limit,
        )
        part.give_back(scores)
        return rows

    def _compare(self, found: Candidates, parts: Sequence[_Found], chunk_ids: npt.NDArray[np.int64]) -> None:
        """Take the similarities of everything, and the vectors where they are wanted."""
        similarities = _end_to_end(
            [kernels.products(one.part.segment.vectors, self._vector, one.rows) for one in parts]
        )
        there = _end_to_end([one.part.segment.embedded[one.rows] for one in parts]) != 0
        ids = chunk_ids[there]
        if self._request.mode != "lexical":
            near = _end_to_end([one.near for one in parts]) & there
            found.dense = _ranked(chunk_ids[near], similarities[near], self._request.limit)
            found.paths["dense"] = RESIDENT
            found.dense_exact = all(one.rows is not None for one in self._eligible)
        if self._request.mode == "dense":
            found.similarities = dict(found.dense)
            return
        found.similarities = dict(zip(ids.tolist(), similarities[there].tolist(), strict=True))
        if self._request.needs_vectors and self._request.mode == "hybrid":
            vectors = _end_to_end([one.part.segment.vectors[one.rows] for one in parts]).astype(np.float32)
            found.vectors = dict(zip(ids.tolist(), vectors[there], strict=True))

    def _read(self, found: Candidates, parts: Sequence[_Found], chunk_ids: npt.NDArray[np.int64]) -> None:
        """Take the scores by words of everything that was found."""
        query = self._query
        found.weights, found.lexical_exact = query.weights, query.whole or not query.weights
        found.paths["lexical"] = RESIDENT if query.weights else "no terms"
        read = [_words_beside(one, query.terms) for one in parts]
        own, beside = (
            Counted(
                query.terms,
                _end_to_end([one[which].counts for one in read], axis=1),
                _end_to_end([one[which].lengths for one in read]),
            )
            for which in (0, 1)
        )
        # Whatever words are not known of scores nothing, and is no candidate by words.
        known = _end_to_end([one.part.segment.lengths[one.rows] for one in parts]) >= 0
        ids = chunk_ids[known].tolist()
        coverage = own.coverage(query)
        if query.weights:
            scores = own.scores(query)
            worded = _end_to_end([one.worded for one in parts])
            found.lexical = _ranked(chunk_ids[worded], scores[worded], self._request.limit)
            found.bm25 = dict(zip(ids, scores[known].tolist(), strict=True))
        if len(coverage):
            found.coverage = dict(zip(ids, coverage[known].tolist(), strict=True))
        if self._request.mode == "lexical":
            found.bm25 = dict(found.lexical)
            found.coverage = {one: share for one, share in found.coverage.items() if one in found.bm25}
            found.similarities = {one: near for one, near in found.similarities.items() if one in found.bm25}
        elif query.weights and query.usually_beside:
            found.in_context = dict(zip(ids, own.in_context(query, beside)[known].tolist(), strict=True))


def _words_beside(one: _Found, terms: Sequence[int]) -> tuple[Counted, Counted]:
    """How often words stand in rows, and in those before and behind them."""
    segment = one.part.segment
    rows = np.concatenate((one.rows, segment.before[one.rows], segment.after[one.rows]))
    counts = kernels.held(segment.holders, segment.counts, segment.ranges(terms), rows)
    counts = counts.reshape(len(terms), 3, len(one.rows))
    lengths = np.maximum(np.where(rows < 0, 0, segment.lengths[rows]), 0).reshape(3, -1).astype(np.float64)
    own = Counted(terms, counts[:, 0].astype(np.float64), lengths[0])
    return own, Counted(terms, counts[:, 1:].sum(axis=1, dtype=np.float64), lengths[1] + lengths[2])


def _ranked(chunk_ids: npt.NDArray[np.int64], scores: npt.NDArray[Any], limit: int) -> list[tuple[int, float]]:
    """The best by score; of equal ones, the smaller ids."""
    best = np.lexsort((chunk_ids, -scores))[:limit]
    return list(zip(chunk_ids[best].tolist(), scores[best].tolist(), strict=True))


def _end_to_end(arrays: Sequence[npt.NDArray[Any]], axis: int = 0) -> npt.NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=axis)


def _best(rows: Rows, similarities: npt.NDArray[np.float32], limit: int) -> Rows:
    """Those of the rows whose similarities are the greatest."""
    if len(rows) <= limit:
        return rows
    least = np.partition(similarities, len(rows) - limit)[len(rows) - limit]
    found: Rows = rows[similarities >= least]
    return found


def _as_stored(embedding: Vectors) -> npt.NDArray[np.float32]:
    """A query's vector as it is compared: in half precision, as the database does."""
    return np.ascontiguousarray(embedding.astype(np.float16).astype(np.float32))


def _joined(part: Part, near: Rows | None, worded: Rows | None) -> _Found:
    if near is None or worded is None:
        one = near if worded is None else worded
        rows = _NO_ROWS if one is None else one
        return _Found(part, rows, np.full(len(rows), near is not None), np.full(len(rows), worded is not None))
    rows = np.sort(np.concatenate([near, worded]))
    first = np.empty(len(rows), dtype=np.bool_)
    first[:1] = True
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    rows = rows[first]
    is_near, is_worded = np.zeros((2, len(rows)), dtype=np.bool_)
    is_near[rows.searchsorted(near)] = True
    is_worded[rows.searchsorted(worded)] = True
    return _Found(part, rows, is_near, is_worded)
