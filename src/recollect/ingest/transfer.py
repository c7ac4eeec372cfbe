"""Collections from JSON Lines, of any size in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from recollect.errors import PermissionDeniedError, RecollectError, StoreUnavailableError, UsageError
from recollect.ingest.flow import batches, embed_and_write
from recollect.ingest.prepare import MAX_NAME_BYTES, CutDocument, Embedded, Preparer, require_storable, storable
from recollect.ingest.records import BadLine, ImportedDocument
from recollect.ingest.report import EXPIRED, IngestProgress, IngestReport, ProgressCallback, Tally
from recollect.ingest.roots import Origins
from recollect.model.principal import EVERYONE
from recollect.model.source import MANUAL_SOURCE
from recollect.store.identities import Identity

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.ingest.documents import BatchWriter
    from recollect.model import Document, IngestResult, Scope
    from recollect.model.collection import Collection
    from recollect.store.access import AccessRepository
    from recollect.store.attachments import AttachmentRepository
    from recollect.store.documents import DocumentRepository, Source


# What a version depends on, too; documents that never had it keep the fingerprint of before.
_ALSO = ("event_time", "event_end", "permissions")


@dataclass(frozen=True, slots=True)
class _Item:
    line: int
    cut: CutDocument
    embeddings: Vectors | None
    source: Source
    attached_to: Identity | None


class Importer:
    """Reads documents of JSON Lines into a collection.

    Args:
        scope: The tenant.
        collection: Where the documents go.
        preparer: Cuts and embeds what comes without chunks or vectors.
        batch_writer: Stores.
        repository: Makes the source that the documents belong to.
        attachments: Hangs what is attached to messages on them.
        access: Keeps the collection as closed as the one that documents come from.
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
        access: AccessRepository,
        keep_originals: bool = True,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self._scope = scope
        self._collection = collection
        self._preparer = preparer
        self._batch_writer = batch_writer
        door = preparer.door
        self._origins = Origins(scope, repository, collection, str if door is None else door.name)
        self._attachments = attachments
        self._access = access
        self._keep_originals = keep_originals
        self._on_progress = on_progress
        self._tally = Tally()
        self._done = 0
        self._loose: dict[int, Identity] = {}
        self._readers: Sequence[str] = (EVERYONE,)

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

        def write(batch: list[_Item], embedded: Sequence[Embedded]) -> None:
            try:
                cuts = [item.cut for item in batch]
                written = self._batch_writer.write(batch[0].source, cuts, embedded, force=force)
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
            self._hang(zip(batch, written, strict=True))
            self._advance(len(batch))

        items = self._items(records, named)
        grouped = batches(items, cut=lambda item: item.cut, source_id=lambda item: item.source.source_id)
        embed_and_write(grouped, self._embed, write)
        # Those whose message came behind them.
        self._attachments.hang(self._scope, self._loose)
        self._batch_writer.finish()
        return self._tally.report(time.perf_counter() - start)

    def _hang(self, written: Iterable[tuple[_Item, IngestResult]]) -> None:
        """Hang attachments on their messages: a killed import, begun anew, finds them stored and hangs them then."""
        attached = {result.document_id: item.attached_to for item, result in written if item.attached_to is not None}
        loose = self._attachments.hang(self._scope, attached)
        self._loose |= {document_id: attached[document_id] for document_id in loose}

    def _items(self, records: Iterable[ImportedDocument | BadLine], named: str) -> Iterator[_Item]:
        for record in records:
            if isinstance(record, BadLine):
                self._tally.fail(f"{named}:{record.line}", record.reason)
                continue
            lifetime = None if record.expires_at is None else record.expires_at - datetime.now(UTC)
            if lifetime is not None and lifetime <= timedelta(0):
                self._tally.skip(EXPIRED, f"{named}:{record.line}", "its time is over")
                continue
            try:
                self._require_as_closed(record.readers)
                yield self._item(record, lifetime)
            except (UsageError, PermissionDeniedError) as exc:
                self._tally.fail(f"{named}:{record.line}", str(exc))

    def _require_as_closed(self, readers: Sequence[str]) -> None:
        """Nobody reads by an import what they could not read where it comes from.

        A collection without documents is closed to all but its readers there.

        Raises:
            UsageError: The collection is in use, and others read it.
            PermissionDeniedError: The scope's principal may not close it.
        """
        if not readers or EVERYONE in readers or self._collection.hidden:
            return
        place, everything = self._collection, replace(self._scope, principal=None)
        if set(self._readers) <= set(readers):
            return
        self._readers = self._access.of_collection(everything, place).readers
        if not set(self._readers) <= set(readers):
            self._access.close_unused(self._scope, place, readers)
            # Somebody else may have closed it at the same time.
            self._readers = self._access.of_collection(everything, place).readers
        if not set(self._readers) <= set(readers):
            raise UsageError(
                f"comes from a collection that only {', '.join(readers)} may read, and others read {place.name!r} "
                f"({', '.join(self._readers)}). Import into a new collection, or close this one first: recollect "
                f"grants collection -c {place.name} --reader {readers[0]}"
            )

    def _item(self, record: ImportedDocument, lifetime: timedelta | None) -> _Item:
        origin = storable(record.origin or MANUAL_SOURCE)
        if len(origin.encode()) > MAX_NAME_BYTES:
            raise UsageError(f"has an origin that is longer than {MAX_NAME_BYTES:,} bytes")
        source, uri = self._origins.place(origin, storable(record.document.source or ""))
        ttl = record.document.ttl if lifetime is None else lifetime
        record = replace(record, document=replace(record.document, source=uri or None, ttl=ttl))
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
                **{name: value for name in _ALSO if (value := getattr(record.document, name)) is not None},
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
        # What is attached to it has lines of its own. Numbers of another store are none of this one's.
        cut = replace(cut, keeps_attached=True, owner=record.owner, twin=-record.twin)
        return _Item(record.line, cut, embeddings, source, self._message(record, origin))

    def _message(self, record: ImportedDocument, origin: str) -> Identity | None:
        if record.attached_to_id:
            given_id = storable(record.attached_to_id)
            door = self._preparer.door
            return Identity(given_id if door is None else door.name(given_id), is_given_id=True)
        if record.attached_to is None:
            return None
        return Identity(self._origins.place(origin, storable(record.attached_to))[1])

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
