"""What a search is asked, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

SearchMode = Literal["hybrid", "dense", "lexical"]
FusionMethod = Literal["weighted", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """How to search.

    Attributes:
        top_k: How many passages to return (1 to 1,000).
        mode: Both arms (``hybrid``), embeddings only (``dense``) or BM25 only (``lexical``).
        fusion: ``weighted`` adds normalised scores, ``rrf`` adds reciprocal ranks (Cormack et al. 2009);
            None: the configured default.
        dense_weight: Share of the dense arm in ``weighted`` fusion, 0 to 1; None: the configured default.
        rrf_k: The constant k of reciprocal rank fusion; None: the configured default.
        candidates: How many results each arm contributes before fusion; None: the configured default.
        similarity_threshold: Drop results whose cosine similarity to the query is below this, -1 to 1.
        department: Only documents of one of these departments.
        source: Only documents whose source is one of these.
        tags: Only documents that carry all of these tags.
        metadata_filters: Only documents whose metadata has these values.
        filters: A filter in the full language of `recollect.model.filter`, for instance
            ``{"metadata.year": {"gte": 2024}}``; it holds beside the ones above.
        explain: Attach to each result how it came to its rank.
    """

    top_k: int = 10
    mode: SearchMode = "hybrid"
    fusion: FusionMethod | None = None
    dense_weight: float | None = None
    rrf_k: int | None = None
    candidates: int | None = None
    similarity_threshold: float | None = None
    department: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata_filters: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Any] | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class ArmScore:
    """Where one arm placed a chunk: rank from 1, and the arm's own score."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExplain:
    """How a result came to its rank.

    Attributes:
        dense: Its place in the dense arm (score: cosine similarity), None where that arm did not find it.
        lexical: Its place in the lexical arm (score: BM25), None where that arm did not find it.
        fused_score: The score that the results are ordered by.
    """

    dense: ArmScore | None
    lexical: ArmScore | None
    fused_score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedContext:
    """A passage that a search found.

    Attributes:
        rank: From 1.
        score: What the results are ordered by, best first; comparable within one search only.
        similarity: Cosine similarity to the query, None where it was not computed.
        content: The passage; ``document.content[start_offset:end_offset] == content``.
        section: Titles of the headings it stands under, joined by `` > ``; None outside any section.
        page: From 1; None where the format has no pages.
        version_id: The version of the document that it was cut from, None where that is not known.
        event_time: When what it tells happened or was written.
        chunk_ids: The chunks that it was merged from, in order of their place; empty: ``chunk_id`` alone.
        duplicates: Chunks that say the same and were left out for it, best first.
    """

    rank: int
    score: float
    content: str
    chunk_id: int
    document_id: int
    title: str
    source: str
    section: str | None
    page: int | None
    start_offset: int
    end_offset: int
    metadata: Mapping[str, Any]
    department: str | None = None
    tags: tuple[str, ...] = ()
    similarity: float | None = None
    explain: SearchExplain | None = None
    version_id: int | None = None
    event_time: datetime | None = None
    chunk_ids: tuple[int, ...] = ()
    duplicates: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReply:
    """Everything that one search has to say.

    Attributes:
        query: As asked.
        collection: The collection searched.
        mode: As run.
        results: Best first.
        timings_ms: Milliseconds by stage.
        paths: Which path each arm took, for instance ``{"dense": "exact", "lexical": "exact"}``.
    """

    query: str
    collection: str
    mode: SearchMode
    results: tuple[RetrievedContext, ...]
    timings_ms: Mapping[str, float]
    paths: Mapping[str, str] = field(default_factory=dict)
