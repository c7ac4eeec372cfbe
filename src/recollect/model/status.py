"""What a store holds and how it is searched, as people and machines are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from recollect.model.collection import Collection
from recollect.model.record import Public, Record
from recollect.model.search_health import StoreSearchHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus(Record):
    """What the store holds for one tenant, and what it is searched with.

    Attributes:
        database_bytes: Of the whole store; 0 for a principal, who is not told.
        departments: Current chunks by department; documents of none count under the empty string.
        collections: By name.
        schema_version: Of the database.
        search: How the searches of the last days fared, in all and by collection.
    """

    total_documents: Public[int]
    total_chunks: Public[int]
    departments: Public[Mapping[str, int]]
    collections: Public[tuple[Collection, ...]]
    embedding_model: Public[str]
    embedding_dimension: Public[int]
    schema_version: Public[int]
    database_bytes: Public[int]
    search: Public[StoreSearchHealth]
