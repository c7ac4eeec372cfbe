"""Collections from JSON Lines, of any size in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, StoreUnavailableError, UsageError
from recollect.ingest.documents import MANUAL_SOURCE
from recollect.ingest.flow import batches, embed_and_write
from recollect.ingest.prepare import require_storable, storable
from recollect.ingest.records import BadLine, ImportedDocument
from recollect.ingest.report import IngestProgress, IngestReport, ProgressCallback, Tally

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import CutDocument, Embedded, Preparer
    from recollect.model import Document, IngestResult, Scope
    from recollect.model.collection import Collection
    from recollect.store.attachments import AttachmentRepository
    from recollect.store.documents import DocumentRepository, Source


@dataclass(frozen=True, slots=True)
class _Item:
    line: int
    cut: CutDocument
    embeddings: Vectors | None
    attached_to: str | None


class Importer:
    """Reads documents of JSON Lines into a collection.

    Args:
        scope: The tenant.
        collection: Where the documents go.
        preparer: Cuts and embeds what comes without chunks or vectors.
        batch_writer: Stores.
        repository: Makes the source that the documents belong to.
        attachments: Hangs what is attached to messages on them.
        keep_originals: Whether the files that documents come with are kept.
        on_progress: Told after every batch.
    """

    def __init__(
        self,
        *,
        scope: Scope,
        collection: Collection,
        preparer: Preparer,
        batch_writer: BatchWriter,
        repository: DocumentRepository,
        attachments: AttachmentRepository,
        keep_originals: bool = True,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self._scope = scope
        self._collection = collection
        self._preparer = preparer
        self._batch_writer = batch_writer
        self._repository = repository
        self._attachments = attachments
        self._keep_originals = keep_originals
        self._on_progress = on_progress
        self._tally = Tally()
        self._done = 0
        self._loose: dict[int, str] = {}

    def run(self, records: Iterable[ImportedDocument | BadLine], *, named: str, force: bool = False) -> IngestReport:
        """Import documents; a bad line is reported and does not stop the others.

        Args:
            records: Of lines.
            named: What they stand in, for the report.
            force: Store every document anew, changed or not.

        Raises:
            StoreUnavailableError: The database went away; what was stored before is safe.
        """
        start = time.perf_counter()
        source = self._repository.ensure_source(self._scope, self._collection, MANUAL_SOURCE, "manual")

        def write(batch: list[_Item], embedded: Sequence[Embedded]) -> None:
            try:
                cuts = [item.cut for item in batch]
                written = self._batch_writer.write(source, cuts, embedded, force=force)
            except StoreUnavailableError:
                raise
            except RecollectError as exc:
                if len(batch) == 1:
                    self._tally.fail(f"{named}:{batch[0].line}", str(exc))
                    return
                for item, own in zip(batch, embedded, strict=True):
                    write([item], [own])
                return
            self._tally.count(written)
            self._hang(source, zip(batch, written, strict=True))
            self._advance(len(batch))

        items = self._items(records, named)
        grouped = batches(items, cut=lambda item: item.cut, source_id=lambda _: source.source_id)
        embed_and_write(grouped, self._embed, write)
        # Those whose message came behind them.
        self._attachments.hang(self._scope, source, self._loose)
        self._batch_writer.finish()
        return self._tally.report(time.perf_counter() - start)

    def _hang(self, source: Source, written: Iterable[tuple[_Item, IngestResult]]) -> None:
        """Hang attachments on their messages: a killed import, begun anew, finds them stored and hangs them then."""
        attached = {result.document_id: item.attached_to for item, result in written if item.attached_to is not None}
        loose = self._attachments.hang(self._scope, source, attached)
        self._loose |= {document_id: attached[document_id] for document_id in loose}

    def _items(self, records: Iterable[ImportedDocument | BadLine], named: str) -> Iterator[_Item]:
        for record in records:
            if isinstance(record, BadLine):
                self._tally.fail(f"{named}:{record.line}", record.reason)
                continue
            try:
                yield self._item(record)
            except UsageError as exc:
                self._tally.fail(f"{named}:{record.line}", str(exc))

    def _item(self, record: ImportedDocument) -> _Item:
        if not self._keep_originals:
            record = replace(record, document=replace(record.document, original=None))
        original = record.document.original
        contexts = [chunk.context for chunk in record.chunks or ()]
        fingerprint = self._preparer.fingerprint(
            {
                "title": record.document.title,
                "metadata": dict(record.document.metadata),
                "tags": record.document.tags,
                "department": record.document.department,
                "imported_vectors": record.embeddings is not None,
                # Only where there is something: documents that never had it keep the fingerprint of before.
                **({} if original is None else {"original": original.file_hash.hex()}),
                **({} if not any(contexts) else {"contexts": contexts}),
            }
        )
        dimension = self._collection.embedding_dimension
        if record.embeddings is not None and record.embeddings.shape[1] != dimension:
            raise UsageError(
                f"has embeddings of {record.embeddings.shape[1]} dimensions, but the collection "
                f"{self._collection.name!r} has {dimension}. Import into a collection of that model."
            )
        admitted = self._admitted(record) if record.chunks is not None else None
        if record.chunks is None or admitted is None:
            cut, embeddings = self._preparer.cut(record.document, fingerprint), None
        else:
            cut, embeddings = self._preparer.adopt(admitted, record.chunks, fingerprint), record.embeddings
        # What is attached to it has lines of its own.
        cut = replace(cut, keeps_attached=True)
        attached_to = None if record.attached_to is None else storable(record.attached_to)
        return _Item(record.line, cut, embeddings, attached_to)

    def _admitted(self, record: ImportedDocument) -> Document | None:
        """The document as it may be stored; None: its chunks were cut, and embedded, with what is taken out of it."""
        door = self._preparer.door
        if door is None:
            return record.document
        require_storable(record.document)
        admitted = door.admit(record.document)
        beside = [(dict(chunk.metadata), list(chunk.section), chunk.context) for chunk in record.chunks or ()]
        if door.policy != "tag" and (admitted.content != record.document.content or door.holds(beside)):
            return None
        return admitted

    def _embed(self, batch: Sequence[_Item]) -> list[Embedded]:
        missing = [item.cut for item in batch if item.embeddings is None]
        computed = iter(self._batch_writer.embed(missing) if missing else [])
        given = [(item.cut, item.embeddings) for item in batch if item.embeddings is not None]
        known = iter(self._preparer.complete([cut for cut, _ in given], [vectors for _, vectors in given]))
        return [next(computed if item.embeddings is None else known) for item in batch]

    def _advance(self, documents: int) -> None:
        self._done += documents
        if self._on_progress:
            self._on_progress(IngestProgress(done=self._done, total=0, chunks=self._tally.chunks))
        if self._batch_writer.statistics_lag_far():
            self._batch_writer.refresh_statistics()
