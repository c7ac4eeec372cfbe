"""Candidates from copies of collections in memory, where there is one; from the database otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from recollect.retrieval.candidates import CandidateRequest, Candidates, CandidateSource, Stopwatch
from recollect.retrieval.lexical import (
    MAX_WEIGHT,
    LexicalQuery,
    QueryTerms,
    covered,
    in_context,
    lexical_query,
    rescored,
    weights,
    words_in,
)
from recollect.retrieval.resident import kernels
from recollect.retrieval.resident.generation import Eligible, Generation, Part
from recollect.retrieval.resident.kernels import Rows
from recollect.retrieval.resident.segment import codes_of
from recollect.store.search import LexicalRows

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model import Scope
    from recollect.model.collection import Collection

#: What replies name as the path of a search that was answered from memory.
RESIDENT = "resident"

# Of so many chunks, whose codes are nearest to the query's, the vectors are compared; of large collections of more.
_RESCORED = 1_000
_MORE_RESCORED = 2.0

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

    def candidates(self, scope: Scope, request: CandidateRequest, watch: Stopwatch) -> Candidates:
        """See `CandidateSource.candidates`."""
        if request.empty or scope.as_of is not None or request.past is not None or request.collection.hidden:
            return self._database.candidates(scope, request, watch)
        with watch.stage(RESIDENT):
            generation = self._find(scope, request.collection)
            if generation is not None:
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
        growth = max(1.0, eligible.count / 100_000) ** 0.5
        query = codes_of(self._vector[None])[:, 0]
        rows = kernels.nearest_codes(
            segment.codes, query, mask=eligible.embedded, limit=int(rescored * min(growth, _MORE_RESCORED))
        )
        return _best(rows, kernels.products(segment.vectors, self._vector, rows), self._request.limit)

    @property
    def _vector(self) -> npt.NDArray[np.float32]:
        if self._embedding is None:  # nothing asks for it then
            raise ValueError("The search has no vector.")
        return self._embedding

    def _worded(self, part: Part, eligible: Eligible) -> Rows:
        """The rows among which those are that score most by words."""
        query, segment = self._query, part.segment
        scores = part.scratch()
        try:
            kernels.add_words(
                segment.holders,
                segment.counts,
                segment.ranges(list(query.weights)),
                np.array(list(query.weights.values()), dtype=np.float32) * np.float32(MAX_WEIGHT),
                part.saturation(query.average_length),
                scores,
            )
            return kernels.best(scores, mask=eligible.mask, limit=self._request.limit)
        finally:
            part.give_back(scores)

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
        terms = sorted(query.weights.keys() | query.rarity.keys())
        read = [self._rows(one, terms) for one in parts]
        rows = _merged([own for own, _ in read])
        words = words_in(query, rows)
        if query.weights:
            found.bm25 = rescored(query, rows, words)
            # Whatever words are not known of scores nothing, and is no candidate by words.
            worded = chunk_ids[_end_to_end([one.worded for one in parts])].tolist()
            scores = np.array([found.bm25[one] for one in worded])
            found.lexical = _ranked(np.array(worded, dtype=np.int64), scores, self._request.limit)
        found.coverage = covered(query, rows, words)
        if self._request.mode == "lexical":
            self._keep_hits(found)
        elif query.weights and query.usually_beside:
            found.in_context = in_context(query, rows, _merged([beside for _, beside in read]))

    def _keep_hits(self, found: Candidates) -> None:
        hits = dict(found.lexical)
        found.bm25 = hits
        found.coverage = {one: share for one, share in found.coverage.items() if one in hits}
        found.similarities = {one: near for one, near in found.similarities.items() if one in hits}

    def _rows(self, one: _Found, terms: Sequence[int]) -> tuple[LexicalRows, LexicalRows]:
        """The query's words in each row of a part; and in the rows beside, by the id of the one they stand beside."""
        segment = one.part.segment
        rows = one.rows[segment.lengths[one.rows] >= 0]
        ranges = segment.ranges(terms)
        beside = np.concatenate([segment.before[rows], segment.after[rows]])
        there = beside >= 0
        ids = segment.chunk_ids[rows]
        return (
            self._words_of(one.part, rows, ids, terms, ranges),
            self._words_of(one.part, beside[there], np.concatenate([ids, ids])[there], terms, ranges),
        )

    def _words_of(
        self,
        part: Part,
        rows: Rows,
        chunk_ids: npt.NDArray[np.int64],
        terms: Sequence[int],
        ranges: kernels.Ranges,
    ) -> LexicalRows:
        segment = part.segment
        counts = kernels.held(segment.holders, segment.counts, ranges, rows).T
        lengths = segment.lengths[rows]
        owners, places = np.nonzero(counts)
        return LexicalRows(
            chunk_ids.tolist(),
            lengths.astype(np.float64),
            np.bincount(owners, minlength=len(rows)).astype(np.int32),
            np.array(terms, dtype=np.int32)[places],
            weights(counts[owners, places], lengths[owners], average_length=self._query.reference_length),
        )


def _ranked(chunk_ids: npt.NDArray[np.int64], scores: npt.NDArray[Any], limit: int) -> list[tuple[int, float]]:
    """The best by score; of equal ones, the smaller ids."""
    best = np.lexsort((chunk_ids, -scores))[:limit]
    return list(zip(chunk_ids[best].tolist(), scores[best].tolist(), strict=True))


def _end_to_end(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


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


def _merged(rows: Sequence[LexicalRows]) -> LexicalRows:
    first, *others = rows
    for other in others:
        first = first.joined(other)
    return first
