"""What a store holds and how it is searched, as people and machines are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.model.collection import Collection
from recollect.model.search_health import SearchHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """What the store holds for one tenant, and what it is searched with.

    Attributes:
        database_bytes: Of the whole store; 0 for a principal, who is not told.
        departments: Current chunks by department; documents of none count under the empty string.
        collections: By name.
        search: How the searches of the last `search_days` days fared, by every process: hits of the caches, and the
            measured recall of approximate searches.
        search_by_collection: The same by name of the collection; those that were not searched are absent.
        search_days: The days that they add up.
    """

    total_documents: int
    total_chunks: int
    departments: Mapping[str, int]
    collections: tuple[Collection, ...]
    embedding_model: str
    embedding_dimension: int
    schema_version: int
    database_bytes: int
    search: SearchHealth
    search_by_collection: Mapping[str, SearchHealth]
    search_days: int
