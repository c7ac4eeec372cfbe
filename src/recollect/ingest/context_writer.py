"""Sentences that situate chunks, into the store: a version with its vectors and terms in one transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.ingest.examine import as_stored, key_of
from recollect.store.verification.mending import MendedChunk

if TYPE_CHECKING:
    from recollect.ingest.contextualise import Contextualiser
    from recollect.ingest.door import Door
    from recollect.ingest.prepare import Preparer, TermIndexer
    from recollect.model.collection import Collection
    from recollect.store.verification.mending import Mender


class ContextWriter:
    """Has chunks situated, and indexes them anew with what was written.

    Args:
        mender: Stores.
        collection: Of the versions; it has a reference length where it has documents.
        indexer: Counts and weighs the words of its chunks.
        preparer: Embeds for it.
        contextualiser: Asks the language model.
        door: What its sentences pass before they are stored; None: nothing.
    """

    def __init__(
        self,
        mender: Mender,
        *,
        collection: Collection,
        indexer: TermIndexer,
        preparer: Preparer,
        contextualiser: Contextualiser,
        door: Door | None = None,
    ) -> None:
        self._mender = mender
        self._collection = collection
        self._indexer = indexer
        self._preparer = preparer
        self._contextualiser = contextualiser
        self._door = door

    def rewrite(self, version_id: int) -> list[str]:
        """Situate the chunks of a version; returns the sentence of each, empty where there is none.

        Raises:
            ProviderError: The language model or the embedding model failed; the version is as it was.
        """
        version = self._mender.version(version_id)
        if version is None or version.content is None:
            return []
        before = [one.chunk for one in version.chunks]
        contexts = self._contextualiser.contexts(version.title, version.content, before)
        if self._door is not None:
            contexts = [self._door.sentence(context) for context in contexts]
        made_by = self._contextualiser.made_by
        chunks = [replace(chunk, context=context) for chunk, context in zip(before, contexts, strict=True)]
        if chunks == before:
            made = [MendedChunk(chunk=chunk, context_by=made_by) for chunk in chunks]
        else:
            cut = as_stored(version, version.content, chunks, self._indexer)
            embedded = self._preparer.embed([cut])[0]
            rows = self._indexer.weigh(cut.terms, reference_length=self._collection.reference_length or 1.0)
            made = [
                MendedChunk(
                    chunk=chunk,
                    key=key_of(version.title, chunk),
                    embedding=vector,
                    lexical=row,
                    context_by=made_by,
                )
                for chunk, vector, row in zip(chunks, embedded.vectors, rows, strict=True)
            ]
        self._mender.put(self._collection, version, made, content=None)
        return contexts
