"""What a store holds and how it is searched, read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.model.status import PipelineStatus

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.store.store import Store


def read_status(
    store: Store, scope: Scope, embedder: EmbeddingProvider, *, collection: str, only: Collection | None = None
) -> PipelineStatus:
    """The tenant's totals; the model is that of ``collection``, or the configured one where it does not exist yet.

    Args:
        store: Where everything is.
        scope: Whose, and as somebody sees it.
        embedder: The configured model.
        collection: The configured one.
        only: Count this collection alone.
    """
    from recollect.model.search_health import SearchHealth
    from recollect.store.search_health import HEALTH_DAYS

    totals = store.status.status(scope, only)
    collections = store.collections.list_all(scope) if only is None else [only]
    health = store.search_health.recent(scope)
    if scope.principal is not None or only is not None:
        seen = {place.collection_id for place in collections}
        health = {number: told for number, told in health.items() if number in seen}
    mine = next((place for place in collections if place.name == (only.name if only else collection)), None)
    return PipelineStatus(
        total_documents=totals.total_documents,
        total_chunks=totals.total_chunks,
        departments=totals.departments,
        collections=tuple(collections),
        embedding_model=mine.embedding_model if mine else embedder.model_name,
        embedding_dimension=mine.embedding_dimension if mine else embedder.dimension,
        schema_version=totals.schema_version,
        # What they may not read takes room as well.
        database_bytes=totals.database_bytes if scope.principal is None else 0,
        search=sum(health.values(), start=SearchHealth()),
        search_by_collection={
            place.name: health[place.collection_id] for place in collections if place.collection_id in health
        },
        search_days=HEALTH_DAYS,
    )
