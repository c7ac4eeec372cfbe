"""Replies of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NotRequired

from recollect.model.search_options import SearchMode
from recollect.replies._shape import Shape, rounded
from recollect.replies.passages import PassageNoteJson, PassagePlaceJson, passage_notes_json, passage_place_json

if TYPE_CHECKING:
    from recollect.model import ReplyExplain, RetrievedContext, RetrieverScore, SearchExplain, SearchReply
    from recollect.model.passage import AlsoIn


class AlsoInJson(Shape):
    """Another document that says what a passage says."""

    document_id: int
    source: str
    title: str
    collection: str | None
    """Where it is, in a search of several collections."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""


class RetrieverScoreJson(Shape):
    """Where one retriever placed a passage."""

    rank: int
    """From 1."""
    score: float
    """The retriever's own: cosine similarity of embeddings, BM25 of words."""


class SearchExplainJson(Shape):
    """How a passage came to its rank."""

    dense: RetrieverScoreJson | None
    """Its place by embeddings; null where that retriever did not find it."""
    lexical: RetrieverScoreJson | None
    """Its place by words; null where that retriever did not find it."""
    fused_score: float
    """What fusion made of both."""
    coverage: NotRequired[float]
    """The share of the query's words that it holds, by their rarity."""
    rerank_score: NotRequired[float]
    """The reranker's own score."""
    preference: NotRequired[float]
    """What the score was multiplied by in the end because of who asked."""


class SearchResultJson(PassagePlaceJson):
    """A passage that was found."""

    rank: int
    """From 1."""
    score: float
    """What the results are ordered by, best first; comparable within one search only."""
    relevance: float | None
    """How likely it answers the query, 0 to 1; comparable over queries and collections."""
    content: str
    """The passage: the characters `start_offset` to `end_offset` of the document's content."""
    chunk_id: int
    metadata: dict[str, Any]
    """The document's."""
    table_header: NotRequired[str]
    """The line that names the columns of the table that it begins in, where it does not hold that line itself."""
    generated_by: NotRequired[str]
    """The model that has written it, as `provider/model`: of a picture's description."""
    collection: NotRequired[str]
    """Where it was found, in a search of several collections."""
    server: NotRequired[str]
    """The remote that found it. The numbers of its document and chunk are negative; `source` names it there."""
    also_in: NotRequired[list[AlsoInJson]]
    """The other documents that say the same."""
    notes: NotRequired[list[PassageNoteJson]]
    """Why it is not the last word."""
    explain: NotRequired[SearchExplainJson]


class TermWeightJson(Shape):
    """A term of a query."""

    term: str
    weight: float
    """Inverse document frequency times occurrences; 0 where the collection does not hold the term."""


class RemovedByJson(Shape):
    """A condition of a filter."""

    condition: str
    """In words."""
    removed: int
    """Documents that it would remove by itself."""


class FilterCountsJson(Shape):
    """What filters kept and removed."""

    kept: int
    """Documents that remain."""
    removed: int | None
    """Current documents of the collection that do not."""
    removed_by: list[RemovedByJson]


class ReplyExplainJson(Shape):
    """What was done with a query."""

    terms: list[TermWeightJson]
    """Heaviest first."""
    filter: FilterCountsJson | None
    """Null without filters."""
    enhancements: list[str]
    """What each query enhancement did, in words."""
    reranker: str | None
    """Its name; null where none was asked."""
    rerank_reason: str
    """Why its order is not the one shown; empty where it is."""
    dropped: dict[str, int]
    """Candidates that were left out, by reason."""


class SearchReplyJson(Shape):
    """Everything that one search has to say."""

    query: str
    """As asked."""
    collection: str
    """The collection searched."""
    mode: SearchMode
    results: list[SearchResultJson]
    """Best first."""
    timings_ms: dict[str, float]
    """Milliseconds by stage."""
    paths: NotRequired[dict[str, str]]
    """Which path each retriever took; where an explanation was asked for."""
    exact: NotRequired[bool]
    """Whether both retrievers are known to have found their best; where an explanation was asked for."""
    reranked: NotRequired[bool | None]
    """Whether a reranker had a say; null where none was asked."""
    explain: NotRequired[ReplyExplainJson]
    """Where it was asked for."""
    warnings: NotRequired[list[str]]
    """Names servers and parts that failed or did not reply, and says why nothing was found."""


class SearchHintsJson(Shape):
    """Why a search can have found nothing."""

    warnings: list[str]
    """In words; empty where nothing can be said."""


def search_reply_json(reply: SearchReply, *, warnings: Sequence[str] = ()) -> SearchReplyJson:
    """A reply.

    Args:
        reply: Of a search.
        warnings: Why nothing was found.
    """
    shown: SearchReplyJson = {
        "query": reply.query,
        "collection": reply.collection,
        "mode": reply.mode,
        "results": [_result(result) for result in reply.results],
        "timings_ms": rounded(reply.timings_ms),
    }
    if any(result.explain for result in reply.results):
        shown["paths"] = dict(reply.paths)
    if reply.explain is not None:
        shown["exact"] = reply.exact
        shown["reranked"] = reply.reranked
        shown["explain"] = _reply_explanation(reply.explain)
    if reply.warnings or warnings:
        shown["warnings"] = [*reply.warnings, *warnings]
    return shown


def _result(result: RetrievedContext) -> SearchResultJson:
    shown: SearchResultJson = {
        "rank": result.rank,
        "score": result.score,
        "relevance": result.relevance,
        "content": result.content,
        "chunk_id": result.chunk_id,
        **passage_place_json(result),  # type: ignore[typeddict-item]  # it has none of the optional keys
        "metadata": dict(result.metadata),
    }
    if result.table_header is not None:
        shown["table_header"] = result.table_header
    if result.generated_by is not None:
        shown["generated_by"] = result.generated_by
    if result.collection is not None:
        shown["collection"] = result.collection
    if result.server is not None:
        shown["server"] = result.server
    if result.also_in:
        shown["also_in"] = [_also_in(one) for one in result.also_in]
    if result.notes:
        shown["notes"] = passage_notes_json(result.notes)
    if result.explain is not None:
        shown["explain"] = _explanation(result.explain)
    return shown


def _also_in(one: AlsoIn) -> AlsoInJson:
    shown: AlsoInJson = {
        "document_id": one.document_id,
        "source": one.source,
        "title": one.title,
        "collection": one.collection,
    }
    if one.id is not None:
        shown["id"] = one.id
    return shown


def _explanation(explain: SearchExplain) -> SearchExplainJson:
    shown: SearchExplainJson = {
        "dense": _placed(explain.dense),
        "lexical": _placed(explain.lexical),
        "fused_score": explain.fused_score,
    }
    if explain.coverage is not None:
        shown["coverage"] = explain.coverage
    if explain.rerank_score is not None:
        shown["rerank_score"] = explain.rerank_score
    if explain.preference is not None:
        shown["preference"] = explain.preference
    return shown


def _placed(score: RetrieverScore | None) -> RetrieverScoreJson | None:
    return None if score is None else {"rank": score.rank, "score": score.score}


def _reply_explanation(explain: ReplyExplain) -> ReplyExplainJson:
    return {
        "terms": [{"term": term, "weight": weight} for term, weight in explain.terms],
        "filter": None
        if explain.filter_kept is None
        else {
            "kept": explain.filter_kept,
            "removed": explain.filter_removed,
            "removed_by": [{"condition": name, "removed": count} for name, count in explain.removed_by],
        },
        "enhancements": list(explain.enhancements),
        "reranker": explain.reranker,
        "rerank_reason": explain.rerank_reason,
        "dropped": dict(explain.dropped),
    }
