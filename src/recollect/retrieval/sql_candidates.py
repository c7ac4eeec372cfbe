"""Candidates by SQL: by meaning and by words at the same time, each way's chunks scored in the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.model import Scope
from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import CandidateRequest, Candidates, Stopwatch, analyzer_for
from recollect.retrieval.enhance.plan import expansion_terms
from recollect.retrieval.lexical import (
    LexicalHits,
    LexicalQuery,
    QueryTerms,
    Scored,
    complete,
    in_context,
    judged,
    lexical_query,
    necessary,
    take,
)
from recollect.store.search import CandidateRows, LexicalRows, RowSelection

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.store.search import SearchRepository

#: A filter that keeps fewer chunks than this is searched exactly, by its document versions.
EXACT_FILTER_CHUNKS = 20_000

# To compare what somebody may read takes time with its size, to find it through an index with the reciprocal of its
# share: the index pays where size times share is at least this.
_INDEX_PAYS = 2_500

# Candidates are fetched again in such steps, up to so many times the limit, where the order of the stored weights does
# not prove the top k.
_WIDEN = 4
_WIDEST = 16


class SqlCandidates:
    """A `recollect.retrieval.candidates.CandidateSource`. Safe to share between threads.

    Args:
        repository: Runs the statements.
        lexical_budget: Document frequency that the first round of candidates by words may add up to.
    """

    def __init__(self, repository: SearchRepository, *, lexical_budget: int) -> None:
        self._repository = repository
        self._budget = lexical_budget

    def candidates(self, scope: Scope, request: CandidateRequest, watch: Stopwatch) -> Candidates:
        """See `CandidateSource.candidates`."""
        found = Candidates(embedding=request.embedding)
        if request.empty:
            return found
        if request.mode == "lexical":
            self._by_words(scope, request, found, watch)
        elif request.mode == "dense":
            with watch.stage("dense"):
                self._by_meaning(scope, request, found)
        elif request.embedding is not None:
            with watch.stage("terms"):
                query = self.prepared(scope, request, proof=False)
            hybrid = _HybridSearch(self._repository, scope, request, request.embedding, query, found, watch)
            first, *others = _attempts(scope, request)
            if self._repository.room_ahead or not query.weights:
                # Each way over a connection of its own.
                with hybrid.dense_ahead(indexed=first) as fetch:
                    with watch.stage("lexical"):
                        worded = hybrid.words()
                    with watch.stage("dense"):
                        nearest, beside = fetch(), None
            else:
                nearest, worded, beside = hybrid.in_one(indexed=first)
            _take_path(request, first, found)
            hybrid.take(nearest, worded, beside, others=others)
        return found

    def frequencies(self, scope: Scope, request: CandidateRequest) -> dict[str, int]:
        """See `CandidateSource.frequencies`."""
        collection, analyzer = request.collection, analyzer_for(request.collection)
        if request.mode == "dense" or collection.reference_length is None:
            return {}
        words = dict.fromkeys((*analyzer.query_terms(request.plan.query), *expansion_terms(request.plan, analyzer)))
        numbers = {word: lexeme(word, collection.collection_id) for word in words}
        if not numbers:
            return {}
        known = self._repository.document_frequencies(scope, collection, list(dict.fromkeys(numbers.values())))
        return {word: known.get(number, 0) for word, number in numbers.items()}

    def similarities(
        self, scope: Scope, embedding: Vectors, chunk_ids: Sequence[int], *, space_ids: Sequence[int]
    ) -> dict[int, float]:
        """See `CandidateSource.similarities`."""
        return self._repository.similarities(scope, embedding, chunk_ids, space_ids=space_ids)

    def prepared(self, scope: Scope, request: CandidateRequest, *, proof: bool) -> LexicalQuery:
        """The query's words with their weights, and those that candidates are taken by; ``proof``: that of `proven`."""
        terms = QueryTerms.of(request)
        known: dict[int, int] = {}
        if terms.wanted and request.collection.reference_length is not None:
            known = self._repository.document_frequencies(scope, request.collection, terms.wanted)
        eligible = None if proof else _there_are(request)
        return lexical_query(request, terms, known, as_of=scope.as_of, budget=self._budget, eligible=eligible)

    def proven(self, scope: Scope, request: CandidateRequest) -> LexicalHits:
        """The best chunks by words alone.

        Candidates come from the rarest terms first. Where the bound on what the other terms could add does not prove
        the first ``top_k`` exact, chunks that hold enough of the others to come up among them are searched too.
        """
        query = self.prepared(scope, request, proof=True)
        if not query.weights:
            return LexicalHits([], {}, exact=True)
        found = self._round(scope, request, query, query.conditions)
        needed = necessary(query, found, top_k=request.top_k)
        if needed:
            found = found.joined(self._round(scope, request, query, needed))
        return found.hits(query, limit=request.limit)

    def _round(
        self, scope: Scope, request: CandidateRequest, query: LexicalQuery, conditions: Sequence[Sequence[int]]
    ) -> Scored:
        """The best chunks that hold a term of each condition; more are fetched where the best are not proven.

        The database orders by the stored weights, which go by the reference length; what it cuts off could have come
        further up under today's average.
        """
        limit = request.limit
        while True:
            rows = self._repository.lexical(
                scope,
                request.collection,
                conditions=conditions,
                query=query.weights,
                limit=limit,
                rows=_rows_of(request),
            )
            found = Scored.of(query, rows.lexical, limit=limit, top_k=request.top_k)
            if found.proven or limit >= _WIDEST * request.limit:
                return found
            limit *= _WIDEN

    def _by_words(self, scope: Scope, request: CandidateRequest, found: Candidates, watch: Stopwatch) -> None:
        with watch.stage("lexical"):
            hits = self.proven(scope, request)
        take(found, hits)
        if request.embedding is not None and found.bm25:
            with watch.stage("complete"):
                spaces = [request.collection.space_id]
                found.similarities = self.similarities(scope, request.embedding, list(found.bm25), space_ids=spaces)

    def _by_meaning(self, scope: Scope, request: CandidateRequest, found: Candidates) -> None:
        if request.embedding is None:
            return
        for indexed in _attempts(scope, request):
            found.dense = self._repository.dense(
                scope,
                request.collection,
                request.embedding,
                limit=request.limit,
                rows=_rows_of(request, indexed=indexed),
                indexed=indexed,
            )
            found.similarities = dict(found.dense)
            _take_path(request, indexed, found)
            if not indexed or _filled(request, len(found.dense)):
                return


@dataclass(frozen=True, slots=True)
class _HybridSearch:
    """One search by meaning and by words, which fills what is found."""

    repository: SearchRepository
    scope: Scope
    request: CandidateRequest
    embedding: Vectors
    query: LexicalQuery
    found: Candidates
    watch: Stopwatch

    def take(
        self, nearest: CandidateRows, worded: LexicalRows, beside: LexicalRows | None, *, others: Sequence[bool]
    ) -> None:
        """Take what both ways found; ``others``: how to go by meaning again where an index gave up too early."""
        for indexed in others:
            if _filled(self.request, len(nearest.chunk_ids)):
                break
            with self.watch.stage("dense"), self.dense_ahead(indexed=indexed) as fetch:
                nearest, beside = fetch(), None
            _take_path(self.request, indexed, self.found)
        complete(self.found, self.query, nearest)
        if self.query.weights and self.query.usually_beside:
            with self.watch.stage("context"):
                if beside is None:
                    beside = self.repository.beside(self.scope, sorted(self.found.bm25))
                self.found.in_context = in_context(self.query, worded.joined(nearest.lexical), beside)

    def in_one(self, *, indexed: bool) -> tuple[CandidateRows, LexicalRows, LexicalRows | None]:
        """Both ways in one statement, with what stands beside all of them; None: the words are looked for once more."""
        with self.watch.stage("both"):
            both = self.repository.both(
                self.scope,
                self.request.collection,
                self.embedding,
                conditions=self.query.conditions,
                query=self.query.weights,
                limit=self.request.limit,
                rows=_rows_of(self.request, indexed=indexed),
                indexed=indexed,
                vectors=self.request.needs_vectors,
                context=bool(self.query.usually_beside),
            )
        with self.watch.stage("lexical"):
            worded = self.words(both.worded)
        return both.nearest, worded, both.beside if worded is both.worded.lexical else None

    def dense_ahead(self, *, indexed: bool) -> AbstractContextManager[Callable[[], CandidateRows]]:
        """What is found by meaning, over a connection of its own."""
        return self.repository.dense_ahead(
            self.scope,
            self.request.collection,
            self.embedding,
            limit=self.request.limit,
            rows=_rows_of(self.request, indexed=indexed),
            indexed=indexed,
            vectors=self.request.needs_vectors,
        )

    def words(self, rows: CandidateRows | None = None) -> LexicalRows:
        """Take what is found by words; ``rows``: what a first look has found, so that none is needed."""
        query, limit = self.query, self.request.limit
        if not query.weights:
            take(self.found, LexicalHits([], {}, exact=True))
            return LexicalRows.read(())
        while True:
            if rows is None:
                rows = self.repository.lexical(
                    self.scope,
                    self.request.collection,
                    conditions=query.conditions,
                    query=query.weights,
                    limit=limit,
                    rows=_rows_of(self.request),
                    embedding=self.embedding,
                    vectors=self.request.needs_vectors,
                )
            if not query.narrowed or len(rows.lexical) >= limit:
                break
            query, rows = query.widened(), None
        # Fusion reads far beyond the first ten: what a proof would add hardly moves it, and costs twice.
        take(self.found, judged(query, rows.lexical, top_k=self.request.top_k, limit=limit))
        self.found.similarities, self.found.vectors = rows.similarities, rows.vectors
        return rows.lexical


def _rows_of(request: CandidateRequest, *, indexed: bool = True) -> RowSelection:
    return RowSelection(request.version_ids, request.past if indexed else None)


def _attempts(scope: Scope, request: CandidateRequest) -> tuple[bool, ...]:
    """Whether to go through approximate indexes, and what to do where they give up too early."""
    # The collection's own holds the present; under a rare filter it would return too little, to somebody who may read
    # little of the collection, too.
    confined = request.versions is not None or request.collection.access_ids is not None
    selective = confined and _there_are(request) <= EXACT_FILTER_CHUNKS and not _reads_much(request)
    indexed = request.past is not None or (request.collection.indexed and scope.as_of is None and not selective)
    return (True, False) if indexed else (False,)


def _filled(request: CandidateRequest, found: int) -> bool:
    if request.past is not None:
        # How much was known then is not counted; a comparison of so little takes no time.
        return found >= request.limit or not request.past.indexed
    return found >= min(request.limit, _there_are(request))


def _there_are(request: CandidateRequest) -> int:
    return request.versions.chunk_count if request.versions else request.collection.chunk_count


def _reads_much(request: CandidateRequest) -> bool:
    """Whether the caller's rights alone leave so much of the collection that its index finds it sooner."""
    collection = request.collection
    if request.versions is not None or collection.access_ids is None:
        return False
    share = collection.chunk_count / max(collection.chunk_count, collection.stats_chunks, 1)
    return collection.chunk_count * share >= _INDEX_PAYS


def _take_path(request: CandidateRequest, attempt: bool, found: Candidates) -> None:
    indexed = attempt and (request.past is None or request.past.indexed)
    found.paths["dense"] = "index" if indexed else "exact"
    found.dense_exact = not indexed
