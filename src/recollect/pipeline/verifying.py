"""What checks and mends a store, assembled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from recollect.errors import StoreCorruptError
from recollect.ingest.verify import Verifier, VerifyCallback
from recollect.pipeline.preparing import make_preparer

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly
    from recollect.retrieval.indexing import TermIndexer


def make_verifier(assembly: Assembly, *, on_progress: VerifyCallback | None) -> Verifier:
    """What checks the open store; the model is needed only where vectors must be made anew."""
    from recollect.store.collections import CollectionRepository

    # Suspended tenants' rows are verified like all others.
    database = assembly.store.caretaking
    collections = CollectionRepository(database)
    return Verifier(
        database,
        collections,
        assembly.store.dense_indexer.over(database, collections),
        indexer=_indexer,
        preparer=partial(make_preparer, assembly),
        readable=_readable,
        on_progress=on_progress,
    )


def _indexer(place: Collection) -> TermIndexer:
    from recollect.retrieval.indexing import TermIndexer

    return TermIndexer(place.language, salt=place.collection_id)


def _readable(packed: bytes) -> bool:
    from recollect.retrieval.rerank.packing import unpack

    try:
        unpack(packed)
    except StoreCorruptError:
        return False
    return True
