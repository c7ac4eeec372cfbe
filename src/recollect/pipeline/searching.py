"""Builds the searcher: its settings, rerankers and query enhancements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from recollect.errors import ConfigurationError
from recollect.model import Scope
from recollect.retrieval.analysis import Analyzer, lexeme
from recollect.retrieval.candidates import analyzer_for
from recollect.retrieval.enhance.generated import HydeEnhancer, MultiQueryEnhancer
from recollect.retrieval.enhance.synonyms import (
    STATEMENT_WORDS,
    AccountingEnhancer,
    SynonymEnhancer,
    acronym_enhancer,
    load_synonyms,
)
from recollect.retrieval.health import Sample, SearchMonitor, measure
from recollect.retrieval.ranking import Preferences, RankingSettings, RerankerMaker, RolePreference
from recollect.retrieval.rerank.registry import EMBEDDING_RERANKERS, make_reranker
from recollect.retrieval.retrievers import MODES
from recollect.retrieval.search import Searcher, SearchSettings

if TYPE_CHECKING:
    from recollect.config import EnhanceConfig, RAGConfig
    from recollect.embedding.cached import CachedEmbedder
    from recollect.llm.base import ChatModel
    from recollect.model.collection import Collection
    from recollect.pipeline.models import Embedders
    from recollect.plugins import Plugins
    from recollect.retrieval.enhance.plan import QueryEnhancer
    from recollect.retrieval.rerank.base import PairScorer, Reranker
    from recollect.retrieval.rerank.late_interaction import StoredVectors
    from recollect.retrieval.resident.collections import ResidentCollections
    from recollect.retrieval.why_not import WhyNotInquiry
    from recollect.store.store import Store


# Collections, and sets of rights in them, whose acronyms are kept.
_ACRONYM_SETS = 256


def make_searcher(
    store: Store,
    embedders: Embedders,
    config: RAGConfig,
    *,
    chat_model: Callable[[], ChatModel | None],
    scorer: Callable[[], PairScorer | None],
    rerankers: Plugins,
) -> Searcher:
    """The searcher of an open store, as configured.

    Args:
        store: Open.
        embedders: Make the models of collections, which embed queries.
        config: All settings.
        chat_model: Gives the language model, where one is configured, once an enhancement needs it.
        scorer: Gives the model of a provider that reranks, where one is configured.
        rerankers: All there are.
    """

    def contradicted(sample: Sample) -> None:
        if searcher.held is not None:
            why = "a search of it that was repeated in the database found something else"
            searcher.held.drop(sample.scope, sample.request.collection, why=why)

    searcher = Searcher(
        store,
        embedders.asking,
        rerankers=_rerankers(store, embedders, config, scorer, rerankers),
        enhancers=_enhancers_by_collection(store, config, chat_model),
        settings=search_settings(config),
        monitor=SearchMonitor(
            store.search_health,
            partial(measure, store.database, contradicted=contradicted),
            probe_rate=config.retrieval.probe_rate,
            take_query_counts=embedders.take_query_counts,
        ),
        meters=embedders.meters,
        resident=partial(_resident, store, config),
    )
    return searcher


def _resident(store: Store, config: RAGConfig) -> ResidentCollections:
    from recollect.retrieval.resident.collections import ResidentCollections, budget_bytes

    return ResidentCollections(store.resident, budget=budget_bytes(config.retrieval.resident_memory_mb))


def make_trial_searcher(
    store: Store,
    embedders: Embedders,
    config: RAGConfig,
    *,
    seen: Callable[[Collection], Collection],
    rerankers: Plugins,
) -> Searcher:
    """A searcher that tries collections in other vector spaces: without language models, caches and notes.

    Args:
        store: Open.
        embedders: Make the models of collections.
        config: All settings.
        seen: What is searched in place of a collection.
        rerankers: All there are.
    """
    return Searcher(
        store,
        embedders.asking,
        rerankers=_rerankers(store, embedders, config, lambda: None, rerankers),
        settings=replace(search_settings(config), notes=False, cache_entries=0),
        seen=seen,
        meters=embedders.meters,
    )


def make_why_not(
    store: Store,
    embedders: Embedders,
    config: RAGConfig,
    *,
    chat_model: Callable[[], ChatModel | None],
    scorer: Callable[[], PairScorer | None],
    rerankers: Plugins,
) -> WhyNotInquiry:
    """What says why a search of the same settings does not find a document; the arguments are `make_searcher`'s."""
    from recollect.retrieval.why_not import WhyNotInquiry

    made, settings = _rerankers(store, embedders, config, scorer, rerankers), search_settings(config)
    quiet = replace(settings, notes=False)

    def searcher(enhancers: Sequence[QueryEnhancer]) -> Searcher:
        return Searcher(store, embedders.asking, rerankers=made, enhancers=lambda _: enhancers, settings=quiet)

    return WhyNotInquiry(
        database=store.database,
        collections=store.collections,
        standings=store.standings,
        embedder=embedders.asking,
        searcher=searcher,
        enhancers=_enhancers_by_collection(store, config, chat_model),
        settings=settings,
    )


def _rerankers(
    store: Store,
    embedders: Embedders,
    config: RAGConfig,
    scorer: Callable[[], PairScorer | None],
    rerankers: Plugins,
) -> RerankerMaker:
    retrieval = config.retrieval

    @lru_cache
    def made(name: str, tenant_id: int, model: CachedEmbedder | None) -> Reranker:
        return make_reranker(
            name,
            # Not what remembers questions: it is called in threads of no tenant.
            embedder=None if model is None else model.inner,
            model=retrieval.rerank_model,
            model_directory=config.embedding.model_dir,
            precision=config.embedding.precision,
            threads=config.embedding.threads,
            language=config.language,
            stored=None if model is None else _stored_tokens(store, tenant_id, model.model_name),
            scorer=scorer() if name == "hosted" else None,
            rerankers=rerankers,
        )

    def reranker(name: str, tenant_id: int, place: Collection) -> Reranker:
        return made(name, tenant_id, embedders.asking(place) if name in EMBEDDING_RERANKERS else None)

    return reranker


def _stored_tokens(store: Store, tenant_id: int, model: str) -> StoredVectors:
    """Token vectors that are stored of chunks: those of the model that the question is compared with, of no other."""
    return partial(store.token_vectors.get_many, Scope(tenant_id=tenant_id), model=model)


def _enhancers_by_collection(
    store: Store, config: RAGConfig, chat_model: Callable[[], ChatModel | None]
) -> Callable[[Collection], Sequence[QueryEnhancer]]:
    settings = config.retrieval.enhance

    @lru_cache
    def enhancers(name: str, analyzer: Analyzer) -> tuple[QueryEnhancer, ...]:
        return tuple(_enhancers(settings, name, analyzer, chat_model))

    # Of one revision of each collection, by what may be read of it: a change of the collection replaces it, an erasure
    # too.
    acronyms: dict[tuple[int, int, tuple[int, ...] | None], tuple[str, tuple[QueryEnhancer, ...]]] = {}

    def of(place: Collection) -> tuple[QueryEnhancer, ...]:
        configured = enhancers(place.name, analyzer_for(place))
        if settings.accounting:
            configured = (_accounting(store, place), *configured)
        if not settings.acronyms:
            return configured
        if place.hidden:  # of a session nothing is kept, here either
            return (*_acronyms(store, place), *configured)
        key = (place.tenant_id, place.collection_id, place.access_ids)
        revision_id, own = acronyms.get(key, (None, ()))
        if revision_id != place.revision_id:
            own = _acronyms(store, place)
            if len(acronyms) >= _ACRONYM_SETS:
                acronyms.clear()
            acronyms[key] = (place.revision_id, own)
        return (*own, *configured)

    return of


def _accounting(store: Store, place: Collection) -> QueryEnhancer:
    def holds_statements() -> bool:
        analyzer = analyzer_for(place)
        terms = [{lexeme(term, place.collection_id) for term in analyzer.query_terms(word)} for word in STATEMENT_WORDS]
        wanted = sorted(set().union(*terms))
        scope = Scope(tenant_id=place.tenant_id)
        if place.access_ids is None:
            present = set(store.search.document_frequencies(scope, place, wanted))
        else:
            present = store.readable_terms.present(scope, place, wanted)
        return all(present & forms for forms in terms)

    return AccountingEnhancer(holds_statements)


def _acronyms(store: Store, place: Collection) -> tuple[QueryEnhancer, ...]:
    found = store.acronyms.frequent(Scope(tenant_id=place.tenant_id), place.collection_id, access_ids=place.access_ids)
    if not found:
        return ()

    return (acronym_enhancer(found, analyzer_for(place)),)


def search_settings(config: RAGConfig) -> SearchSettings:
    """What searches do where their options leave it open, as configured."""
    retrieval = config.retrieval
    return SearchSettings(
        top_k=config.top_k,
        # A retriever of somebody's own is asked before: what is left is for searches that it cannot answer.
        mode=retrieval.mode if retrieval.mode in MODES else "hybrid",
        ranking=RankingSettings(
            fusion=retrieval.fusion,
            dense_weight=retrieval.dense_weight,
            rrf_k=retrieval.rrf_k,
            rerank=retrieval.rerank if config.reranking.provider == "none" else "hosted",
            rerank_candidates=(
                retrieval.rerank_candidates if config.reranking.provider == "none" else config.reranking.candidates
            ),
            rerank_weight=retrieval.rerank_weight,
            rerank_timeout_seconds=retrieval.rerank_timeout_seconds,
            pseudo_relevance=retrieval.pseudo_relevance,
            preferences=Preferences(
                department_boost=config.access.department_boost,
                other_departments=config.access.other_departments,
                roles={
                    role: RolePreference(departments=one.departments, factor=one.factor)
                    for role, one in config.access.role_preferences.items()
                },
                privileged_roles=config.access.privileged_roles,
            ),
        ),
        candidates=retrieval.candidates,
        similarity_threshold=retrieval.similarity_threshold,
        min_score=retrieval.min_score,
        min_relevance=retrieval.min_relevance,
        lexical_budget=retrieval.lexical_budget,
        collapse_duplicates=retrieval.collapse_duplicates,
        cache_entries=retrieval.cache_entries,
        cache_seconds=retrieval.cache_seconds,
        auto_expire=config.temporal.auto_expire,
        notes=config.retrieval.notes,
    )


def _enhancers(
    settings: EnhanceConfig, name: str, analyzer: Analyzer, chat_model: Callable[[], ChatModel | None]
) -> list[QueryEnhancer]:
    made: list[QueryEnhancer] = []
    if name in settings.synonyms:
        made.append(SynonymEnhancer(load_synonyms(settings.synonyms[name]), analyzer))
    if settings.multi_query or settings.hyde:
        model = chat_model()
        if model is None:
            raise ConfigurationError(
                "rag.retrieval.enhance: multi_query and hyde need a language model. Configure one ([rag.answer]), or "
                "leave them off."
            )
        if settings.multi_query:
            made.append(MultiQueryEnhancer(model, count=settings.multi_query, timeout_seconds=settings.timeout_seconds))
        if settings.hyde:
            made.append(HydeEnhancer(model, timeout_seconds=settings.timeout_seconds))
    return made
