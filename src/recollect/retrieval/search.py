"""One search: both arms, fused, with the passages fetched."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.model import ArmScore, RetrievalOptions, RetrievedContext, Scope, SearchExplain, SearchReply
from recollect.model.filter import parse_filter
from recollect.retrieval import fusion
from recollect.retrieval.arms import ArmRequest, ArmResults, Arms
from recollect.retrieval.stopwatch import Stopwatch
from recollect.store.filters import DocumentFilter, MatchingVersions, matching_versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.embedding.base import EmbeddingProvider
    from recollect.model.passage import FusionMethod
    from recollect.store.collections import Collection, CollectionRepository
    from recollect.store.database import Database
    from recollect.store.search import PassageRow, SearchRepository

MAX_QUERY_CHARACTERS = 20_000
MAX_TOP_K = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What a search does where its options leave it open; see `recollect.config.RetrievalConfig`."""

    dense_weight: float = fusion.DENSE_WEIGHT
    rrf_k: int = fusion.RRF_K
    fusion: FusionMethod = "weighted"
    candidates: int = 100
    similarity_threshold: float | None = None
    lexical_budget: int = 4_000


class Searcher:
    """Searches collections. Safe to share between threads.

    Args:
        database: The store's connections.
        collections: Finds the collection.
        repository: Runs the arms.
        embedder: Embeds the query; its model must be the collection's.
        settings: What the options of a search leave open.
    """

    def __init__(
        self,
        database: Database,
        collections: CollectionRepository,
        repository: SearchRepository,
        embedder: EmbeddingProvider,
        *,
        settings: SearchSettings | None = None,
    ) -> None:
        self._database = database
        self._collections = collections
        self._repository = repository
        self._embedder = embedder
        self._settings = settings or SearchSettings()
        self._arms = Arms(repository, embedder, lexical_budget=self._settings.lexical_budget)

    def close(self) -> None:
        """Let the worker threads end."""
        self._arms.close()

    def search(self, scope: Scope, query: str, options: RetrievalOptions, *, collection: str) -> SearchReply:
        """Find the passages that answer a query.

        Raises:
            UsageError: The query or an option is not valid, or the collection was embedded with another model.
            NotFoundError: The collection does not exist.
        """
        validate(query, options)
        watch = Stopwatch()
        with watch.stage("prepare"):
            place = self._collections.get(scope, collection)
            self._require_same_model(place, options)
            versions = self._resolve_filter(scope, place, options)
        request = ArmRequest(
            place=place,
            query=query,
            mode=options.mode,
            top_k=options.top_k,
            limit=max(options.candidates or self._settings.candidates, options.top_k),
            versions=versions,
            needs_similarity=self._threshold(options) is not None,
        )
        arms = self._arms.run(scope, request, watch)
        with watch.stage("fuse"):
            ranking = self._fuse(options, arms)
        with watch.stage("fetch"):
            results = self._results(scope, options, arms, ranking)
        return SearchReply(
            query=query,
            collection=collection,
            mode=options.mode,
            results=tuple(results),
            timings_ms=watch.timings_ms(),
            paths=arms.paths,
        )

    def _require_same_model(self, place: Collection, options: RetrievalOptions) -> None:
        if options.mode == "lexical" and options.similarity_threshold is None:
            return
        if place.embedding_model != self._embedder.model_name:
            raise UsageError(
                f"The collection {place.name!r} was embedded with {place.embedding_model!r}, but "
                f"{self._embedder.model_name!r} is configured: their vectors cannot be compared. Configure that model "
                "([rag.embedding]), search with mode lexical, or ingest into a new collection."
            )

    def _resolve_filter(self, scope: Scope, place: Collection, options: RetrievalOptions) -> MatchingVersions | None:
        document_filter = DocumentFilter(
            department=options.department,
            source=options.source,
            tags=options.tags,
            metadata=options.metadata_filters,
            where=parse_filter(options.filters) if options.filters else None,
        )
        # What was known at a moment in the past is found by its versions too: the indexes hold the present.
        if not document_filter and scope.as_of is None:
            return None
        return matching_versions(self._database, scope, place.collection_id, document_filter)

    def _fuse(self, options: RetrievalOptions, arms: ArmResults) -> list[tuple[int, float]]:
        if options.mode == "dense":
            ranking = arms.dense
        elif options.mode == "lexical":
            ranking = arms.lexical
        elif (options.fusion or self._settings.fusion) == "rrf":
            k = self._settings.rrf_k if options.rrf_k is None else options.rrf_k
            ranking = fusion.rrf([arms.dense, arms.lexical], k=k)
        else:
            weight = self._settings.dense_weight if options.dense_weight is None else options.dense_weight
            fused = fusion.weighted(
                arms.dense,
                arms.lexical,
                dense_weight=weight,
                known_dense=arms.similarities,
                known_lexical=arms.bm25,
            )
            # Standard scores lie around 0; people and thresholds expect 0 to 1. The order stays.
            ranking = [(chunk_id, 1 / (1 + math.exp(-score))) for chunk_id, score in fused]
        threshold = self._threshold(options)
        if threshold is None:
            return list(ranking)
        return [item for item in ranking if arms.similarities.get(item[0], -1.0) >= threshold]

    def _threshold(self, options: RetrievalOptions) -> float | None:
        given = options.similarity_threshold
        return self._settings.similarity_threshold if given is None else given

    def _results(
        self, scope: Scope, options: RetrievalOptions, arms: ArmResults, ranking: Sequence[tuple[int, float]]
    ) -> list[RetrievedContext]:
        explain = _explainer(arms) if options.explain else None
        results: list[RetrievedContext] = []
        shown: set[tuple[int, int, int]] = set()
        start = 0
        # Chunks that share a parent make one passage, so more chunks may be needed than passages are asked for.
        while len(results) < options.top_k and start < len(ranking):
            wanted = ranking[start : start + options.top_k]
            start += len(wanted)
            rows = self._repository.passages(scope, [chunk_id for chunk_id, _ in wanted])
            for chunk_id, score in wanted:
                row = rows.get(chunk_id)
                if row is None or len(results) == options.top_k:
                    continue
                span = (row.version_id, row.start_offset, row.end_offset)
                if span in shown:
                    continue
                shown.add(span)
                results.append(
                    _context(
                        row,
                        rank=len(results) + 1,
                        score=score,
                        similarity=arms.similarities.get(chunk_id),
                        explain=explain(chunk_id, score) if explain else None,
                    )
                )
        return results


def validate(query: str, options: RetrievalOptions) -> None:
    """Refuse a query or options that make no sense.

    Raises:
        UsageError: Says what is wrong, and what is allowed.
    """
    if not query.strip():
        raise UsageError("The query is empty: ask something.")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise UsageError(f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARACTERS:,} are allowed.")
    if "\0" in query:
        raise UsageError("The query holds a NUL character: remove it.")
    if options.mode not in {"hybrid", "dense", "lexical"}:
        raise UsageError(f"mode must be hybrid, dense or lexical, not {options.mode!r}.")
    if options.fusion not in {None, "weighted", "rrf"}:
        raise UsageError(f"fusion must be weighted or rrf, not {options.fusion!r}.")
    for name in ("department", "source", "tags"):
        _require_names(name, getattr(options, name))
    _require_json(options.metadata_filters)
    _require_range("top_k", options.top_k, 1, MAX_TOP_K)
    _require_range("candidates", options.candidates, 1, 10_000)
    _require_range("dense_weight", options.dense_weight, 0, 1)
    _require_range("rrf_k", options.rrf_k, 0, 1_000_000)
    _require_range("similarity_threshold", options.similarity_threshold, -1, 1)


def _require_names(name: str, given: object) -> None:
    if not isinstance(given, tuple | list) or not all(isinstance(item, str) and "\0" not in item for item in given):
        raise UsageError(f'{name} must be a tuple of strings, for instance {name}=("one",), not {given!r}.')


def _require_json(given: object) -> None:
    # What PostgreSQL's jsonb takes: no NaN, no NUL, no lone surrogates.
    try:
        text = json.dumps(dict(given) if isinstance(given, Mapping) else None, allow_nan=False, ensure_ascii=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as exc:
        raise UsageError(f"metadata_filters must be JSON values by name, not {given!r}: {exc}.") from exc
    if not isinstance(given, Mapping) or "\\u0000" in text:
        raise UsageError(f"metadata_filters must be JSON values by name, without NUL characters, not {given!r}.")


def _require_range(name: str, value: float | None, low: float, high: float) -> None:
    if value is not None and not low <= value <= high:
        raise UsageError(f"{name} must lie between {low:,} and {high:,}, not {value!r}.")


def _explainer(arms: ArmResults) -> Callable[[int, float], SearchExplain]:
    dense_ranks = {chunk_id: rank for rank, (chunk_id, _) in enumerate(arms.dense, 1)}
    lexical_ranks = {chunk_id: rank for rank, (chunk_id, _) in enumerate(arms.lexical, 1)}

    def explain(chunk_id: int, score: float) -> SearchExplain:
        dense, lexical = dense_ranks.get(chunk_id), lexical_ranks.get(chunk_id)
        return SearchExplain(
            dense=ArmScore(dense, arms.similarities[chunk_id]) if dense else None,
            lexical=ArmScore(lexical, arms.bm25[chunk_id]) if lexical else None,
            fused_score=score,
        )

    return explain


def _context(
    row: PassageRow, *, rank: int, score: float, similarity: float | None, explain: SearchExplain | None
) -> RetrievedContext:
    return RetrievedContext(
        rank=rank,
        score=score,
        content=row.content,
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        title=row.title,
        source=row.source,
        section=" > ".join(row.section) or None,
        page=row.page,
        start_offset=row.start_offset,
        end_offset=row.end_offset,
        metadata=row.metadata,
        department=row.department,
        tags=row.tags,
        similarity=similarity,
        explain=explain,
    )
