"""What checks and mends a store, assembled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from recollect.errors import StoreCorruptError
from recollect.ingest.verify import Verifier, VerifyCallback
from recollect.pipeline.preparing import make_preparer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly
    from recollect.retrieval.indexing import TermIndexer
    from recollect.store.search_rows import Floats
    from recollect.store.verification.reading import MisembeddedFact


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
        embed_facts=partial(_facts_embedded, assembly),
        on_progress=on_progress,
    )


def _indexer(place: Collection) -> TermIndexer:
    from recollect.retrieval.indexing import TermIndexer

    return TermIndexer(place.language, salt=place.collection_id)


def _facts_embedded(assembly: Assembly, model: str, facts: Sequence[MisembeddedFact]) -> Sequence[Floats]:
    """The vectors of facts, as they are made when facts are drawn."""
    from recollect.memory.indexing import named
    from recollect.model.memory import Turn

    texts = [named(Turn(content=fact.statement, role=fact.role)) for fact in facts]
    return list(assembly.embedders.of_session(model).embed_documents(texts))


def _readable(packed: bytes) -> bool:
    from recollect.retrieval.rerank.packing import unpack

    try:
        unpack(packed)
    except StoreCorruptError:
        return False
    return True
