"""Bodies of searches, questions and contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import AliasChoices, Field

from recollect.errors import UsageError
from recollect.model import RetrievalOptions
from recollect.model.bounds import (
    MAX_CANDIDATES,
    MAX_NEIGHBOURS,
    MAX_QUERY_CHARACTERS,
    MAX_RERANK_CANDIDATES,
    MAX_RRF_K,
    MAX_TOP_K,
)
from recollect.model.time_limits import time_limits
from recollect.operations.values import Name, Text
from recollect.pipeline import View
from recollect.server.schemas.base import Body, Moment, Viewpoint


class SearchOptions(Viewpoint):
    """How passages are searched; what is left out is as configured."""

    mode: Name | None = Field(None, description="hybrid, dense, lexical, or a retriever that the server has.")
    top_k: int | None = Field(None, ge=1, le=MAX_TOP_K)
    fusion: Literal["weighted", "rrf"] | None = None
    dense_weight: float | None = Field(None, ge=0, le=1)
    rrf_k: int | None = Field(None, ge=1, le=MAX_RRF_K)
    candidates: int | None = Field(None, ge=1, le=MAX_CANDIDATES)
    min_similarity: float | None = Field(None, ge=-1, le=1)
    min_relevance: float | None = Field(None, ge=0, le=1)
    min_score: float | None = None
    relevance_floor: bool = Field(False, description="Nothing, if not even the best passage is relevant enough.")
    rerank: Name | None = None
    rerank_candidates: int | None = Field(None, ge=1, le=MAX_RERANK_CANDIDATES)
    pseudo_relevance: bool | None = None
    collapse: bool | None = None
    mmr: float | None = Field(None, ge=0, le=1)
    neighbours: int = Field(
        0, ge=0, le=MAX_NEIGHBOURS, description="Chunks before and after each passage. Times top_k at most 1,000."
    )
    merge: bool = False
    department: tuple[Name, ...] = Field((), description="Only documents of one of these departments.")
    source: tuple[Name, ...] = Field((), description="Only documents of one of these sources.")
    tag: tuple[Name, ...] = Field((), description="Only documents with all of these tags.")
    where: dict[str, Any] = Field(default_factory=dict, description="Only documents whose metadata has these values.")
    filter: dict[str, Any] | None = Field(None, description="A filter in the full language.")
    event_window: Text | None = Field(None, max_length=100)
    event_from: Moment | None = None
    event_to: Moment | None = None
    ingested_from: Moment | None = None
    ingested_to: Moment | None = None
    explain: bool = False

    def options(self) -> RetrievalOptions:
        """As the library takes them.

        Raises:
            UsageError: A time is none, or a range ends before it begins.
        """
        given = RetrievalOptions(
            top_k=self.top_k,
            mode=self.mode,
            fusion=self.fusion,
            dense_weight=self.dense_weight,
            rrf_k=self.rrf_k,
            candidates=self.candidates,
            similarity_threshold=self.min_similarity,
            department=self.department,
            source=self.source,
            tags=self.tag,
            metadata_filters=self.where,
            filters=self.filter,
            explain=self.explain,
            rerank=self.rerank,
            rerank_candidates=self.rerank_candidates,
            pseudo_relevance=self.pseudo_relevance,
            min_score=self.min_score,
            min_relevance=self.min_relevance,
            relevance_floor=self.relevance_floor,
            collapse_duplicates=self.collapse,
            mmr_lambda=self.mmr,
            neighbours=self.neighbours,
            merge_adjacent=self.merge,
            event_window=self.event_window,
            event_time_range=_range(self.event_from, self.event_to),
            ingestion_time_range=_range(self.ingested_from, self.ingested_to),
        )
        time_limits(given, None)
        return given


class SearchBody(SearchOptions):
    """A search."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is searched, and how."""
        return self.of(view), replace(self.options(), outline=True)


class AskBody(SearchOptions):
    """A question."""

    question: Text = Field(
        validation_alias=AliasChoices("question", "query"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is asked, and how passages are searched for it."""
        return self.of(view), self.options()


class ChatBody(SearchOptions):
    """A question in a conversation."""

    session: Name = Field(description="The conversation's id, yours to choose: it begins with its first question.")
    user: Name | None = Field(None, description="Whose conversation, where several users have one of that id.")
    question: Text = Field(
        validation_alias=AliasChoices("question", "query"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is asked, and how passages are searched for it."""
        seen = self.model_copy(update={"session": None}).of(view)
        return (
            seen if self.user is None else seen.view(user=self.user),
            self.options(),
        )


class WeightsBody(Body):
    """What documents and conversations weigh; both add up to 1."""

    rag: float = Field(ge=0, le=1, description="Of documents.")
    memory: float = Field(ge=0, le=1, description="Of conversations and facts.")


class ContextBody(SearchBody):
    """What a language model should read to answer a query."""

    token_budget: int | None = Field(None, ge=1, le=10_000_000)
    max_context_length: int | None = Field(None, ge=1, le=100_000_000)


class AssemblyBody(Body):
    """What a language model should read of documents, conversations and facts."""

    query: Text = Field(
        validation_alias=AliasChoices("query", "question"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    strategy: Literal["hybrid", "semantic", "episodic", "rag", "documents", "bm25"] = Field(
        "hybrid",
        description="Everything; by meaning, facts first; conversations alone; documents and memory, documents first, "
        "or memory where there are none; documents alone; by words.",
    )
    weights: WeightsBody | None = Field(None, description="Left out: as the strategy has it.")
    token_budget: int = Field(2_000, ge=1, le=10_000_000)
    min_relevance: float | None = Field(None, ge=0, le=1, description="Of documents' passages.")
    session: Name | None = Field(None, description="The conversation at hand; it may not have begun yet.")
    user: Name | None = Field(None, description="All of this user's conversations, beside the one named.")
    collection: Name | None = Field(None, description="The collection; left out: the configured one.")
    everywhere: bool = Field(False, description="Every collection that may be read, together.")
    as_of: Moment | None = Field(None, description="What was known at this time (without a zone: UTC), or 7d ago.")
    explain: bool = Field(False, description="Say what each side weighs, and why.")

    def of(self, view: View) -> View:
        """The view that is asked.

        Raises:
            UsageError: Two places are named, or ``as_of`` is no time.
        """
        if self.everywhere and self.collection is not None:
            raise UsageError("collection and everywhere are several answers to where: give one.")
        seen = view.view(collections="*" if self.everywhere else self.collection, user=self.user)
        return seen if self.as_of is None else seen.view(as_of=self.as_of)


class DiffBody(SearchOptions):
    """A question at two moments."""

    question: Text = Field(
        validation_alias=AliasChoices("question", "query"),
        max_length=MAX_QUERY_CHARACTERS,
        description="In plain words.",
    )
    from_: Moment = Field(alias="from", description="The earlier moment.")
    to: Moment | None = Field(None, description="The later one; left out: now.")

    def searched(self, view: View) -> tuple[View, RetrievalOptions]:
        """The view that is searched, and how."""
        return self.of(view), self.options()


class WhyNotBody(SearchBody):
    """A search that missed a document."""

    document: int | Name = Field(description="Its id, source, title, or the end of its path.")


def _range(start: str | None, end: str | None) -> tuple[str | None, str | None] | None:
    return None if start is None and end is None else (start, end)
