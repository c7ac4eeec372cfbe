"""Replies of searches, answers with their citations, and why a search misses a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NotRequired, TypeVar, cast

from recollect.model.answer import Answer
from recollect.model.outline import PassagePart
from recollect.model.passage import RetrievedContext
from recollect.model.record import json_of
from recollect.model.why_not import NamedDocument
from recollect.replies._shape import Shape, Timestamp

if TYPE_CHECKING:
    from recollect.model.why_not import WhyNot, WhyNotStage


class SearchHintsJson(Shape):
    """Why a search can have found nothing."""

    warnings: list[str]
    """In words; empty where nothing can be said."""


def shown_answer(answer: Answer, *, explain: bool = False, warnings: Sequence[str] = ()) -> Answer:
    """An answer as it is replied.

    Args:
        answer: To a question.
        explain: Whether what came nearest is shown where there is no answer.
        warnings: Why nothing was found.
    """
    nearest = answer.nearest if explain and answer.refused else None
    return replace(answer, nearest=nearest, warnings=(*answer.warnings, *warnings))


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
    document: NamedDocument
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
        "document": json_of(told.document),
        "found": told.found,
        "rank": told.rank,
        "stages": [_stage(stage) for stage in told.stages],
        "verdict": told.verdict,
    }


def _stage(stage: WhyNotStage) -> WhyNotStageJson:
    shown = {"stage": stage.stage, "passed": stage.passed, "detail": stage.detail, **stage.numbers}
    return cast(WhyNotStageJson, shown)
