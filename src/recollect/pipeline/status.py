"""What a store holds, as people and machines are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import Scope
    from recollect.store.collections import Collection
    from recollect.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """What the store holds for one tenant, and what it is searched with.

    Attributes:
        departments: Current chunks by department; documents of none count under the empty string.
        collections: By name.
    """

    total_documents: int
    total_chunks: int
    departments: Mapping[str, int]
    collections: tuple[Collection, ...]
    embedding_model: str
    embedding_dimension: int
    schema_version: int
    database_bytes: int


def read_status(store: Store, scope: Scope, embedder: EmbeddingProvider, *, collection: str) -> PipelineStatus:
    """The tenant's totals; the model is that of ``collection``, or the configured one where it does not exist yet."""
    totals = store.status.status(scope)
    collections = store.collections.list_all(scope)
    mine = next((place for place in collections if place.name == collection), None)
    return PipelineStatus(
        total_documents=totals.total_documents,
        total_chunks=totals.total_chunks,
        departments=totals.departments,
        collections=tuple(collections),
        embedding_model=mine.embedding_model if mine else embedder.model_name,
        embedding_dimension=mine.embedding_dimension if mine else embedder.dimension,
        schema_version=totals.schema_version,
        database_bytes=totals.database_bytes,
    )
