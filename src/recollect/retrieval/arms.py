"""Both arms of a search, run at the same time, and each one's candidates scored in the other."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from recollect.model import Scope, SearchMode
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.enhance.plan import QueryPlan, query_vector
from recollect.retrieval.lexical import LexicalArm, LexicalHits, rescored

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider, Vectors
    from recollect.retrieval.stopwatch import Stopwatch
    from recollect.store.collections import Collection
    from recollect.store.filters import MatchingVersions
    from recollect.store.search import SearchRepository

#: A filter that keeps fewer chunks than this is searched exactly, by its document versions.
EXACT_FILTER_CHUNKS = 20_000


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
    """

    place: Collection
    plan: QueryPlan
    mode: SearchMode
    top_k: int
    limit: int
    versions: MatchingVersions | None
    needs_similarity: bool
    needs_vectors: bool = False

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
        paths: Which path each arm took.
        embedding: The query's vector, where one was computed.
        vectors: Stored vectors: of every candidate where that was asked for, otherwise of some.
        weights: The query's weight of each lexeme that the collection has.
        exact: Whether both arms are known to have found their best.
    """

    dense: list[tuple[int, float]] = field(default_factory=list)
    lexical: list[tuple[int, float]] = field(default_factory=list)
    similarities: dict[int, float] = field(default_factory=dict)
    bm25: dict[int, float] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    embedding: Vectors | None = None
    vectors: dict[int, Vectors] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
    exact: bool = True


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
        # The lexical arm needs no embedding: it runs while the query is embedded.
        self._workers = ThreadPoolExecutor(max_workers=8, thread_name_prefix="recollect-lexical")

    def close(self) -> None:
        """Let the worker threads end."""
        self._workers.shutdown(wait=False)

    def run(self, scope: Scope, request: ArmRequest, watch: Stopwatch) -> ArmResults:
        """Run the arms that the request asks for."""
        results = ArmResults()
        if request.versions is not None and not request.versions.version_ids:
            return results
        lexical: Future[LexicalHits] | None = None
        if request.mode != "dense":
            lexical = self._workers.submit(self._run_lexical, scope, request, watch)
        embedding: Vectors | None = None
        if request.mode != "lexical" or request.needs_similarity:
            with watch.stage("embed"):
                results.embedding = embedding = query_vector(request.plan, self._embedder)
        if request.mode != "lexical" and embedding is not None:
            with watch.stage("dense"):
                self._run_dense(scope, request, embedding, results)
        hits = lexical.result() if lexical else None
        if hits:
            results.lexical, results.paths["lexical"] = hits.scores, hits.path
            results.weights = hits.weights
            results.exact = results.exact and hits.exact
        with watch.stage("complete"):
            self._complete(scope, request, hits, results)
        return results

    def _run_lexical(self, scope: Scope, request: ArmRequest, watch: Stopwatch) -> LexicalHits:
        with watch.stage("lexical"):
            return self._lexical.search(
                scope,
                request.place,
                analyzer_of(request.place.language),
                request.plan.query,
                top_k=request.top_k,
                limit=request.limit,
                version_ids=request.version_ids,
                plan=request.plan,
                # Fusion reads far beyond the first ten: what the proof would add hardly moves it, and costs twice.
                prove=request.mode == "lexical",
            )

    def _run_dense(self, scope: Scope, request: ArmRequest, embedding: Vectors, results: ArmResults) -> None:
        place, versions = request.place, request.versions
        # The index holds the present, and under a rare filter it would return too little.
        selective = versions is not None and versions.chunk_count <= EXACT_FILTER_CHUNKS
        indexed = place.indexed and scope.as_of is None and not selective
        found = self._dense(scope, request, embedding, indexed=indexed)
        there_are = versions.chunk_count if versions else place.chunk_count
        if indexed and len(found) < min(request.limit, there_are):
            # The index gave up before it had found as many as there are.
            indexed = False
            found = self._dense(scope, request, embedding, indexed=False)
        results.dense = found
        results.paths["dense"] = "index" if indexed else "exact"
        results.exact = not indexed

    def _dense(
        self, scope: Scope, request: ArmRequest, embedding: Vectors, *, indexed: bool
    ) -> list[tuple[int, float]]:
        return self._repository.dense(
            scope, request.place, embedding, limit=request.limit, version_ids=request.version_ids, indexed=indexed
        )

    def _complete(self, scope: Scope, request: ArmRequest, hits: LexicalHits | None, results: ArmResults) -> None:
        """Score each arm's candidates in the other arm too: fusion then compares like with like."""
        results.similarities = dict(results.dense)
        results.bm25 = dict(results.lexical)
        only_lexical = [chunk_id for chunk_id in results.bm25 if chunk_id not in results.similarities]
        only_dense = [chunk_id for chunk_id in results.similarities if chunk_id not in results.bm25]
        vectors_of = only_lexical if results.embedding is not None else []
        if request.needs_vectors:
            vectors_of = [*results.similarities, *only_lexical]
        lexical_of = only_dense if hits is not None and hits.weights else []
        results.vectors, lexical = self._repository.complete(scope, vectors_of=vectors_of, lexical_of=lexical_of)
        if results.embedding is not None:
            known = [chunk_id for chunk_id in only_lexical if chunk_id in results.vectors]
            if known:
                similarities = np.stack([results.vectors[chunk_id] for chunk_id in known]) @ results.embedding
                results.similarities |= dict(zip(known, similarities.tolist(), strict=True))
        if hits is not None:
            results.bm25 |= rescored(request.place, hits.weights, lexical)


@lru_cache(maxsize=32)
def analyzer_of(language: str) -> Analyzer:
    """The analyzer of a language, made once in a process."""
    return Analyzer(language)
