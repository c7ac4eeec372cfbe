"""Why a search misses a document: the same search is run in several ways, and the document looked for in each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recollect.model import CompleteOptions, RetrievalOptions, Scope
from recollect.model.bounds import MAX_RERANK_CANDIDATES, MAX_TOP_K
from recollect.model.filter import Filter, parse_filter, top_level
from recollect.model.scope import Target
from recollect.model.why_not import NamedDocument, WhyNot
from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import analyzer_for
from recollect.retrieval.enhance.plan import QueryPlan, enhance, query_vector
from recollect.retrieval.ranking import NO_RERANKER, UNKNOWN_RERANKER
from recollect.retrieval.relevance import RelevanceMeter
from recollect.retrieval.rerank.registry import DEFAULTS
from recollect.retrieval.thresholds import BELOW_FLOOR, Thresholds
from recollect.retrieval.validation import validate
from recollect.retrieval.why_not_advice import advice
from recollect.retrieval.why_not_stages import (
    Evidence,
    LexicalStanding,
    Run,
    Word,
    access_stages,
    blamed,
    document_stage,
    filter_stage,
    passages_of,
    search_stages,
)
from recollect.store.filters import DocumentFilter, document_filter_of, failed_conditions, matching_versions

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import SearchReply
    from recollect.model.collection import Collection
    from recollect.retrieval.enhance.plan import QueryEnhancer
    from recollect.retrieval.search import Searcher, SearchSettings
    from recollect.store.collections import CollectionRepository
    from recollect.store.database import Database
    from recollect.store.why_not import Standing, StandingRepository


_WORD = re.compile(r"\w+(?:[-.'@/]\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNotInquiry:
    """Says where a document stands at every stage of a search. Safe to share between threads.

    Attributes:
        database: The store's connections.
        collections: Finds the collection.
        standings: Finds the document, and counts what comes before it.
        embedder: Gives the model of a collection, which embeds the query, as the searcher has it.
        searcher: Makes a searcher whose enhancements are those given: an inquiry searches many times, and a language
            model that enhances the query is asked once.
        enhancers: Gives the query enhancements of a collection.
        settings: What the options of a search leave open, as the searcher has them.
    """

    database: Database
    collections: CollectionRepository
    standings: StandingRepository
    embedder: Callable[[Collection], EmbeddingProvider]
    searcher: Callable[[Sequence[QueryEnhancer]], Searcher]
    enhancers: Callable[[Collection], Sequence[QueryEnhancer]]
    settings: SearchSettings

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
        searched = self.collections.get(scope, collection)
        standing = self.standings.find(scope, searched, document)
        stages = [document_stage(standing, searched.name)]
        rank = None
        if stages[0].passed:
            failed = failed_conditions(
                self.database, scope, searched.collection_id, asked, version_id=standing.version_id
            )
            stages += access_stages(standing, datetime.now(UTC))
            stages += filter_stage(standing, asked.conditions(), failed)
            evidence = self._gather(scope, searched, standing, query, _without(self.settings.complete(options), failed))
            later = list(search_stages(evidence))
            kept_out = blamed(later)
            told = advice(kept_out, later, evidence) if kept_out else ""
            rank = evidence.rank(evidence.asked)
            place = f"result {rank:,} of {len(evidence.asked.results):,}." if rank else ""
            verdict = f"is {place}" if rank else f"is not found: {told}"
            if failed:
                without = f"be {place}" if rank else f"still be missing: {told}"
                verdict, rank = f"is not found: {stages[-1].detail}. Without that it would {without}", None
            stages += later
        else:
            elsewhere = f"Search that collection (collection={standing.collection!r}), or ingest it into this one."
            remedy = elsewhere if standing.collection != searched.name else "Ingest it again."
            verdict = f"cannot be found: {stages[0].detail}. {remedy}"
        return WhyNot(
            query=query,
            collection=searched.name,
            document=NamedDocument(
                document_id=standing.document_id,
                title=standing.title,
                source=standing.source,
                department=standing.department,
            ),
            found=rank is not None,
            rank=rank,
            stages=tuple(stages),
            verdict=f"{standing.source} {verdict}",
        )

    def _gather(
        self, scope: Scope, searched: Collection, standing: Standing, query: str, options: CompleteOptions
    ) -> Evidence:
        plan = enhance(query, self.enhancers(searched) if options.enhance else ())
        searcher = self.searcher([_Planned(plan)])

        def run(changed: CompleteOptions) -> SearchReply:
            told = replace(changed, explain=True, use_cache=False)
            return searcher.search(scope, query, told, Target.of(searched.name))

        limit, thresholds = self.settings.limit(options), Thresholds.of(options, self.settings)
        kept = document_filter_of(options, scope.as_of)
        versions = None
        if kept or scope.as_of is not None:
            versions = matching_versions(
                self.database, scope, searched.collection_id, kept, access_ids=searched.access_ids
            )
        ids = versions.version_ids if versions else None
        asked = run(options)
        embedded = None
        if options.mode != "lexical" or thresholds.similarity is not None:
            vector = query_vector(plan, self.embedder(searched))
            embedded = self.standings.dense_rank(
                scope, searched, vector, version_id=standing.version_id, version_ids=ids
            )
        bare = self._bare(options, limit)
        unranked = replace(bare, rerank=NO_RERANKER)
        ranked = run(bare)
        as_asked = ("similarity_threshold", "min_relevance", "min_score", "collapse_duplicates")
        return Evidence(
            standing=standing,
            options=options,
            limit=limit,
            similarity_threshold=thresholds.similarity,
            min_relevance=self._least_relevance(searched, thresholds, asked),
            min_score=thresholds.score,
            chunk_count=versions.chunk_count if versions else searched.chunk_count,
            embedded=embedded,
            lexical=None
            if options.mode == "dense"
            else self._lexical(scope, searched, standing, query, unranked, run, ids),
            run=run,
            asked=asked,
            dense=None if options.mode == "lexical" else run(replace(unranked, mode="dense")),
            fused=ranked if ranked.explain and ranked.explain.reranker is None else run(unranked),
            ranked=ranked,
            distinct=run(replace(bare, **{name: getattr(options, name) for name in as_asked})),
        )

    def _least_relevance(self, searched: Collection, thresholds: Thresholds, asked: SearchReply) -> float | None:
        """The threshold in force: the one given, or the model's floor where not even the best passage reached it."""
        stopped = asked.explain is not None and asked.explain.dropped.get(BELOW_FLOOR)
        if thresholds.relevance is not None or not stopped:
            return thresholds.relevance
        return RelevanceMeter(self.embedder(searched)).floor(similarities=True, coverage=asked.mode == "hybrid")

    def _bare(self, options: CompleteOptions, limit: int) -> CompleteOptions:
        """The whole ranking of the same candidates: nothing left out for a threshold, likeness or want of room."""
        settings = self.settings
        known = DEFAULTS.get(options.rerank or settings.ranking.rerank, UNKNOWN_RERANKER)
        depth = settings.ranking.rerank_candidates or known.depth
        return replace(
            options,
            top_k=min(limit, MAX_TOP_K),
            candidates=limit,
            # The depth follows from top_k, which is another one here.
            rerank_candidates=options.rerank_candidates
            or min(max(depth, 2 * options.top_k), 2 * depth, MAX_RERANK_CANDIDATES),
            similarity_threshold=None if settings.similarity_threshold is None else -1.0,
            min_relevance=0.0,
            min_score=None if settings.min_score is None else -math.inf,
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
        query: str,
        bare: CompleteOptions,
        run: Run,
        version_ids: list[int] | None,
    ) -> LexicalStanding:
        alone: dict[str, Any] = {"department": (), "source": (), "tags": (), "metadata_filters": {}, "top_k": 1}
        words_only = replace(bare, mode="lexical", pseudo_relevance=False)
        only = replace(words_only, filters={"document_id": standing.document_id}, **alone)
        best = passages_of(run(only), standing.document_id)
        whole = run(replace(words_only, top_k=MAX_TOP_K, candidates=max(words_only.candidates or 0, MAX_TOP_K)))
        terms = whole.explain.terms if whole.explain else ()
        weights = {lexeme(term, searched.collection_id): weight for term, weight in terms}
        held = self.standings.lexemes(scope, standing.version_id, list(weights))
        analyzer = analyzer_for(searched)
        # Backwards: of several words of one term, the first is shown.
        written = {term: word for word in reversed(_WORD.findall(query)) for term in analyzer.query_terms(word)}
        words = tuple(
            Word(term, written.get(term, term), weight or None, lexeme(term, searched.collection_id) in held)
            for term, weight in terms
        )
        if not best:
            return LexicalStanding(words=words, score=None, rank=None, exact=True)
        known = passages_of(whole, standing.document_id)
        explain = known[0].explain.lexical if known and known[0].explain else None
        if explain is not None:
            return LexicalStanding(words=words, score=best[0].score, rank=explain.rank, exact=True)
        positive = {number: weight for number, weight in weights.items() if weight > 0}
        rank = self.standings.stored_rank(
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


def _without(options: CompleteOptions, failed: Sequence[Filter]) -> CompleteOptions:
    """The options without the conditions that failed."""

    def fails(**simple: tuple[str, ...] | dict[str, object]) -> bool:
        return any(condition in failed for condition in DocumentFilter(**simple).conditions())  # type: ignore[arg-type]

    filters, metadata = options.filters or {}, options.metadata_filters
    left = {
        key: value
        for key, value in filters.items()
        if not any(part in failed for part in top_level(parse_filter({key: value})))
    }
    return replace(
        options,
        department=() if fails(department=options.department) else options.department,
        source=() if fails(source=options.source) else options.source,
        tags=tuple(tag for tag in options.tags if not fails(tags=(tag,))),
        metadata_filters={key: value for key, value in metadata.items() if not fails(metadata={key: value})},
        filters=left or None,
    )
