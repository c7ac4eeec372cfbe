"""Why a search misses a document: the same search is run in several ways, and the document looked for in each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.model import CompleteOptions, RetrievalOptions, Scope
from recollect.model.bounds import MAX_RERANK_CANDIDATES, MAX_TOP_K
from recollect.model.filter import Filter, parse_filter, top_level
from recollect.model.scope import Target
from recollect.model.why_not import NamedDocument, WhyNot, WhyNotStage
from recollect.retrieval.analysis import Analyzer, lexeme
from recollect.retrieval.candidates import analyzer_for
from recollect.retrieval.enhance.plan import QueryPlan, enhance, query_vector
from recollect.retrieval.ranking import NO_RERANKER, UNKNOWN_RERANKER
from recollect.retrieval.relevance import RelevanceMeter
from recollect.retrieval.rerank.registry import DEFAULTS
from recollect.retrieval.thresholds import BELOW_FLOOR, Thresholds
from recollect.retrieval.validation import validate
from recollect.retrieval.why_not_advice import advice
from recollect.retrieval.why_not_stages import (
    DECISIVE,
    Evidence,
    LexicalStanding,
    Trials,
    Word,
    access_stages,
    document_stage,
    filter_stage,
    passages_of,
    search_stages,
)
from recollect.store.filters import (
    DocumentFilter,
    document_filter_of,
    failed_conditions,
    matching_versions,
)

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import SearchReply
    from recollect.model.collection import Collection
    from recollect.retrieval.enhance.plan import QueryEnhancer
    from recollect.retrieval.search import Searcher, SearchSettings
    from recollect.store.collections import CollectionRepository
    from recollect.store.database import Database
    from recollect.store.why_not import BestChunk, Standing, StandingRepository


_WORD = re.compile(r"\w+(?:[-.'@/]\w+)*")


class WhyNotInquiry:
    """Says where a document stands at every stage of a search. Safe to share between threads.

    Args:
        database: The store's connections.
        collections: Finds the collection.
        standings: Finds the document, and counts what comes before it.
        embedder: Gives the model of a collection, which embeds the query, as the searcher has it.
        searcher: Makes a searcher whose enhancements are those given: an inquiry searches many times, and a language
            model that enhances the query is asked once.
        enhancers: Gives the query enhancements of a collection.
        settings: What the options of a search leave open, as the searcher has them.
    """

    def __init__(
        self,
        database: Database,
        collections: CollectionRepository,
        standings: StandingRepository,
        embedder: Callable[[Collection], EmbeddingProvider],
        *,
        searcher: Callable[[Sequence[QueryEnhancer]], Searcher],
        enhancers: Callable[[Collection], Sequence[QueryEnhancer]],
        settings: SearchSettings,
    ) -> None:
        self._database = database
        self._collections = collections
        self._standings = standings
        self._embedder = embedder
        self._searcher = searcher
        self._enhancers = enhancers
        self._settings = settings

    def ask(
        self, scope: Scope, query: str, document: int | str, options: RetrievalOptions, *, collection: str
    ) -> WhyNot:
        """Where a document stands, and what kept it out.

        Args:
            scope: Whose knowledge, and as of when.
            query: As it was searched.
            document: Its id, source, title, or the end of its path.
            options: As they were searched with.
            collection: Where was searched.

        Raises:
            UsageError: The query or an option is not valid, or several documents are meant.
            NotFoundError: There is no such collection or document.
        """
        validate(query, options)
        asked = document_filter_of(options, scope.as_of)
        searched = self._collections.get(scope, collection)
        standing = self._standings.find(scope, searched, document)
        stages = [document_stage(standing, searched.name)]
        if not stages[0].passed:
            return _closed(query, searched, standing, stages)
        failed = failed_conditions(self._database, scope, searched.collection_id, asked, version_id=standing.version_id)
        stages += access_stages(standing, datetime.now(UTC))
        stages += filter_stage(standing, asked.conditions(), failed)
        kept = _without(self._settings.complete(options), failed)
        trier, plan = self._trier(scope, searched, query, kept)
        evidence = self._gather(scope, searched, standing, kept, trier, plan)
        later = list(search_stages(evidence))
        found = [] if failed else evidence.places(evidence.trials.asked)
        blamed = _blamed(later)
        told = advice(blamed, later, evidence, trier.run) if blamed else ""
        without = passages_of(evidence.trials.asked, standing.document_id)
        return WhyNot(
            query=query,
            collection=searched.name,
            document=_named(standing),
            found=bool(found),
            rank=found[0].rank if found else None,
            stages=(*stages, *later),
            verdict=_verdict(
                standing,
                failed=_blamed(stages),
                rank=without[0].rank if without else None,
                told=told,
                reply=evidence.trials.asked,
            ),
        )

    def _trier(
        self, scope: Scope, searched: Collection, query: str, options: CompleteOptions
    ) -> tuple[_Trier, QueryPlan]:
        plan = enhance(query, self._enhancers(searched) if options.enhance else ())
        return _Trier(self._searcher([_Planned(plan)]), scope, query, searched.name), plan

    def _gather(
        self,
        scope: Scope,
        searched: Collection,
        standing: Standing,
        options: CompleteOptions,
        trier: _Trier,
        plan: QueryPlan,
    ) -> Evidence:
        settings = self._settings
        limit = settings.limit(options)
        bare = self._bare(options, limit)
        asked_filter = document_filter_of(options, scope.as_of)
        versions = None
        if asked_filter or scope.as_of is not None:
            versions = matching_versions(
                self._database, scope, searched.collection_id, asked_filter, access_ids=searched.access_ids
            )
        ids = versions.version_ids if versions else None
        thresholds = Thresholds.of(options, settings)
        threshold = thresholds.similarity
        asked = trier.run(options)
        embedded: BestChunk | None = None
        if options.mode != "lexical" or threshold is not None:
            vector = query_vector(plan, self._embedder(searched))
            embedded = self._standings.dense_rank(
                scope, searched, vector, version_id=standing.version_id, version_ids=ids
            )
        ranked = trier.run(bare)
        unranked = replace(bare, rerank=NO_RERANKER)
        return Evidence(
            standing=standing,
            options=options,
            limit=limit,
            similarity_threshold=threshold,
            min_relevance=self._least_relevance(searched, thresholds, asked),
            min_score=thresholds.score,
            chunk_count=versions.chunk_count if versions else searched.chunk_count,
            embedded=embedded,
            lexical=None if options.mode == "dense" else self._lexical(scope, searched, standing, unranked, trier, ids),
            trials=Trials(
                asked=asked,
                dense=None if options.mode == "lexical" else trier.run(replace(unranked, mode="dense")),
                fused=ranked if ranked.explain and ranked.explain.reranker is None else trier.run(unranked),
                ranked=ranked,
                distinct=trier.run(
                    replace(
                        bare,
                        similarity_threshold=options.similarity_threshold,
                        min_relevance=options.min_relevance,
                        min_score=options.min_score,
                        collapse_duplicates=options.collapse_duplicates,
                    )
                ),
            ),
        )

    def _least_relevance(self, searched: Collection, thresholds: Thresholds, asked: SearchReply) -> float | None:
        """The threshold in force: the one given, or the model's floor where not even the best passage reached it."""
        stopped = asked.explain is not None and asked.explain.dropped.get(BELOW_FLOOR)
        if thresholds.relevance is not None or not stopped:
            return thresholds.relevance
        return RelevanceMeter(self._embedder(searched)).floor(similarities=True, coverage=asked.mode == "hybrid")

    def _bare(self, options: CompleteOptions, limit: int) -> CompleteOptions:
        """The whole ranking of the same candidates: nothing left out for a threshold, likeness or want of room."""
        name = options.rerank or self._settings.ranking.rerank
        depth = self._settings.ranking.rerank_candidates or DEFAULTS.get(name, UNKNOWN_RERANKER).depth
        return replace(
            options,
            top_k=min(limit, MAX_TOP_K),
            candidates=limit,
            # The depth follows from top_k, which is another one here.
            rerank_candidates=options.rerank_candidates
            or min(max(depth, 2 * options.top_k), 2 * depth, MAX_RERANK_CANDIDATES),
            similarity_threshold=None if self._settings.similarity_threshold is None else -1.0,
            min_relevance=0.0,
            min_score=None if self._settings.min_score is None else -math.inf,
            collapse_duplicates=False,
            mmr_lambda=None,
            neighbours=0,
            merge_adjacent=False,
        )

    def _lexical(
        self,
        scope: Scope,
        searched: Collection,
        standing: Standing,
        bare: CompleteOptions,
        trier: _Trier,
        version_ids: list[int] | None,
    ) -> LexicalStanding:
        words_only = replace(bare, mode="lexical", pseudo_relevance=False)
        alone = replace(_without_filters(words_only), top_k=1, filters={"document_id": standing.document_id})
        best = passages_of(trier.run(alone), standing.document_id)
        whole = trier.run(replace(words_only, top_k=MAX_TOP_K, candidates=max(words_only.candidates or 0, MAX_TOP_K)))
        weights = {lexeme(term, searched.collection_id): weight for term, weight in _terms(whole)}
        held = self._standings.lexemes(scope, standing.version_id, list(weights))
        written = _written(trier.query, analyzer_for(searched))
        words = tuple(
            Word(term, written.get(term, term), weight or None, lexeme(term, searched.collection_id) in held)
            for term, weight in _terms(whole)
        )
        if not best:
            return LexicalStanding(words=words, score=None, rank=None, exact=True)
        known = passages_of(whole, standing.document_id)
        explain = known[0].explain.lexical if known and known[0].explain else None
        if explain is not None:
            return LexicalStanding(words=words, score=best[0].score, rank=explain.rank, exact=True)
        positive = {number: weight for number, weight in weights.items() if weight > 0}
        rank = self._standings.stored_rank(
            scope, searched, positive, version_id=standing.version_id, version_ids=version_ids
        )
        return LexicalStanding(words=words, score=best[0].score, rank=max(rank, MAX_TOP_K + 1), exact=False)


@dataclass(frozen=True, slots=True)
class _Planned:
    """An enhancement that was thought out before: the same for every trial."""

    plan: QueryPlan
    name: str = "planned"

    def enhance(self, plan: QueryPlan) -> QueryPlan:  # noqa: ARG002 - it is the plan of this very query
        return self.plan


@dataclass(frozen=True, slots=True)
class _Trier:
    searcher: Searcher
    scope: Scope
    query: str
    collection: str

    def run(self, options: CompleteOptions) -> SearchReply:
        complete = replace(options, explain=True, use_cache=False)
        return self.searcher.search(self.scope, self.query, complete, Target.of(self.collection))


def _written(query: str, analyzer: Analyzer) -> dict[str, str]:
    """The words of a query by the terms that are made of them."""
    written: dict[str, str] = {}
    for word in _WORD.findall(query):
        for term in analyzer.query_terms(word):
            written.setdefault(term, word)
    return written


def _terms(reply: SearchReply) -> Sequence[tuple[str, float]]:
    return reply.explain.terms if reply.explain else ()


def _without_filters(options: CompleteOptions) -> CompleteOptions:
    return replace(options, department=(), source=(), tags=(), metadata_filters={}, filters=None)


def _without(options: CompleteOptions, failed: Sequence[Filter]) -> CompleteOptions:
    """The options without the conditions that failed."""
    if not failed:
        return options
    left = {
        key: value
        for key, value in (options.filters or {}).items()
        if not any(part in failed for part in top_level(parse_filter({key: value})))
    }

    def fails(**simple: tuple[str, ...] | dict[str, object]) -> bool:
        (condition,) = DocumentFilter(**simple).conditions()  # type: ignore[arg-type]
        return condition in failed

    return replace(
        options,
        department=() if options.department and fails(department=options.department) else options.department,
        source=() if options.source and fails(source=options.source) else options.source,
        tags=tuple(tag for tag in options.tags if not fails(tags=(tag,))),
        metadata_filters={
            key: value for key, value in options.metadata_filters.items() if not fails(metadata={key: value})
        },
        filters=left or None,
    )


def _blamed(stages: Sequence[WhyNotStage]) -> WhyNotStage | None:
    """What kept a document out: the first stage that decides and that it did not pass."""
    failed = {stage.stage: stage for stage in stages if not stage.passed}
    return next((failed[name] for name in DECISIVE if name in failed), None)


def _named(standing: Standing) -> NamedDocument:
    return NamedDocument(
        document_id=standing.document_id,
        title=standing.title,
        source=standing.source,
        department=standing.department,
    )


def _closed(query: str, searched: Collection, standing: Standing, stages: Sequence[WhyNotStage]) -> WhyNot:
    remedy = "Ingest it again."
    if standing.collection != searched.name:
        remedy = f"Search that collection (collection={standing.collection!r}), or ingest it into this one."
    return WhyNot(
        query=query,
        collection=searched.name,
        document=_named(standing),
        found=False,
        rank=None,
        stages=tuple(stages),
        verdict=f"{standing.source} cannot be found: {stages[0].detail}. {remedy}",
    )


def _verdict(standing: Standing, *, failed: WhyNotStage | None, rank: int | None, told: str, reply: SearchReply) -> str:
    name = standing.source
    place = f"result {rank:,} of {len(reply.results):,}" if rank else ""
    if failed is None:
        return f"{name} is {place}." if rank else f"{name} is not found: {told}"
    without = f"Without that it would be {place}." if rank else f"Without that it would still be missing: {told}"
    return f"{name} is not found: {failed.detail}. {without}"
