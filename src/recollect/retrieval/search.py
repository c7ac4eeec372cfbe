"""One search, from the question to the passages: the stages in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

from recollect.errors import (
    ModelChangedError,
    NotFoundError,
    RecollectError,
    StoreError,
    TenantSuspendedError,
    UsageError,
)
from recollect.forking import computes_properties, undivided
from recollect.model import (
    CompleteOptions,
    ReplyExplain,
    RetrievalOptions,
    RetrievedContext,
    RetrieverScore,
    Scope,
    SearchExplain,
    SearchReply,
    TokenUsage,
)
from recollect.model.search_options import (
    MAX_CANDIDATES,
    MAX_RERANK_CANDIDATES,
    SearchMode,
    at_moment,
    require_width,
    validate,
)
from recollect.retrieval.analysis import lexeme, term_frequencies
from recollect.retrieval.cache import ResultCache, ResultCacheCounts, cache_key, fingerprint
from recollect.retrieval.candidates import (
    CandidateRequest,
    Candidates,
    CandidateSource,
    OutdatedError,
    Searched,
    Stopwatch,
    TargetResolver,
    analyzer_for,
    heading,
    tells_origins,
)
from recollect.retrieval.enhance.plan import QueryEnhancer, QueryPlan, enhance, query_vector
from recollect.retrieval.lexical import query_weights
from recollect.retrieval.ranking import (
    Ranker,
    Ranking,
    RankingSettings,
    RerankerMaker,
    VectorSpace,
    joined,
    merged,
    pooled,
    spaces_of,
)
from recollect.retrieval.relevance import (
    MeaningShare,
    ModelLanguages,
    RelevanceMeter,
    RelevanceMeters,
    SimilarityScale,
    Thresholds,
    meaning_share,
)
from recollect.retrieval.retrievers import MODES
from recollect.retrieval.shaping import ChunkReader, Shaper, StalenessNotes, with_roots
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.filters import MatchingVersionsReader, document_filter_of, removed_by_condition

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.embedding.cached import CachedEmbedder
    from recollect.model.collection import Collection
    from recollect.model.scope import Target
    from recollect.retrieval.health import SearchMonitor
    from recollect.retrieval.resident.collections import ResidentCollections
    from recollect.store.past import PastParts
    from recollect.store.store import Store


# How many times the candidates are looked through where most of them say the same.
_MORE_CANDIDATES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What a search does where its options leave it open; see `recollect.config.RetrievalConfig`."""

    top_k: int = 10
    mode: SearchMode = "hybrid"
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
    notes: bool = True

    def complete(self, options: RetrievalOptions) -> CompleteOptions:
        """The options, with the configured number of passages and mode where none were given."""
        return CompleteOptions.of(options, top_k=self.top_k, mode=self.mode)

    def limit(self, options: CompleteOptions) -> int:
        """How many candidates each way of searching contributes: enough to be shown, and to be reranked."""
        return max(options.candidates or self.candidates, options.top_k, self.ranking.wanted(options))


#: Copies of collections are held in memory from the so manyeth search of a process on.
LOADED_AFTER = 3

# How often a search is tried while the rights of whoever searches change, or collections come and go.
_ATTEMPTS = 6

# A search that asks for more candidates or passages waits for its turn: it costs as much as dozens of others.
_MOST_OF_A_LIGHT_SEARCH = 1_000

_rights_key = lru_cache(maxsize=1_024)(fingerprint)


def _is_heavy(options: RetrievalOptions) -> bool:
    passages = (options.top_k or 0) * (1 + options.neighbours)
    return max(options.candidates or 0, passages) > _MOST_OF_A_LIGHT_SEARCH


class _RightsChangedError(Exception):
    """The reply that was computed must neither be kept nor shown."""


@dataclass(frozen=True, slots=True)
class _Search:
    """What one call asks, and the collections that it is asked of.

    Attributes:
        searched: The collections.
        degraded: Plans that an enhancement failed for: what it would have added is worth trying again.
        vectors: Of questions that were embedded, by model: collections of one model share them.
        spent: What a language model took for each plan.
    """

    scope: Scope
    query: str
    options: CompleteOptions
    target: Target
    searched: Sequence[Searched]
    watch: Stopwatch
    degraded: list[QueryPlan] = field(default_factory=list)
    vectors: dict[tuple[str, str, tuple[str, ...]], Vectors] = field(default_factory=dict)
    spent: list[TokenUsage] = field(default_factory=list)

    @property
    def remembered(self) -> bool:
        """Whether the collection was looked up for an earlier search."""
        return bool(self.searched) and self.searched[0].record is not None

    def keep_seconds(self, reply: SearchReply) -> float | None:
        """How long a reply is kept: not at all where something failed that the next search may have."""
        return 0.0 if self.degraded or reply.reranked is False else None


@computes_properties
class Searcher:
    """Searches collections. Safe to share between threads.

    Args:
        store: Open.
        embedder: Gives the model of a collection, which embeds the query. It is told for which tenant it is asked, so
            that what it remembers of one serves no other.
        rerankers: Makes a reranker, by name, for a tenant and for collections that are embedded as the one given.
        enhancers: Gives the query enhancements of a collection, by its name and language.
        settings: What the options of a search leave open.
        monitor: Counts what the caches answer, and has a sample of searches repeated exactly; `close` closes it.
        seen: What is searched in place of a collection, to try it in another of its vector spaces; None: itself.
        meters: Of embedding models, where others know some already; None: none does.
        resident: Makes what holds copies of collections in memory, once there are several searches; None: none is held.
    """

    def __init__(
        self,
        store: Store,
        embedder: Callable[[Collection], CachedEmbedder],
        *,
        rerankers: RerankerMaker,
        enhancers: Callable[[Collection], Sequence[QueryEnhancer]] = lambda _: (),
        settings: SearchSettings | None = None,
        monitor: SearchMonitor | None = None,
        seen: Callable[[Collection], Collection] | None = None,
        meters: RelevanceMeters | None = None,
        resident: Callable[[], ResidentCollections] | None = None,
    ) -> None:
        self._settings = settings or SearchSettings()
        self._store = store
        self._embedder = embedder
        self._enhancers = enhancers
        self._monitor = monitor
        self._filters = MatchingVersionsReader(store.database)
        self._targets = TargetResolver(store, auto_expire=self._settings.auto_expire, seen=seen)
        self._database_source = SqlCandidates(store.search, lexical_budget=self._settings.lexical_budget)
        self._make_resident = resident
        self._held: ResidentCollections | None = None
        self._searches = 0
        self._ranker = Ranker(settings=self._settings.ranking, rerankers=rerankers)
        self._meters = meters or RelevanceMeters()
        self._languages = ModelLanguages()
        self._shaper = Shaper(collapse=self._settings.collapse_duplicates)
        self._notes = StalenessNotes(store.staleness) if self._settings.notes else None
        self._cache = ResultCache(max_entries=self._settings.cache_entries, ttl_seconds=self._settings.cache_seconds)

    @cached_property
    def _fingerprint(self) -> bytes:
        return fingerprint(self._settings)

    @property
    def _source(self) -> CandidateSource:
        # A command makes one search, which builds nothing, and imports nothing for it.
        if self._make_resident is None or self._searches < LOADED_AFTER:
            return self._database_source
        return self._resident_source

    @property
    def held(self) -> ResidentCollections | None:
        """What holds copies of collections in memory; None: nothing does, or not yet."""
        return self._held

    @cached_property
    def _resident_source(self) -> CandidateSource:
        if self._make_resident is None:
            return self._database_source
        with undivided():
            from recollect.retrieval.resident.source import ResidentCandidates

            self._held = self._make_resident()
        return ResidentCandidates(self._held.find, self._database_source)

    @property
    def cache_counts(self) -> ResultCacheCounts:
        """How often an equal search of a moment ago could answer."""
        return self._cache.counts

    def forget(self) -> None:
        """Forget every cached reply, copies in memory, and what is remembered of words and filters; for erasures."""
        if self._held is not None:
            self._held.forget()
        self._cache.clear()
        self._targets.forget()
        self._filters.clear()
        self._store.search.known_frequencies.clear()

    def close(self) -> None:
        """Let the monitor write what it counted, and hold nothing in memory; idempotent."""
        if self._held is not None:
            self._held.close()
        if self._monitor is not None:
            self._monitor.close()

    def places(self, scope: Scope, target: Target) -> Sequence[Searched]:
        """The collections that a search looks into.

        Raises:
            NotFoundError: A collection that is named, and not optional, does not exist.
        """
        return self._targets.resolve(scope, target)

    def search(self, scope: Scope, query: str, options: RetrievalOptions, target: Target) -> SearchReply:
        """Find the passages that answer a query.

        Several collections are searched as if they were one: words are weighed by how rare they are in all of them, and
        what is found in each is fused and reranked together. Equal searches of whoever may read the same are
        answered once for all, until one of the collections changes.

        Args:
            scope: Whose knowledge, who asks and as of when.
            query: In plain words.
            options: How to search; ``top_k`` passages come from all collections together.
            target: Where.

        Returns:
            The reply. Its ``collection`` is ``*`` for every collection, otherwise the names of those searched, a
            session's by its label; of what others share it names none. Where more than one could answer, each passage
            names its own ``collection``. Where no collection of the target exists, it is empty.

        Raises:
            UsageError: The query or an option is not valid, the target names no collection, or the model of one cannot
                be used here.
            NotFoundError: A collection that is named, and not optional, does not exist.
            TenantSuspendedError: The scope's tenant is suspended.
            StoreError: What may be read changed again and again during the search.
        """
        validate(query, options)
        if options.mode not in (None, *MODES):
            raise UsageError(f"mode must be hybrid, dense or lexical here, not {options.mode!r}.")
        complete = self._settings.complete(at_moment(options, scope.as_of))
        require_width(complete)
        database = self._store.database
        if _is_heavy(options):
            with database.heavy_searches.place_in_thread((scope.tenant_id, None)), database.searching:
                return self._settled(scope, query, complete, target)
        with database.searching:
            return self._settled(scope, query, complete, target)

    def _settled(self, scope: Scope, query: str, options: CompleteOptions, target: Target) -> SearchReply:
        """The reply, computed again while it turns out that rights, or the collections, have changed meanwhile."""
        watch = Stopwatch()
        searched: Sequence[Searched] | None = self._targets.remembered(scope, target)
        spent: list[TokenUsage] = []
        for _ in range(_ATTEMPTS):
            if searched is None:
                with watch.stage("prepare"):
                    searched = self._targets.resolve(scope, target)
            search = _Search(scope, query, options, target, searched, watch, spent=spent)
            try:
                return self._reply(search)
            except _RightsChangedError:
                # Each looks anew: whoever waited for the reply of another may have other rights now.
                searched = None if search.remembered else self._targets.changed_rights(searched) or searched
            except (OutdatedError, NotFoundError, TenantSuspendedError, ModelChangedError):
                searched = None
            except RecollectError:
                if not self._is_outdated(search):
                    raise
                searched = None
            finally:
                if spent:
                    # A language model is not asked twice because something has changed.
                    self._targets.forget()
        raise StoreError("Who may read what is searched changes all the time: try again in a moment.")

    def _reply(self, search: _Search) -> SearchReply:
        """The reply, of the cache or computed.

        Raises:
            _RightsChangedError: Somebody's rights changed meanwhile: it is nobody's.
        """
        if not search.searched:
            name = heading(search.target, ())
            return SearchReply(query=search.query, collection=name, mode=search.options.mode, results=(), timings_ms={})
        if not search.options.use_cache or not all(one.kept for one in search.searched):
            return self._computed(search)
        with self._cache.claim(self._key(search)) as claim:
            if claim.reply is None:
                claim.reply = self._computed(search)
                claim.keep_seconds = search.keep_seconds(claim.reply)
        if claim.hit and self._is_outdated(search):
            raise OutdatedError
        if self._monitor is not None:
            self._monitor.replied(search.searched[0].scope, search.searched[0].collection, cached=claim.hit)
        if not claim.hit:
            return claim.reply
        return replace(claim.reply, cached=True, timings_ms=search.watch.timings_ms(), usage=None)

    def _is_outdated(self, search: _Search) -> bool:
        """Whether the collection was remembered, and is another by now."""
        if not search.remembered:
            return False
        with search.watch.stage("prepare"):
            now = self._targets.resolve(search.scope, search.target)
        return now != [replace(one, record=None) for one in search.searched]

    def _computed(self, search: _Search) -> SearchReply:
        """The reply, computed on a replica where one has the collections as they were found.

        Raises:
            _RightsChangedError: Somebody's rights changed meanwhile: it is nobody's.
        """
        reply, settled = self._led(search)
        wider = self._wider(search, reply)
        if wider is not None:
            reply, settled = self._led(wider)
        if not settled and self._targets.changed_rights(search.searched) is not None:
            raise _RightsChangedError
        return reply

    def _led(self, search: _Search) -> tuple[SearchReply, bool]:
        database = self._store.database
        if database.replica is None:
            return self._compute(search)
        reply, _ = database.on_replica([one.revision for one in search.searched], partial(self._compute, search))
        # A replica knows nothing of what has changed on the primary since.
        return reply, False

    def _key(self, search: _Search) -> bytes:
        return cache_key(
            # What is found depends on what may be read, not on who asks: equal rights share replies.
            search.scope if search.scope.principal is None else replace(search.scope, principal=None),
            search.query,
            search.options,
            collections=[
                (
                    one.label,
                    one.collection.collection_id,
                    one.collection.revision_id,
                    one.collection.embedding_model,
                    None if one.scope.principal is None else _rights_key(one.collection.access_ids),
                )
                for one in search.searched
            ],
            settings=(self._fingerprint, heading(search.target, search.searched)),
        )

    def _wider(self, search: _Search, reply: SearchReply) -> _Search | None:
        """The search with more candidates, where copies of what the reply shows took their places; None: none did."""
        options, limit = search.options, search.options.candidates or self._settings.candidates
        if len(reply.results) >= options.top_k:
            return None
        copies = sum(len(one.duplicates) for one in reply.results)
        if not copies or copies + len(reply.results) < limit:
            return None
        more = min(limit * _MORE_CANDIDATES, MAX_CANDIDATES)
        return None if more <= limit else replace(search, options=replace(options, candidates=more))

    def _compute(self, search: _Search) -> tuple[SearchReply, bool]:
        """The reply, and whether all that it shows is known to have been the caller's to read."""
        self._searches += 1
        scope, options, watch = search.scope, search.options, search.watch
        requests = [self._request(one, search) for one in search.searched]
        each = self._run(requests, search, counted=True)
        others = self._reworded(requests, search)
        origins = [
            (one, set().union(*(results[position].known for results in (each, *others))))
            for position, one in enumerate(search.searched)
        ]
        spaces = spaces_of([one.collection for one in search.searched])
        reader = ChunkReader(self._store.search, origins)
        found, *alternatives = self._joined(spaces, (each, *others), reader, limit=requests[0].limit)
        share = self._meaning_share(search, spaces)
        ranking = self._ranker.rank(
            scope,
            reader,
            search.query,
            options,
            found,
            watch,
            places=[space.place for space in spaces],
            alternatives=alternatives,
            share=share,
        )
        relevance, floor = self._relevance(spaces, found, [chunk_id for chunk_id, _ in ranking.ranked])
        ranking = self._ranker.exact_first(ranking, options, found, relevance, share)
        ranking = self._ranker.preferred(scope, reader, ranking)
        dropped: dict[str, int] = {}
        ranked = Thresholds.of(options, self._settings).apply(
            ranking.ranked, similarities=found.similarities, relevance=relevance, floor=floor, dropped=dropped
        )
        with watch.stage("fetch"):
            results = self._shaper.shape(
                reader,
                options,
                ranked,
                query=search.query,
                exact=ranking.exact,
                similarities=found.similarities,
                relevance=relevance,
                explain=passage_explainer(found, ranking) if options.explain else None,
                dropped=dropped,
            )
        with watch.stage("notes"):
            told = self._told(search, origins, results, reader)
        reply = SearchReply(
            query=search.query,
            collection=heading(search.target, search.searched),
            mode=options.mode,
            results=tuple(told),
            timings_ms=watch.timings_ms(),
            paths=found.paths,
            exact=found.exact,
            reranked=None if ranking.reranker is None else ranking.reranked,
            explain=self._explained(search, requests, found, ranking, dropped) if options.explain else None,
            usage=TokenUsage.total(search.spent) if search.spent else None,
            warnings=ranking.warnings,
        )
        return reply, reader.settled

    def _explained(
        self,
        search: _Search,
        requests: Sequence[CandidateRequest],
        found: Candidates,
        ranking: Ranking,
        dropped: Mapping[str, int],
    ) -> ReplyExplain:
        asked = [(one.scope, request) for one, request in zip(search.searched, requests, strict=True)]
        return explained(self._store, asked, search.options, found, ranking, dropped)

    def _told(
        self,
        search: _Search,
        origins: Sequence[tuple[Searched, Set[int]]],
        results: Sequence[RetrievedContext],
        reader: ChunkReader,
    ) -> Sequence[RetrievedContext]:
        """The results with notes, and where that has to be told, the root and the collection of each.

        Raises:
            OutdatedError: The collection is not as it was remembered.
        """
        if not reader.current and self._is_outdated(search):
            raise OutdatedError
        if self._notes is not None:
            results = self._notes.annotate(reader, origins, results)
        if reader.namesakes:
            results = with_roots(self._store.database, origins, results, reader.namesakes)
        if not tells_origins(search.target, search.searched):
            return results
        labels = {chunk_id: one.label for one, chunk_ids in origins for chunk_id in chunk_ids}
        return [
            replace(
                one,
                collection=labels[one.chunk_id],
                also_in=tuple(replace(also, collection=labels[also.chunk_id]) for also in one.also_in),
            )
            for one in results
        ]

    def _request(self, one: Searched, search: _Search) -> CandidateRequest:
        """What is asked of one collection."""
        collection, options = one.collection, search.options
        with search.watch.stage("filter"):
            past = self._past(one, options)
            versions = None
            if past is None:
                versions = self._filters.read(one.scope, collection, options, unexpired=one.hides_expired)
        with search.watch.stage("enhance"):
            plan = enhance(search.query, self._enhancers(collection) if options.enhance else ())
        if plan.usage is not None:
            search.spent.append(plan.usage)
        if plan.degraded:
            search.degraded.append(plan)
        limit = self._settings.limit(options)
        return CandidateRequest(
            collection=collection,
            plan=plan,
            mode=options.mode,
            top_k=options.top_k,
            limit=limit,
            versions=versions,
            # Of more candidates the reranker's own are read later: thousands of vectors would lie here for nothing.
            needs_vectors=limit <= MAX_RERANK_CANDIDATES and self._ranker.needs_vectors(options),
            past=past,
        )

    def _run(self, requests: Sequence[CandidateRequest], search: _Search, *, counted: bool = False) -> list[Candidates]:
        """The candidates of each collection; ``counted``: for the sample of searches."""
        scopes = [one.scope for one in search.searched]
        if len(requests) > 1:
            with search.watch.stage("statistics"):
                frequencies = [
                    self._source.frequencies(scope, request) for scope, request in zip(scopes, requests, strict=True)
                ]
                requests = pooled(requests, frequencies)
        found = []
        for scope, request in zip(scopes, requests, strict=True):
            found.append(self._source.candidates(scope, self._embedded(request, search), search.watch))
        if counted and self._monitor is not None and len(found) == 1:
            self._monitor.searched(scopes[0], requests[0], found[0])
        return found

    def _embedded(self, request: CandidateRequest, search: _Search) -> CandidateRequest:
        compares = request.mode != "lexical" or Thresholds.of(search.options, self._settings).similarity is not None
        if not compares or request.empty:
            return request
        embedder = self._embedder(request.collection)
        key = embedder.model_name, request.plan.query, request.plan.hypothetical_answers
        with search.watch.stage("embed"):
            if key not in search.vectors:
                embedder.ask_for(search.scope.tenant_id)
                search.vectors[key] = query_vector(request.plan, embedder)
            vector = self._languages.moved(search.vectors[key], request.plan.query, request.collection, embedder)
        return replace(request, embedding=vector)

    def _joined(
        self,
        spaces: Sequence[VectorSpace],
        runs: Sequence[Sequence[Candidates]],
        reader: ChunkReader,
        *,
        limit: int,
    ) -> list[Candidates]:
        """What each wording found in all collections, the query as asked first."""
        if len(runs) == len(runs[0]) == 1:
            return list(runs[0])
        parts = [self._in_space(space, runs, reader, limit=limit) for space in spaces]
        scales = [
            None if len(spaces) == 1 or own[0].embedding is None else self._meter(space.place).scale()
            for space, own in zip(spaces, parts, strict=True)
        ]
        models = [space.model for space in spaces]
        return [joined(models, of_run, scales, limit=limit) for of_run in zip(*parts, strict=True)]

    def _in_space(
        self, space: VectorSpace, runs: Sequence[Sequence[Candidates]], reader: ChunkReader, *, limit: int
    ) -> list[Candidates]:
        found, *alternatives = [merged([run[one] for one in space.positions], limit=limit) for run in runs]
        missing = sorted({chunk_id for other in alternatives for chunk_id in other.known} - found.similarities.keys())
        if missing and found.embedding is not None:
            # What only another wording found is measured against the query as asked.
            found.similarities |= reader.similarities(self._source, found.embedding, missing)
        return [found, *alternatives]

    def _relevance(
        self, spaces: Sequence[VectorSpace], found: Candidates, chunk_ids: Sequence[int]
    ) -> tuple[Mapping[int, float], float]:
        """How relevant chunks are, and what the best must reach for anything to be found."""
        known, coverage = found.similarities, found.coverage
        if len(spaces) == 1 or not known:
            meter = self._meter(spaces[0].place) if known else RelevanceMeter(None)
            floor = meter.floor(similarities=bool(known), coverage=bool(coverage))
            return meter.measure(chunk_ids, similarities=known, coverage=coverage), floor
        measured: dict[int, float] = {}
        for space in spaces:
            own = [one for one in chunk_ids if found.models.get(one) == space.model]
            similarities = {one: known[one] for one in own if one in known}
            measured |= self._meter(space.place).measure(own, similarities=similarities, coverage=coverage)
        floors = [self._meter(space.place).floor(similarities=True, coverage=bool(coverage)) for space in spaces]
        return measured, min(floors)

    def _reworded(self, requests: Sequence[CandidateRequest], search: _Search) -> list[list[Candidates]]:
        """What other wordings find, in each collection."""
        wordings = dict.fromkeys([wording for request in requests for wording in request.plan.alternatives])
        reworded = [[replace(one, plan=QueryPlan(query=wording)) for one in requests] for wording in wordings]
        return [self._run(theirs, search) for theirs in reworded]

    def _meaning_share(self, search: _Search, spaces: Sequence[VectorSpace]) -> MeaningShare | None:
        """What the language of the question says of meaning and words; None: nothing."""
        if search.options.mode != "hybrid":
            return None

        def known(language: str) -> bool:
            return all(
                self._languages.knows(space.model, language, partial(self._embedder, space.place)) for space in spaces
            )

        return meaning_share(search.query, [one.collection for one in search.searched], known)

    def _meter(self, place: Collection) -> RelevanceMeter:
        kept = (place.embedding_spec or {}).get("similarities")
        return self._meters.of(
            place.embedding_model,
            lambda: self._embedder(place),
            known=None if kept is None else SimilarityScale(*kept),
            keep=lambda scale: self._store.collections.keep_similarities(
                Scope(tenant_id=place.tenant_id), place.embedding_model, astuple(scale)
            ),
        )

    def _past(self, one: Searched, options: CompleteOptions) -> PastParts | None:
        scope, collection = one.scope, one.collection
        # Below filters, and where comparing everything is fast, the versions of then tell.
        if scope.as_of is None or not collection.indexed or collection.access_ids is not None:
            return None
        if document_filter_of(options, scope.as_of):
            return None
        return self._store.past.plan(scope, collection)


# How a search came to its results, for those who ask.


def passage_explainer(found: Candidates, ranking: Ranking) -> Callable[[int, float], SearchExplain]:
    """Says of a chunk, by its id and score, how it came to its place."""
    dense_ranks = {chunk_id: rank for rank, (chunk_id, _) in enumerate(found.dense, 1)}
    lexical_ranks = {chunk_id: rank for rank, (chunk_id, _) in enumerate(found.lexical, 1)}

    def explain(chunk_id: int, score: float) -> SearchExplain:
        dense, lexical = dense_ranks.get(chunk_id), lexical_ranks.get(chunk_id)
        return SearchExplain(
            dense=RetrieverScore(dense, found.similarities[chunk_id]) if dense else None,
            lexical=RetrieverScore(lexical, found.bm25[chunk_id]) if lexical else None,
            fused_score=ranking.fused.get(chunk_id, score),
            coverage=found.coverage.get(chunk_id),
            rerank_score=ranking.rerank_scores.get(chunk_id),
            moved_from=ranking.moved_from.get(chunk_id),
            preference=ranking.preferences.get(chunk_id),
        )

    return explain


def explained(
    store: Store,
    requests: Sequence[tuple[Scope, CandidateRequest]],
    options: RetrievalOptions,
    found: Candidates,
    ranking: Ranking,
    dropped: Mapping[str, int],
) -> ReplyExplain:
    """What was done with a query; of several collections, told as of one.

    Args:
        store: Counts what filters remove: a pass over the documents, so only explanations ask.
        requests: Of each collection, as whom it was searched and what was asked.
        options: Of the search.
        found: The candidates of all of them.
        ranking: Its order.
        dropped: What was left out, by reason.
    """
    parts = [_of_collection(store, scope, request, options, found) for scope, request in requests]
    whole = parts[0] if len(parts) == 1 else _joined(parts)
    return replace(
        whole,
        terms=tuple(sorted(whole.terms, key=lambda item: (-item[1], item[0]))),
        reranker=ranking.reranker,
        rerank_reason=ranking.reason,
        dropped={reason: count for reason, count in dropped.items() if count},
    )


def _joined(parts: Sequence[ReplyExplain]) -> ReplyExplain:
    weights: dict[str, float] = {}
    removed: dict[str, int] = {}
    for part in parts:
        for term, weight in part.terms:
            weights[term] = max(weight, weights.get(term, 0.0))
        for condition, count in part.removed_by:
            removed[condition] = removed.get(condition, 0) + count
    filtered = [part for part in parts if part.filter_kept is not None]
    return ReplyExplain(
        terms=tuple(weights.items()),
        filter_kept=sum(part.filter_kept or 0 for part in filtered) if filtered else None,
        filter_removed=sum(part.filter_removed or 0 for part in filtered) if filtered else None,
        removed_by=tuple(removed.items()),
        enhancements=tuple(dict.fromkeys(note for part in parts for note in part.enhancements)),
    )


def _of_collection(
    store: Store, scope: Scope, request: CandidateRequest, options: RetrievalOptions, found: Candidates
) -> ReplyExplain:
    collection, plan = request.collection, request.plan
    weights = _weights(store, scope, request, found)
    terms = dict.fromkeys(analyzer_for(collection).query_terms(plan.query))
    kept = len(request.versions.version_ids) if request.versions else None
    removed_by = removed_by_condition(
        store.database,
        scope,
        collection.collection_id,
        document_filter_of(options),
        access_ids=collection.access_ids,
    )
    return ReplyExplain(
        terms=tuple((term, weights.get(lexeme(term, collection.collection_id), 0.0)) for term in terms),
        filter_kept=kept,
        filter_removed=None if kept is None else max(0, collection.document_count - kept),
        removed_by=tuple(removed_by),
        enhancements=tuple(f"{note.name}: {note.outcome} ({note.detail})" for note in plan.notes),
    )


def _weights(store: Store, scope: Scope, request: CandidateRequest, found: Candidates) -> Mapping[int, float]:
    """The weights of the query's lexemes; for whoever may not read everything, by what may be read."""
    collection = request.collection
    if collection.access_ids is None:
        return found.weights
    terms = analyzer_for(collection).query_terms(request.plan.query)
    counts = term_frequencies(terms, salt=collection.collection_id)
    readable = store.readable_terms.frequencies(scope, collection, list(counts))
    known = {number: df for number, df in readable.items() if df}
    return query_weights(counts, document_frequencies=known, chunks=max(1, collection.chunk_count))
