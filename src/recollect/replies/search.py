"""Replies of a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired

from recollect.model.passage import RetrievedContext
from recollect.model.search_options import SearchMode
from recollect.replies._shape import Shape, rounded

if TYPE_CHECKING:
    from recollect.model import ReplyExplain, SearchReply


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
    results: Sequence[RetrievedContext]
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
    """A reply, whose results are still records.

    Args:
        reply: Of a search.
        warnings: Why nothing was found.
    """
    shown: SearchReplyJson = {
        "query": reply.query,
        "collection": reply.collection,
        "mode": reply.mode,
        "results": reply.results,
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
