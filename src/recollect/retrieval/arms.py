"""Both arms of a search, and each one's candidates scored in the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from recollect.model import Scope, SearchMode
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.enhance.plan import QueryPlan, query_vector
from recollect.retrieval.lexical import (
    LexicalArm,
    LexicalHits,
    LexicalQuery,
    PooledStatistics,
    covered,
    rescored,
    words_in,
)

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.retrieval.stopwatch import Stopwatch
    from recollect.store.collections import Collection
    from recollect.store.filters import MatchingVersions
    from recollect.store.past import PastParts
    from recollect.store.search import ArmRows, SearchRepository

#: A filter that keeps fewer chunks than this is searched exactly, by its document versions.
EXACT_FILTER_CHUNKS = 20_000

# To compare what somebody may read takes time with its size, to find it through an index with the reciprocal of its
# share: the index pays where size times share is at least this.
_INDEX_PAYS = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRequest:
    """What both arms are asked.

    Attributes:
        place: The collection.
        plan: The query, and what was added to it.
        mode: Which arms to run.
        top_k: Passages wanted: the lexical arm proves as many exact.
        limit: Candidates that each arm contributes.
        versions: The document versions that pass the filter; None: no filter.
        needs_similarity: Whether cosine similarities are wanted even where only the lexical arm runs.
        needs_vectors: Whether every candidate's stored vector is wanted.
        past: The parts of the history where what was known at the scope's moment is looked for through indexes; None:
            by ``versions``, or in the present.
        pooled: Of a search of several collections: the statistics of all; None: this one is searched alone.
    """

    place: Collection
    plan: QueryPlan
    mode: SearchMode
    top_k: int
    limit: int
    versions: MatchingVersions | None
    needs_similarity: bool
    needs_vectors: bool = False
    past: PastParts | None = None
    pooled: PooledStatistics | None = None

    @property
    def version_ids(self) -> list[int] | None:
        """The versions that the arms may return, None for all."""
        return self.versions.version_ids if self.versions else None


@dataclass(slots=True)
class ArmResults:
    """What the arms gave, and what is known of each candidate in the end.

    Attributes:
        dense: (chunk_id, cosine similarity), best first.
        lexical: (chunk_id, BM25 score), best first.
        similarities: Of every candidate of either arm, where a query vector was computed.
        bm25: Of every candidate of either arm, where the query has terms.
        coverage: The share of the query's words, by their rarity in the collection, that each candidate holds.
        paths: Which path each arm took.
        embedding: The query's vector, where one was computed.
        vectors: Stored vectors: of every candidate where that was asked for, otherwise of some.
        weights: The query's weight of each lexeme that the collection has.
        dense_exact: Whether the dense arm compared every chunk.
        lexical_exact: Whether the lexical arm is known to have found its best.
    """

    dense: list[tuple[int, float]] = field(default_factory=list)
    lexical: list[tuple[int, float]] = field(default_factory=list)
    similarities: dict[int, float] = field(default_factory=dict)
    bm25: dict[int, float] = field(default_factory=dict)
    coverage: dict[int, float] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    embedding: Vectors | None = None
    vectors: dict[int, Vectors] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
    dense_exact: bool = True
    lexical_exact: bool = True

    @property
    def known(self) -> set[int]:
        """Every chunk of which a score is known."""
        return {*self.similarities, *self.bm25}

    @property
    def exact(self) -> bool:
        """Whether both arms are known to have found their best."""
        return self.dense_exact and self.lexical_exact


class Arms:
    """Runs the arms. Safe to share between threads.

    Args:
        repository: Runs the statements.
        embedder: Embeds the query.
        lexical_budget: Document frequency that the first round of lexical candidates may add up to.
    """

    def __init__(self, repository: SearchRepository, embedder: EmbeddingProvider, *, lexical_budget: int) -> None:
        self._repository = repository
        self._embedder = embedder
        self._lexical = LexicalArm(repository, budget=lexical_budget)

    def run(self, scope: Scope, request: ArmRequest, watch: Stopwatch) -> ArmResults:
        """Run the arms that the request asks for."""
        results = ArmResults()
        if (request.versions is not None and not request.versions.version_ids) or (
            request.past is not None and not request.past
        ):
            return results
        if request.mode != "lexical" or request.needs_similarity:
            with watch.stage("embed"):
                results.embedding = query_vector(request.plan, self._embedder)
        if request.mode == "lexical":
            self._run_lexical(scope, request, results, watch)
        elif request.mode == "dense":
            with watch.stage("dense"):
                self._run_dense(scope, request, results)
        else:
            self._run_both(scope, request, results, watch)
        return results

    def frequencies(self, scope: Scope, request: ArmRequest) -> dict[str, int]:
        """In how many chunks of the request's collection the words of its query stand; none where no words count."""
        if request.mode == "dense":
            return {}
        return self._lexical.frequencies(scope, request.place, analyzer_of(request.place.language), request.plan)

    def _run_lexical(self, scope: Scope, request: ArmRequest, results: ArmResults, watch: Stopwatch) -> None:
        with watch.stage("lexical"):
            hits = self._lexical.search(
                scope,
                request.place,
                analyzer_of(request.place.language),
                request.plan.query,
                top_k=request.top_k,
                limit=request.limit,
                version_ids=request.version_ids,
                plan=request.plan,
                past=request.past,
                pooled=request.pooled,
            )
        self._take_lexical(hits, results)
        if results.embedding is not None and results.bm25:
            with watch.stage("complete"):
                results.similarities = self._repository.similarities(scope, results.embedding, list(results.bm25))

    def _run_dense(self, scope: Scope, request: ArmRequest, results: ArmResults) -> None:
        if results.embedding is None:
            return
        for indexed in self._attempts(scope, request):
            results.dense = self._repository.dense(
                scope,
                request.place,
                results.embedding,
                limit=request.limit,
                version_ids=request.version_ids,
                indexed=indexed,
                past=request.past if indexed else None,
            )
            results.similarities = dict(results.dense)
            self._take_dense_path(request, indexed, results)
            if not indexed or self._filled(request, len(results.dense)):
                return

    def _run_both(self, scope: Scope, request: ArmRequest, results: ArmResults, watch: Stopwatch) -> None:
        if results.embedding is None:
            return
        with watch.stage("terms"):
            query = self._lexical.prepare(
                scope,
                request.place,
                analyzer_of(request.place.language),
                request.plan,
                version_ids=request.version_ids,
                eligible=self._there_are(request),
                past=request.past,
                pooled=request.pooled,
            )
        first, *others = self._attempts(scope, request)
        with self._dense_ahead(scope, request, results.embedding, indexed=first) as nearest:
            with watch.stage("lexical"):
                self._run_words(scope, request, query, results)
            with watch.stage("dense"):
                found = nearest()
        self._take_dense_path(request, first, results)
        for indexed in others:
            if self._filled(request, len(found.chunk_ids)):
                break
            with watch.stage("dense"), self._dense_ahead(scope, request, results.embedding, indexed=indexed) as nearest:
                found = nearest()
            self._take_dense_path(request, indexed, results)
        results.dense = list(found.similarities.items())
        results.similarities |= found.similarities
        results.vectors |= found.vectors
        words = words_in(query, found.lexical)
        if query.weights:
            results.bm25 |= rescored(query, found.lexical, words)
        results.coverage |= covered(query, found.lexical, words)

    def _dense_ahead(
        self, scope: Scope, request: ArmRequest, embedding: Vectors, *, indexed: bool
    ) -> AbstractContextManager[Callable[[], ArmRows]]:
        return self._repository.hybrid_dense(
            scope,
            request.place,
            embedding,
            limit=request.limit,
            version_ids=request.version_ids,
            indexed=indexed,
            past=request.past if indexed else None,
            vectors=request.needs_vectors,
        )

    def _run_words(self, scope: Scope, request: ArmRequest, query: LexicalQuery, results: ArmResults) -> None:
        if results.embedding is None or not query.weights:
            self._take_lexical(LexicalHits([], {}, exact=True), results)
            return
        found = self._rows_of_words(scope, request, query, results.embedding)
        if query.narrowed and len(found.lexical) < request.limit:
            query = query.widened()
            found = self._rows_of_words(scope, request, query, results.embedding)
        # Fusion reads far beyond the first ten: what a proof would add hardly moves it, and costs twice.
        hits = self._lexical.judge(query, found.lexical, top_k=request.top_k, limit=request.limit)
        self._take_lexical(hits, results)
        results.similarities, results.vectors = found.similarities, found.vectors

    def _rows_of_words(self, scope: Scope, request: ArmRequest, query: LexicalQuery, embedding: Vectors) -> ArmRows:
        return self._repository.hybrid_lexical(
            scope,
            request.place,
            embedding,
            conditions=query.conditions,
            query=query.weights,
            limit=request.limit,
            version_ids=request.version_ids,
            past=request.past,
            vectors=request.needs_vectors,
        )

    def _attempts(self, scope: Scope, request: ArmRequest) -> tuple[bool, ...]:
        """Whether to go through the approximate index, and what to do where it gives up too early."""
        # Its indexes hold the present; under a rare filter one would return too little, to somebody who may read little
        # of the collection, too.
        confined = request.versions is not None or request.place.access_ids is not None
        selective = confined and self._there_are(request) <= EXACT_FILTER_CHUNKS and not _reads_much(request)
        indexed = request.past is not None or (request.place.indexed and scope.as_of is None and not selective)
        return (True, False) if indexed else (False,)

    def _filled(self, request: ArmRequest, found: int) -> bool:
        if request.past is not None:
            # How much was known then is not counted; a comparison of so little takes no time.
            return found >= request.limit or not request.past.indexed
        return found >= min(request.limit, self._there_are(request))

    def _there_are(self, request: ArmRequest) -> int:
        return request.versions.chunk_count if request.versions else request.place.chunk_count

    def _take_dense_path(self, request: ArmRequest, attempt: bool, results: ArmResults) -> None:
        indexed = attempt and (request.past is None or request.past.indexed)
        results.paths["dense"] = "index" if indexed else "exact"
        results.dense_exact = not indexed

    def _take_lexical(self, hits: LexicalHits, results: ArmResults) -> None:
        results.lexical, results.paths["lexical"] = hits.scores, hits.path
        results.bm25 = dict(hits.scores)
        results.coverage = dict(hits.coverage)
        results.weights = hits.weights
        results.lexical_exact = hits.exact


@lru_cache(maxsize=32)
def analyzer_of(language: str) -> Analyzer:
    """The analyzer of a language, made once in a process."""
    return Analyzer(language)


def _reads_much(request: ArmRequest) -> bool:
    """Whether the caller's rights alone leave so much of the collection that its index finds it sooner."""
    place = request.place
    if request.versions is not None or place.access_ids is None:
        return False
    share = place.chunk_count / max(place.chunk_count, place.stats_chunks, 1)
    return place.chunk_count * share >= _INDEX_PAYS
