"""One search, from the question to the passages: the stages in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from recollect.errors import StoreError, UsageError
from recollect.forking import computes_properties
from recollect.model import (
    ArmScore,
    ReplyExplain,
    RetrievalOptions,
    RetrievedContext,
    Scope,
    SearchExplain,
    SearchReply,
)
from recollect.model.time import at_moment
from recollect.retrieval.analysis import lexeme, term_frequencies
from recollect.retrieval.arms import ArmRequest, ArmResults, Arms, analyzer_of
from recollect.retrieval.bm25 import query_weights
from recollect.retrieval.cache import ResultCache, ResultCacheCounts, cache_key, fingerprint
from recollect.retrieval.enhance.plan import QueryEnhancer, QueryPlan, enhance
from recollect.retrieval.ranking import Ranker, Ranking, RankingSettings
from recollect.retrieval.relevance import RelevanceMeter
from recollect.retrieval.shaping import Shaper
from recollect.retrieval.stopwatch import Stopwatch
from recollect.retrieval.thresholds import Thresholds
from recollect.retrieval.together import joined_explanation, merged, places_of, pooled
from recollect.retrieval.validation import validate
from recollect.store.filters import MatchingVersions, document_filter_of, matching_versions, removed_by_condition

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.retrieval.health import SearchMonitor
    from recollect.retrieval.rerank.base import Reranker
    from recollect.store.collections import Collection, CollectionRepository
    from recollect.store.database import Database
    from recollect.store.past import PastParts
    from recollect.store.search import SearchRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What a search does where its options leave it open; see `recollect.config.RetrievalConfig`."""

    ranking: RankingSettings = field(default_factory=RankingSettings)
    candidates: int = 50
    similarity_threshold: float | None = None
    min_score: float | None = None
    min_relevance: float | None = None
    lexical_budget: int = 2_000
    collapse_duplicates: bool = True
    cache_entries: int = 1_000
    cache_seconds: float = 3_600.0
    auto_expire: bool = True


# How often a search is tried whose caller's rights change meanwhile, before he is told so.
_ATTEMPTS = 6

_rights_key = lru_cache(maxsize=1_024)(fingerprint)


class _RightsChangedError(Exception):
    """The reply that was computed must neither be kept nor shown."""


@computes_properties
class Searcher:
    """Searches collections. Safe to share between threads.

    Args:
        database: The store's connections.
        collections: Finds the collection.
        repository: Runs the arms.
        embedder: Embeds the query; its model must be the collection's.
        rerankers: Makes a reranker, by name and for a tenant.
        enhancers: Gives the query enhancements of a collection, by its name and language.
        settings: What the options of a search leave open.
        close_due: Closes what has expired in a collection, by scope and collection id, and says whether nothing is left
            (`recollect.store.expiry`); by default, what has expired is left out of each search instead.
        plan_past: Says in which parts of a collection's history a moment is looked for (`recollect.store.past`); by
            default, by the versions that were known then.
        ask_for: Told in whose tenant's name the embedder is asked next in this thread, so that what it remembers of one
            tenant serves no other.
        annotate: Adds notes to results (`recollect.retrieval.staleness`); by default none.
        monitor: Counts what the caches answer, and has a sample of searches repeated exactly; `close` closes it.
    """

    def __init__(
        self,
        database: Database,
        collections: CollectionRepository,
        repository: SearchRepository,
        embedder: EmbeddingProvider,
        *,
        rerankers: Callable[[str, int], Reranker],
        enhancers: Callable[[Collection], Sequence[QueryEnhancer]] = lambda _: (),
        settings: SearchSettings | None = None,
        close_due: Callable[[Scope, int], bool] = lambda *_: False,
        plan_past: Callable[[Scope, Collection], PastParts | None] = lambda *_: None,
        ask_for: Callable[[int], None] = lambda _: None,
        annotate: Callable[[Scope, Sequence[Collection], Sequence[RetrievedContext]], Sequence[RetrievedContext]] = (
            lambda _, __, results: results
        ),
        monitor: SearchMonitor | None = None,
    ) -> None:
        self._database = database
        self._collections = collections
        self._repository = repository
        self._embedder = embedder
        self._enhancers = enhancers
        self._settings = settings or SearchSettings()
        self._close_due = close_due
        self._plan_past = plan_past
        self._ask_for = ask_for
        self._annotate = annotate
        self._monitor = monitor
        self._arms = Arms(repository, embedder, lexical_budget=self._settings.lexical_budget)
        self._ranker = Ranker(repository, settings=self._settings.ranking, rerankers=rerankers)
        self._meter = RelevanceMeter(embedder)
        self._shaper = Shaper(repository, collapse=self._settings.collapse_duplicates)
        self._cache = ResultCache(max_entries=self._settings.cache_entries, ttl_seconds=self._settings.cache_seconds)

    @cached_property
    def _fingerprint(self) -> bytes:
        return fingerprint((self._settings, self._embedder.model_name))

    @property
    def cache_counts(self) -> ResultCacheCounts:
        """How often an equal search of a moment ago could answer."""
        return self._cache.counts

    def forget(self) -> None:
        """Forget every cached reply; an erasure calls this."""
        self._cache.clear()

    def close(self) -> None:
        """Let the monitor write what it counted; idempotent."""
        if self._monitor is not None:
            self._monitor.close()

    def search(self, scope: Scope, query: str, options: RetrievalOptions, *, collection: str) -> SearchReply:
        """Find the passages that answer a query.

        Raises:
            UsageError: The query or an option is not valid, or the collection was embedded with another model.
            NotFoundError: The collection does not exist.
            StoreError: What the principal may read changed again and again while he searched.
        """
        validate(query, options)
        options = at_moment(options, scope.as_of)
        watch = Stopwatch()
        self._ask_for(scope.tenant_id)
        with watch.stage("prepare"):
            place = self._unexpired(scope, self._collections.get(scope, collection))
        if self._hides_expired(scope, place):
            # The collection's revision does not tell when the next of them goes.
            options = replace(options, use_cache=False)
        for _ in range(_ATTEMPTS):
            try:
                return self._reply(scope, place, query, options, watch)
            except _RightsChangedError:
                # Each looks for himself: whoever waited for the reply of another may have other rights now.
                place = self._collections.changed_rights(scope, place) or place
        raise StoreError(f"Who may read the collection {place.name!r} changes all the time: try again in a moment.")

    def search_together(
        self, scope: Scope, query: str, options: RetrievalOptions, *, collections: Sequence[str]
    ) -> SearchReply:
        """Find the passages of several collections that answer a query, as if they were one.

        Words are weighed by how rare they are in all of the collections, and what both arms find in each is fused and
        reranked together. The reply is not kept for equal searches.

        Args:
            scope: Whose search.
            query: In plain words.
            options: How to search; ``top_k`` passages come from all together.
            collections: By name; all embedded with the configured model.

        Returns:
            A reply whose passages name the ``collection`` that they come from.

        Raises:
            UsageError: The query or an option is not valid, no collection is named, or one was embedded with another
                model.
            NotFoundError: A collection does not exist.
            StoreError: What the principal may read changed again and again while he searched.
        """
        validate(query, options)
        if not collections:
            raise UsageError("Name at least one collection to search.")
        options = at_moment(options, scope.as_of)
        watch = Stopwatch()
        self._ask_for(scope.tenant_id)
        with watch.stage("prepare"):
            names = dict.fromkeys(collections)
            places = [self._unexpired(scope, self._collections.get(scope, name)) for name in names]
        for _ in range(_ATTEMPTS):
            reply = self._compute(scope, places, query, options, watch)
            changed = [None if scope.principal is None else self._collections.changed_rights(scope, p) for p in places]
            if not any(changed):
                return reply if len(places) > 1 else _placed(reply, places[0].name)
            places = [now or before for now, before in zip(changed, places, strict=True)]
        raise StoreError("Who may read these collections changes all the time: try again in a moment.")

    def _reply(
        self, scope: Scope, place: Collection, query: str, options: RetrievalOptions, watch: Stopwatch
    ) -> SearchReply:
        if not options.use_cache:
            return self._answer(scope, place, query, options, watch)
        rights = None if scope.principal is None else _rights_key(place.access_ids)
        key = cache_key(
            # What somebody finds depends on what he may read, not on who he is: equal rights share replies.
            scope if scope.principal is None else replace(scope, principal=None),
            query,
            options,
            collection_id=place.collection_id,
            revision=place.revision,
            settings=self._fingerprint if rights is None else (self._fingerprint, rights),
        )
        reply, hit = self._cache.get_or_compute(
            key, lambda: self._answer(scope, place, query, options, watch), keep_seconds=_keep_seconds
        )
        if self._monitor is not None:
            self._monitor.replied(scope, place, cached=hit)
        return replace(reply, cached=True, timings_ms=watch.timings_ms()) if hit else reply

    def _unexpired(self, scope: Scope, place: Collection) -> Collection:
        """The collection after what has expired in it is closed; it keeps ``expiry_due`` where that was not possible.

        The past needs none of this: what was known then has its end among its times.
        """
        if not self._hides_expired(scope, place) or not self._close_due(scope, place.collection_id):
            return place
        return self._collections.get(scope, place.name)

    def _hides_expired(self, scope: Scope, place: Collection) -> bool:
        return place.expiry_due and scope.as_of is None and self._settings.auto_expire

    def _answer(
        self, scope: Scope, place: Collection, query: str, options: RetrievalOptions, watch: Stopwatch
    ) -> SearchReply:
        """The reply, unless the principal's rights changed while it was computed: then it is nobody's."""
        reply = self._compute(scope, [place], query, options, watch)
        if scope.principal is not None and self._collections.changed_rights(scope, place) is not None:
            raise _RightsChangedError
        return reply

    def _compute(
        self, scope: Scope, places: Sequence[Collection], query: str, options: RetrievalOptions, watch: Stopwatch
    ) -> SearchReply:
        requests = [self._request(scope, place, query, options, watch) for place in places]
        arms, origins = self._run(scope, requests, watch)
        wordings = dict.fromkeys(wording for request in requests for wording in request.plan.alternatives)
        others = [
            self._run(scope, [replace(one, plan=QueryPlan(query=wording)) for one in requests], watch, counted=False)[0]
            for wording in wordings
        ]
        self._join_similarities(scope, arms, others)
        ranking = self._ranker.rank(scope, query, options, arms, watch, alternatives=others)
        if scope.ranked_for is not None:
            ranking = self._ranker.preferred(scope, ranking)
        dropped: dict[str, int] = {}
        relevance = self._meter.measure(
            [chunk_id for chunk_id, _ in ranking.ranked], similarities=arms.similarities, coverage=arms.coverage
        )
        ranked = Thresholds.of(options, self._settings).apply(
            ranking.ranked,
            similarities=arms.similarities,
            relevance=relevance,
            floor=self._meter.floor(similarities=bool(arms.similarities), coverage=bool(arms.coverage)),
            dropped=dropped,
        )
        with watch.stage("fetch"):
            results = self._shaper.shape(
                scope,
                options,
                ranked,
                similarities=arms.similarities,
                relevance=relevance,
                explain=_explainer(arms, ranking) if options.explain else None,
                dropped=dropped,
            )
        if len(places) > 1:
            results = [replace(one, collection=origins.get(one.chunk_id)) for one in results]
        with watch.stage("notes"):
            results = list(self._annotate(scope, places, results))
        return SearchReply(
            query=query,
            collection=", ".join(place.name for place in places),
            mode=options.mode,
            results=tuple(results),
            timings_ms=watch.timings_ms(),
            paths=arms.paths,
            exact=arms.exact,
            reranked=None if ranking.reranker is None else ranking.reranked,
            explain=self._explained(scope, requests, options, arms, ranking, dropped) if options.explain else None,
        )

    def _request(
        self, scope: Scope, place: Collection, query: str, options: RetrievalOptions, watch: Stopwatch
    ) -> ArmRequest:
        """What both arms are asked of one collection."""
        self._require_same_model(place, options)
        with watch.stage("filter"):
            past = self._past(scope, place, options)
            versions = self._resolve_filter(scope, place, options) if past is None else None
        with watch.stage("enhance"):
            plan = enhance(query, self._enhancers(place) if options.enhance else ())
        return ArmRequest(
            place=place,
            plan=plan,
            mode=options.mode,
            top_k=options.top_k,
            limit=max(options.candidates or self._settings.candidates, options.top_k),
            versions=versions,
            needs_similarity=Thresholds.of(options, self._settings).similarity is not None,
            needs_vectors=self._ranker.needs_vectors(options),
            past=past,
        )

    def _run(
        self, scope: Scope, requests: Sequence[ArmRequest], watch: Stopwatch, *, counted: bool = True
    ) -> tuple[ArmResults, Mapping[int, str]]:
        """What both arms find, and of several collections, in which one; ``counted``: for the sample of searches."""
        if len(requests) == 1:
            arms = self._arms.run(scope, requests[0], watch)
            if counted and self._monitor is not None:
                self._monitor.searched(scope, requests[0], arms)
            return arms, {}
        with watch.stage("statistics"):
            requests = pooled(requests, [self._arms.frequencies(scope, request) for request in requests])
        found = [self._arms.run(scope, request, watch) for request in requests]
        origins = places_of([request.place for request in requests], found)
        return merged(found, limit=requests[0].limit), origins

    def _explained(
        self,
        scope: Scope,
        requests: Sequence[ArmRequest],
        options: RetrievalOptions,
        arms: ArmResults,
        ranking: Ranking,
        dropped: dict[str, int],
    ) -> ReplyExplain:
        parts = []
        for request in requests:
            weights = self._weights(scope, request.place, request.plan, arms)
            part = _explain_reply(request.place, request.plan, weights, ranking, request.versions, dropped)
            parts.append(replace(part, removed_by=self._removed_by(scope, request.place, options)))
        return parts[0] if len(parts) == 1 else joined_explanation(parts)

    def _removed_by(self, scope: Scope, place: Collection, options: RetrievalOptions) -> tuple[tuple[str, int], ...]:
        """What each condition removes: a pass over the documents, so only explanations ask."""
        return tuple(
            removed_by_condition(
                self._database,
                scope,
                place.collection_id,
                document_filter_of(options),
                access_ids=place.access_ids,
            )
        )

    def _weights(self, scope: Scope, place: Collection, plan: QueryPlan, arms: ArmResults) -> Mapping[int, float]:
        """The weights of the query's lexemes; for whoever may not read everything, by what he may read."""
        if place.access_ids is None:
            return arms.weights
        terms = analyzer_of(place.language).query_terms(plan.query)
        counts = term_frequencies(terms, salt=place.collection_id)
        found = self._repository.readable_frequencies(scope, place, list(counts))
        known = {lexeme: df for lexeme, df in found.items() if df}
        return query_weights(counts, document_frequencies=known, chunks=max(1, place.chunk_count))

    def _require_same_model(self, place: Collection, options: RetrievalOptions) -> None:
        if options.mode == "lexical" and options.similarity_threshold is None:
            return
        if place.embedding_model != self._embedder.model_name:
            raise UsageError(
                f"The collection {place.name!r} was embedded with {place.embedding_model!r}, but "
                f"{self._embedder.model_name!r} is configured: their vectors cannot be compared. Configure that model "
                "([rag.embedding]), search with mode lexical, or ingest into a new collection."
            )

    def _past(self, scope: Scope, place: Collection, options: RetrievalOptions) -> PastParts | None:
        # Below filters, and where comparing everything is fast, the versions of then tell.
        confined = place.access_ids is not None or document_filter_of(options, scope.as_of)
        if scope.as_of is None or not place.indexed or confined:
            return None
        return self._plan_past(scope, place)

    def _resolve_filter(self, scope: Scope, place: Collection, options: RetrievalOptions) -> MatchingVersions | None:
        document_filter = document_filter_of(options, scope.as_of)
        unexpired = self._hides_expired(scope, place)
        # What was known at a moment in the past is found by its versions too.
        if not document_filter and scope.as_of is None and not unexpired:
            return None
        return matching_versions(
            self._database,
            scope,
            place.collection_id,
            document_filter,
            access_ids=place.access_ids,
            unexpired=unexpired,
        )

    def _join_similarities(self, scope: Scope, arms: ArmResults, others: Sequence[ArmResults]) -> None:
        """What only another wording found is measured against the query as asked."""
        found = {chunk_id for other in others for chunk_id in (*other.similarities, *other.bm25)}
        missing = sorted(found - arms.similarities.keys())
        if missing and arms.embedding is not None:
            arms.similarities |= self._repository.similarities(scope, arms.embedding, missing)


def _placed(reply: SearchReply, name: str) -> SearchReply:
    return replace(reply, results=tuple(replace(one, collection=name) for one in reply.results))


def _keep_seconds(reply: SearchReply) -> float | None:
    # What a reranker should have ordered and did not is worth trying again.
    return 0.0 if reply.reranked is False else None


def _explainer(arms: ArmResults, ranking: Ranking) -> Callable[[int, float], SearchExplain]:
    dense_ranks = {chunk_id: rank for rank, (chunk_id, _) in enumerate(arms.dense, 1)}
    lexical_ranks = {chunk_id: rank for rank, (chunk_id, _) in enumerate(arms.lexical, 1)}

    def explain(chunk_id: int, score: float) -> SearchExplain:
        dense, lexical = dense_ranks.get(chunk_id), lexical_ranks.get(chunk_id)
        return SearchExplain(
            dense=ArmScore(dense, arms.similarities[chunk_id]) if dense else None,
            lexical=ArmScore(lexical, arms.bm25[chunk_id]) if lexical else None,
            fused_score=ranking.fused.get(chunk_id, score),
            coverage=arms.coverage.get(chunk_id),
            rerank_score=ranking.rerank_scores.get(chunk_id),
            preference=ranking.preferences.get(chunk_id),
        )

    return explain


def _explain_reply(
    place: Collection,
    plan: QueryPlan,
    weights: Mapping[int, float],
    ranking: Ranking,
    versions: MatchingVersions | None,
    dropped: dict[str, int],
) -> ReplyExplain:
    terms = dict.fromkeys(analyzer_of(place.language).query_terms(plan.query))
    weighed = ((term, weights.get(lexeme(term, place.collection_id), 0.0)) for term in terms)
    kept = len(versions.version_ids) if versions else None
    return ReplyExplain(
        terms=tuple(sorted(weighed, key=lambda item: (-item[1], item[0]))),
        filter_kept=kept,
        filter_removed=None if kept is None else max(0, place.document_count - kept),
        enhancements=tuple(f"{note.name}: {note.outcome} ({note.detail})" for note in plan.notes),
        reranker=ranking.reranker,
        rerank_reason=ranking.reason,
        dropped={reason: count for reason, count in dropped.items() if count},
    )
