"""Options as keywords: ``rag.search("annual leave", top_k=3)`` and ``rag.recall("leave", after=0)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from recollect.model.arguments import require_fields

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import RetrievalOptions
    from recollect.model.memory import RecallMode, RecallOptions
    from recollect.model.search_options import FusionMethod
    from recollect.model.time import Duration, MomentRange

_Options = TypeVar("_Options", "RetrievalOptions", "RecallOptions")


class SearchKeywords(TypedDict, total=False):
    """The attributes of `recollect.RetrievalOptions`, for the type checker; a test compares both."""

    top_k: int | None
    mode: str | None
    fusion: FusionMethod | None
    dense_weight: float | None
    rrf_k: int | None
    candidates: int | None
    similarity_threshold: float | None
    department: tuple[str, ...]
    source: tuple[str, ...]
    tags: tuple[str, ...]
    metadata_filters: Mapping[str, Any]
    filters: Mapping[str, Any] | None
    event_window: Duration | None
    event_time_range: MomentRange | None
    ingestion_time_range: MomentRange | None
    explain: bool
    rerank: str | None
    rerank_candidates: int | None
    rerank_from: int
    pseudo_relevance: bool | None
    enhance: bool
    min_score: float | None
    min_relevance: float | None
    relevance_floor: bool
    collapse_duplicates: bool | None
    mmr_lambda: float | None
    neighbours: int
    merge_adjacent: bool
    outline: bool
    use_cache: bool


class RecallKeywords(TypedDict, total=False):
    """The attributes of `recollect.RecallOptions`, for the type checker; a test compares both."""

    top_k: int
    mode: RecallMode
    before: int
    after: int
    since: datetime | None
    until: datetime | None
    counted: bool


def refined(kind: type[_Options], options: _Options | None, keywords: Mapping[str, Any]) -> _Options:
    """Return options with what is given as keywords, which win; a keyword that is None is not given.

    Args:
        kind: The class of the options.
        options: As given; None: the defaults.
        keywords: By attribute.

    Raises:
        TypeError: There is no such option.
        UsageError: A value is not of the option's type.
    """
    given = {name: value for name, value in keywords.items() if value is not None}
    if not given:
        return kind() if options is None else options
    made = kind(**given) if options is None else replace(options, **given)
    require_fields(made, given)
    return made
