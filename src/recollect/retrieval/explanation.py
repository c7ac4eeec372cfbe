"""How a search came to its results, for those who ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.model import ReplyExplain, RetrievalOptions, RetrieverScore, Scope, SearchExplain
from recollect.retrieval.analysis import lexeme, term_frequencies
from recollect.retrieval.bm25 import query_weights
from recollect.retrieval.candidates import CandidateRequest, Candidates, analyzer_for
from recollect.store.filters import document_filter_of, removed_by_condition

if TYPE_CHECKING:
    from recollect.retrieval.ranking import Ranking
    from recollect.store.store import Store


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
