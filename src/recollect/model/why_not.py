"""Why a search does not find a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recollect.model.record import Public, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDocument(Record):
    """The document that somebody misses."""

    document_id: Public[int]
    title: Public[str]
    source: Public[str]
    department: Public[str | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNotStage:
    """Where the document stands at one stage of a search.

    Attributes:
        stage: In this order ``document``, ``permissions``, ``expiry``, ``filter``, ``dense``, ``lexical``,
            ``candidates``, ``fusion``, ``rerank``, ``similarity_threshold``, ``min_relevance``, ``min_score``,
            ``duplicates``, ``variety`` or ``top_k``.
        passed: Whether it came through. One retriever is enough to come through both.
        detail: In words.
        numbers: What the words say, for programs: ranks, scores, limits; JSON values by name.
    """

    stage: str
    passed: bool
    detail: str
    numbers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """Where a document stands at every stage of one search.

    Attributes:
        query: As asked.
        collection: The collection searched.
        document: The document that was meant.
        found: Whether it is among the results after all.
        rank: Its rank among them, None where it is not.
        stages: In the order of a search. What stands behind a filter that removes the document says what would be
            without that filter. Stages that were not asked for, or that the document did not reach, are absent.
        verdict: What kept it out and what to change, in words.
    """

    query: str
    collection: str
    document: NamedDocument
    found: bool
    rank: int | None
    stages: tuple[WhyNotStage, ...]
    verdict: str
