"""Replies of searches, answers with their citations, and why a search misses a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, cast

from recollect.model.answer import Citation, UnsupportedSentence
from recollect.model.outline import PageBox, PassagePart
from recollect.model.passage import RetrievedContext, TokenUsage
from recollect.model.record import json_of
from recollect.model.search_options import SearchMode
from recollect.replies._shape import Shape, Timestamp, rounded

if TYPE_CHECKING:
    from recollect.model import Answer, ReplyExplain, SearchReply
    from recollect.model.answer import Nearest
    from recollect.model.why_not import WhyNot, WhyNotStage


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


# Answers with their citations.


class NearestJson(Shape):
    """The evidence that came closest to supporting an answer, and fell short."""

    document_id: int
    source: str
    department: str | None
    section: str | None
    """Titles of the headings that the quote stands under, joined by ` > `; null outside any section."""
    page: int | None
    """That the quote begins on, from 1; null where the format has no pages."""
    last_page: int | None
    """That it ends on."""
    start_offset: int
    """Where the quote begins in the document's content, in characters."""
    end_offset: int
    """Just behind its last character."""
    quote: str
    """Exactly the characters `start_offset` to `end_offset` of the document's content."""
    boxes: NotRequired[list[PageBox]]
    """Where the lines of the quote stand on their pages, of PDF files and of pages whose text was recognised."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""

    probability: float
    """Estimated probability that the evidence answers the question, 0 to 1."""
    threshold: float
    """What the probability had to reach."""
    missing_identifier: bool
    """Whether it fell short because the question names an identifier that no passage holds."""


class AnswerJson(Shape):
    """An answer with the characters that it rests on, or a refusal."""

    question: str
    """As asked."""
    answer: str
    """With markers such as `[1]`; the refusal sentence where nothing supports an answer."""
    refused: bool
    citations: Sequence[Citation]
    """In order of their markers; empty for a refusal."""
    model: str | None
    """The language model that was asked for it; null where none was."""
    generated_by: str | None
    """The language model that wrote the text; null: it is quoted from documents."""
    usage: TokenUsage | None
    """What that cost; null where none was asked."""
    unsupported: Sequence[UnsupportedSentence]
    """The sentences that the sources do not support, in order."""
    rewritten_question: str | None
    """The question that was searched for and answered, where it is another than was asked."""
    timings_ms: dict[str, float]
    """Milliseconds by stage."""
    nearest: NotRequired[NearestJson | None]
    """What came nearest to a refusal's answer; where an explanation was asked for."""
    warnings: NotRequired[list[str]]
    """Names servers and parts that failed or did not reply, and says why nothing was found."""


def answer_json(answer: Answer, *, explain: bool = False, warnings: Sequence[str] = ()) -> AnswerJson:
    """An answer.

    Args:
        answer: To a question.
        explain: Whether what came nearest to a refusal's answer is shown.
        warnings: Why nothing was found.
    """
    shown: AnswerJson = {
        "question": answer.question,
        "answer": answer.text,
        "refused": answer.refused,
        "citations": json_of(answer.citations),
        "model": answer.model,
        "generated_by": answer.model,
        "usage": json_of(answer.usage),
        "unsupported": json_of(answer.unsupported),
        "rewritten_question": answer.rewritten_question,
        "timings_ms": rounded(answer.timings_ms),
    }
    if explain and answer.refused:
        shown["nearest"] = None if answer.nearest is None else _nearest(answer.nearest)
    if answer.warnings or warnings:
        shown["warnings"] = [*answer.warnings, *warnings]
    return shown


def _nearest(nearest: Nearest) -> NearestJson:
    told = json_of(nearest.evidence)
    return {
        **{key: told[key] for key in NearestJson.__annotations__ if key in told},  # type: ignore[typeddict-item]
        "probability": round(nearest.probability, 4),
        "threshold": nearest.threshold,
        "missing_identifier": nearest.missing_identifier,
    }


# Where passages stand in their documents.


T = TypeVar("T")


class PassagePlaceJson(Shape):
    """The document of a passage, and the place in it."""

    document_id: int
    title: str
    source: str
    """The document's URI within its origin: a path, an address."""
    department: str | None
    section: str | None
    """Titles of the headings that the passage stands under, joined by ` > `; null outside any section."""
    page: int | None
    """That the passage begins on, from 1; null where the format has no pages."""
    start_offset: int
    """Where the passage begins in the document's content, in characters."""
    end_offset: int
    """Just behind its last character."""
    parts: list[PassagePart]
    """The passage, cut where another section or page begins."""
    id: NotRequired[str]
    """That the document was given; left out: its source identifies it."""


def passage_json(passage: RetrievedContext, shape: type[T]) -> T:
    """The keys of a passage that a shape has, one of `PassagePlaceJson` for instance."""
    told: Mapping[str, Any] = json_of(passage)
    return cast("T", {key: told[key] for key in shape.__annotations__ if key in told})


# Why a search does not find a document.


class NamedDocumentJson(Shape):
    """The document that is missed."""

    document_id: int
    title: str
    source: str
    department: str | None


class ConditionJson(Shape):
    """A condition of a filter."""

    condition: str
    """In words."""
    passed: bool


class QueryTermJson(Shape):
    """A word of the query, and whether the document holds it."""

    term: str
    """The form in which words are compared."""
    written: str
    """As the query has it."""
    weight: float | None
    """What it counts for; null where no document of the collection holds it."""
    present: bool


class WhyNotStageJson(Shape):
    """Where the document stands at one stage of a search. What the words say is repeated as values."""

    stage: str
    """`document`, `permissions`, `expiry`, `filter`, `dense`, `lexical`, `candidates`, `fusion`, `rerank`,
    `similarity_threshold`, `min_relevance`, `min_score`, `duplicates`, `variety` or `top_k`."""
    passed: bool
    """Whether it came through. One retriever is enough to come through both."""
    detail: str
    """In words."""
    version: NotRequired[int]
    """Of `document`: the one that could be found."""
    known_from: NotRequired[Timestamp]
    """Of `document`."""
    known_to: NotRequired[Timestamp | None]
    """Of `document`: when it was replaced, deleted or expired; null: it is current."""
    status: NotRequired[str]
    """Of `document`."""
    chunks: NotRequired[int]
    """Of `document`."""
    permissions: NotRequired[list[str]]
    """Of `permissions`: who may read it."""
    expires_at: NotRequired[Timestamp | None]
    """Of `expiry`."""
    conditions: NotRequired[list[ConditionJson]]
    """Of `filter`."""
    rank: NotRequired[int | None]
    """Of its best passage, or of the document that says the same."""
    score: NotRequired[float | None]
    """Of its best passage."""
    chunk_id: NotRequired[int]
    """Of `dense`: its best passage."""
    limit: NotRequired[float]
    """Of a retriever and of `candidates`: how many are taken; of a threshold: what it asks for."""
    exact: NotRequired[bool]
    """Of `lexical`: whether no bound was left open."""
    terms: NotRequired[list[QueryTermJson]]
    """Of `lexical`."""
    reranker: NotRequired[str | None]
    """Of `rerank`: its name."""
    before: NotRequired[int | None]
    """Of `rerank`: the rank that it found."""
    value: NotRequired[float | None]
    """Of a threshold: what the document has."""
    document_id: NotRequired[int]
    """Of `duplicates`: the one that is shown in its place."""
    source: NotRequired[str]
    """Of `duplicates`: its path."""
    mmr_lambda: NotRequired[float]
    """Of `variety`."""
    top_k: NotRequired[int]
    """Of `top_k`."""
    last_score: NotRequired[float | None]
    """Of `top_k`: of the last result that is shown."""


class WhyNotJson(Shape):
    """Where a document stands at every stage of one search."""

    query: str
    """As asked."""
    collection: str
    """The collection searched."""
    document: NamedDocumentJson
    found: bool
    """Whether it is among the results after all."""
    rank: int | None
    """Its rank among them."""
    stages: list[WhyNotStageJson]
    """In the order of a search."""
    verdict: str
    """What kept it out and what to change, in words."""


def why_not_json(told: WhyNot) -> WhyNotJson:
    """Where a document stands at every stage of one search."""
    return {
        "query": told.query,
        "collection": told.collection,
        "document": cast(NamedDocumentJson, asdict(told.document)),
        "found": told.found,
        "rank": told.rank,
        "stages": [_stage(stage) for stage in told.stages],
        "verdict": told.verdict,
    }


def _stage(stage: WhyNotStage) -> WhyNotStageJson:
    shown = {"stage": stage.stage, "passed": stage.passed, "detail": stage.detail, **stage.numbers}
    return cast(WhyNotStageJson, shown)
