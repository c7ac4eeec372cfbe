"""Single documents into the store, for callers that hold the text already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.errors import ModelChangedError, NotFoundError, RecollectError, StoreUnavailableError
from recollect.ingest.flow import BYTES_AHEAD, DOCUMENTS_AHEAD, ahead, batches, embed_and_write, threads
from recollect.ingest.prepare import CutDocument, Embedded, Preparer, average_length, require_storable
from recollect.model import Document, IngestResult, Scope
from recollect.model.source import MANUAL_SOURCE

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.store.collections import CollectionRepository
    from recollect.store.documents import DocumentRepository, Source
    from recollect.store.prepared import PreparedDocument
    from recollect.store.writer import DocumentWriter

# Below this the statistics are counted again after every write: it costs a few milliseconds.
_SMALL_COLLECTION_CHUNKS = 1_000
_STALE_SHARE = 0.01


class BatchWriter:
    """Embeds and stores batches of cut documents in one collection.

    Args:
        preparer: Embeds.
        collections: Knows the collection's reference length and statistics.
        writer: Stores.
        scope: The tenant, and who stores.
        collection: Where the documents go.
        renew: Gives what embeds for the collection after a change of its model; None: a batch fails then.
    """

    def __init__(
        self,
        preparer: Preparer,
        collections: CollectionRepository,
        writer: DocumentWriter,
        *,
        scope: Scope,
        collection: Collection,
        renew: Callable[[Collection], Preparer] | None = None,
    ) -> None:
        # Together, because a change of the model replaces them while others embed.
        self._current = (collection, preparer)
        self._renew = renew
        self._collections = collections
        self._writer = writer
        self._scope = scope
        # Statistics are the whole collection's, whoever writes.
        self._everything = replace(scope, principal=None)
        self._first_space = collection.space_id
        self._reference_length = collection.reference_length
        self._unsettled = False

    def embed(self, batch: Sequence[CutDocument]) -> list[Embedded]:
        """Embed a batch for the space that the collection uses, as far as that is known here."""
        collection, preparer = self._current
        return [replace(one, space_id=collection.space_id) for one in preparer.embed(batch)]

    def write(
        self, source: Source, batch: Sequence[CutDocument], embedded: Sequence[Embedded], *, force: bool
    ) -> list[IngestResult]:
        """Store a batch in one transaction; if the collection's model was changed meanwhile, embedded again."""
        while True:
            collection, preparer = self._current
            if any((one.space_id or self._first_space) != collection.space_id for one in embedded):
                embedded = self.embed(batch)
                continue
            try:
                return self._write(source, batch, preparer, embedded, force=force)
            except ModelChangedError:
                if not self._follow(collection):
                    raise

    def write_each(
        self, source: Source, batch: Sequence[CutDocument], embedded: Sequence[Embedded], *, force: bool
    ) -> list[IngestResult | RecollectError]:
        """Store a batch as `write` does; one that cannot be stored as a whole, document by document.

        Returns:
            What became of each, in order; an error is its document's alone.

        Raises:
            StoreUnavailableError: The database went away: no other document will fare better.
            NotFoundError: The collection is gone; the same.
        """
        try:
            return [*self.write(source, batch, embedded, force=force)]
        except (StoreUnavailableError, NotFoundError):
            raise
        except RecollectError as error:
            if len(batch) == 1:
                return [error]
        # One document spoils a whole transaction: alone, the others can be stored.
        pairs = zip(batch, embedded, strict=True)
        return [self.write_each(source, [cut], [own], force=force)[0] for cut, own in pairs]

    def _write(
        self,
        source: Source,
        batch: Sequence[CutDocument],
        preparer: Preparer,
        embedded: Sequence[Embedded],
        *,
        force: bool,
    ) -> list[IngestResult]:
        collection, _ = self._current
        if self._reference_length is None:
            self._reference_length = self._collections.ensure_reference_length(
                self._scope, collection, average_length(batch)
            )
        prepared = preparer.finish(batch, embedded, reference_length=self._reference_length)
        written = self._writer.write(self._scope, collection, source, prepared, force=force)
        self._unsettled = True
        return written

    def rewrite(
        self,
        document_id: int,
        cut: CutDocument,
        *,
        force: bool,
        if_version: int | None = None,
        read_alike: bool = False,
    ) -> IngestResult:
        """Store a new version of a document that there is, whatever its source; see `DocumentWriter.rewrite`."""

        def write(collection: Collection, item: PreparedDocument) -> IngestResult:
            return self._writer.rewrite(
                self._scope, collection, document_id, item, force=force, if_version=if_version, read_alike=read_alike
            )

        return self._rewritten(cut, write)

    def rewrite_whole(self, document_id: int, cut: CutDocument, *, force: bool) -> IngestResult:
        """The same of a message with what is attached to it; see `DocumentWriter.rewrite_whole`."""

        def write(collection: Collection, item: PreparedDocument) -> IngestResult:
            return self._writer.rewrite_whole(self._scope, collection, document_id, item, force=force)

        return self._rewritten(cut, write)

    def _rewritten(
        self, cut: CutDocument, write: Callable[[Collection, PreparedDocument], IngestResult]
    ) -> IngestResult:
        while True:
            collection, preparer = self._current
            length = self._collections.ensure_reference_length(self._scope, collection, average_length([cut]))
            (prepared,) = preparer.finish([cut], preparer.embed([cut]), reference_length=length)
            try:
                written = write(collection, prepared)
            except ModelChangedError:
                if not self._follow(collection):
                    raise
                continue
            self._unsettled = True
            return written

    def _follow(self, collection: Collection) -> bool:
        """From now on embed with the model that the collection has now, where that can be made."""
        if self._renew is None:
            return False
        now = self._collections.get(self._everything, collection.name)
        self._current = (now, self._renew(now))
        return True

    def finish(self) -> None:
        """After the last batch: settle the lexical index, and recount its statistics where that is due."""
        if self._unsettled:
            self._writer.settle(self._scope)
            self._unsettled = False
        self.refresh_statistics()

    def refresh_statistics(self) -> None:
        """Recount the lexical statistics where enough has changed to matter."""
        now = self._collections.get(self._everything, self._current[0].name)
        if recount_is_due(now):
            self._collections.refresh_term_stats(self._everything, now)

    def statistics_lag_far(self) -> bool:
        """Whether a search during a long ingest would go by statistics of a much smaller collection."""
        now = self._collections.get(self._everything, self._current[0].name)
        return now.stats_pending > max(_SMALL_COLLECTION_CHUNKS, now.stats_chunks)


def recount_is_due(collection: Collection) -> bool:
    """Whether enough has changed since a collection's words were counted to count them anew."""
    small = collection.chunk_count <= _SMALL_COLLECTION_CHUNKS
    return collection.stats_pending > 0 and (
        small or collection.stats_pending >= _STALE_SHARE * collection.stats_chunks
    )


def ingest_documents(
    documents: Iterable[Document],
    *,
    scope: Scope,
    preparer: Preparer,
    batch_writer: BatchWriter,
    repository: DocumentRepository,
    collection: Collection,
    force: bool = False,
    keep_originals: bool = True,
) -> list[IngestResult]:
    """Ingest documents that are in memory or come from a stream, in batches that are transactions each.

    One batch is written while the next is embedded; the documents in memory are bounded however many come.

    Returns:
        What became of each, in order.

    Raises:
        UsageError: A document holds no text or cannot be stored as it is; the batches before it are stored.
    """
    source = repository.ensure_source(scope, collection, MANUAL_SOURCE, "manual")
    finished: list[IngestResult] = []

    def cut(document: Document) -> CutDocument:
        require_storable(document)
        if not keep_originals:
            document = replace(document, original=None)
        return preparer.cut(document, preparer.fingerprint(given_of(document)))

    def write(batch: list[CutDocument], embedded: list[Embedded]) -> None:
        finished.extend(batch_writer.write(source, batch, embedded, force=force))
        if batch_writer.statistics_lag_far():
            batch_writer.refresh_statistics()

    with threads(1, "reader") as reader:
        cuts = ahead(reader, cut, documents, size=_size, max_items=DOCUMENTS_AHEAD, max_size=BYTES_AHEAD)
        embed_and_write(
            batches(cuts, cut=lambda one: one, source_id=lambda _: source.source_id), batch_writer.embed, write
        )
    batch_writer.finish()
    return finished


def _size(document: Document) -> int:
    return len(document.content) + (document.original.byte_count if document.original else 0)


def given_of(document: Document) -> dict[str, object]:
    """What a document says of itself, for its fingerprint."""
    return {
        "title": document.title,
        "metadata": dict(document.metadata),
        "tags": document.tags,
        "department": document.department,
        "event_time": document.event_time,
        # Only where there is one: documents that never had one keep the fingerprint that they are stored under.
        **({} if document.event_end is None else {"event_end": document.event_end}),
        **({} if document.permissions is None else {"permissions": document.permissions}),
    }
