"""A connector's source into the store: what has changed is stored, what has gone is closed, and grants follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from recollect import interruption
from recollect.documents.formats import can_read_name, is_generated_name
from recollect.documents.reader import read_bytes
from recollect.errors import NotFoundError, ParseError, RecollectError, SourceError, StoreUnavailableError, UsageError
from recollect.ingest.documents import BYTES_AHEAD, DOCUMENTS_AHEAD, ahead, batches, embed_and_write, threads, windows
from recollect.ingest.report import IngestProgress, IngestReport, ProgressCallback, Tally
from recollect.ingest.roots import department_of
from recollect.model.principal import Permissions, read_permissions
from recollect.sources.base import (
    Change,
    Checkpoint,
    Connector,
    Found,
    Item,
    ItemGoneError,
    ItemLeftOutError,
    ListingBegins,
    ListingEnds,
    Removed,
    wanted,
)
from recollect.store.access import AccessRepository, PermissionChange
from recollect.store.prepared import Identity
from recollect.store.sources import SourceItem, SourceItemRepository

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import CutDocument, Embedded, Preparer
    from recollect.model import IngestResult, Scope
    from recollect.model.collection import Collection
    from recollect.store.attachments import AttachmentRepository
    from recollect.store.documents import DocumentRepository, Source, Stamp
    from recollect.store.sources import SourceRepository
    from recollect.store.writer import DocumentWriter


# How much of a source may go at once before somebody has to look.


#: Where a larger share of a source has gone, none of it is closed, unless the source has another share.
MAX_REMOVED_SHARE = 0.5

# So few may always go at once: a small source changes by large shares.
_FEW = 20


def require_few_gone(source: str, gone: int, total: int, *, most: float | None) -> None:
    """Refuse to close what has gone of a source where that is much of it: another address, a server that is ill.

    Args:
        source: Its name.
        gone: How many of its documents are not there any more.
        total: How many there were.
        most: The share that may go at once; None: any.

    Raises:
        SourceError: More has gone.
    """
    if most is not None and gone > _FEW and gone > most * total:
        raise SourceError(
            source,
            f"{gone:,} of its {total:,} documents are not there any more, more than a share of {most:g}, and none "
            "was closed. If they are to be closed, refresh it with --confirm-removals",
            retryable=False,
        )


# Items are looked up in the store, and closed, this many at a time.
_WINDOW = 256

# So many items are fetched, embedded and stored as they come, before anything else is looked at.
_TOGETHER = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a source is read.

    Attributes:
        include: Patterns of what is read; none: everything.
        exclude: Patterns of what is not.
        tags: Every document is given these.
        max_file_bytes: Larger items are skipped.
        readers: Items fetched and parsed at the same time.
        max_removed_share: Where a larger share of the documents has gone, nothing is closed; None: whatever has gone.
        keep_originals: Whether what was fetched is kept beside its document.
        anew: Read everything, wherever the last run ended; what is unchanged is not fetched.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    max_file_bytes: int
    readers: int = 2
    max_removed_share: float | None = MAX_REMOVED_SHARE
    keep_originals: bool = False
    anew: bool = False


@dataclass(slots=True)
class _Read:
    """An item on its way: named, looked up in the store, then fetched.

    Attributes:
        known: What the store knows of the item.
        stamp: What it knows of its document.
        revision: That was read.
        grants: As the source says.
        told: Whether it has said.
        cut: Its document; None: it need not be stored, or cannot be.
        problem: Why it cannot.
        left_out: Whether it is no document, or has gone.
    """

    item: Item
    known: SourceItem | None
    stamp: Stamp | None
    fingerprint: str
    revision: str
    grants: tuple[str, ...] | None = None
    told: bool = False
    cut: CutDocument | None = None
    problem: str | None = None
    left_out: bool = False

    @property
    def document(self) -> CutDocument:
        assert self.cut is not None, "only what was read goes further"
        return self.cut

    def note(self, document_id: int | None) -> SourceItem:
        """What is to be known of the item from now on."""
        return SourceItem(
            uri=self.item.uri,
            document_id=document_id,
            revision=self.revision,
            fingerprint=self.fingerprint,
            grants=self.grants,
            problem=self.problem,
        )


class SourceIngest:
    """One run over what a connector names.

    Everything before a checkpoint is stored before its cursor is: a run that is killed goes on there, and what it had
    stored behind it is found unchanged. What has gone is closed at the end of a run alone, so a listing that fails
    closes nothing.

    Args:
        scope: The tenant.
        collection: Where the documents go.
        source: That they belong to.
        connector: Names and fetches.
        options: How.
        sources: Knows how far the source was read.
        items: Knows what it named before.
        preparer: Cuts and embeds.
        batch_writer: Stores.
        documents: Knows what is in the store already.
        writer: Closes what has gone.
        access: Changes who may read what is stored.
        attachments: Hangs what is attached to messages on them.
        workers: The processes that parse.
        on_progress: Told after every item.
    """

    def __init__(
        self,
        *,
        scope: Scope,
        collection: Collection,
        source: Source,
        connector: Connector,
        options: SourceOptions,
        sources: SourceRepository,
        items: SourceItemRepository,
        preparer: Preparer,
        batch_writer: BatchWriter,
        documents: DocumentRepository,
        writer: DocumentWriter,
        access: AccessRepository,
        attachments: AttachmentRepository,
        workers: ParserWorkers,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self._scope, self._collection, self._source = scope, collection, source
        self._connector = connector
        self._options = options
        self._sources = sources
        self._items = items
        self._preparer = preparer
        self._batch_writer = batch_writer
        self._documents = documents
        self._writer = writer
        self._access = access
        self._attachments = attachments
        self._workers = workers
        self._on_progress = on_progress
        self._interrupted = threading.Event()
        self._counting = threading.RLock()
        self._tally = Tally()
        self._listing = 0
        self._found = self._done = self._embedded = 0

    def run(self) -> IngestReport:
        """Bring the store to what the source holds now.

        Raises:
            SourceError: It cannot be listed or read, or so much has gone that somebody should look first. What was
                stored stays, and the next run goes on there.
            StoreUnavailableError: The database went away; the same.
        """
        start = time.perf_counter()
        try:
            cursor, self._listing = self._sources.begin(self._scope, self._source, anew=self._options.anew)
            self._take(self._connector.changes(cursor))
            self._close_gone()
            self._batch_writer.finish()
            self._sources.end(self._scope, self._source)
        except RecollectError as exc:
            if not isinstance(exc, StoreUnavailableError | NotFoundError):
                self._sources.fail(self._scope, self._source, str(exc))
            raise
        return self._tally.report(time.perf_counter() - start)

    def _take(self, changes: Iterator[Change]) -> None:
        found: list[Item] = []
        for change in changes:
            interruption.check()
            if isinstance(change, Found):
                found.append(change.item)
                if len(found) >= _TOGETHER:
                    found = self._store(found)
                continue
            found = self._store(found)
            match change:
                case ListingBegins():
                    self._listing = self._sources.begin_listing(self._scope, self._source)
                case Removed(uri):
                    self._items.mark_removed(self._scope, self._source, [uri])
                case ListingEnds():
                    self._items.mark_unnamed(self._scope, self._source, listing=self._listing)
                case Checkpoint(cursor):
                    self._sources.save_cursor(self._scope, self._source, cursor)
        self._store(found)

    def _store(self, items: list[Item]) -> list[Item]:
        """Fetch and store what has changed of some items; returns none, which is what is left of them."""
        self._found += len(items)
        readable = [item for item in items if self._is_document(item)]
        present = {item.uri for item in items}
        with threads(self._options.readers, "reader", on_error=self._interrupted.set) as readers:
            reads = ahead(
                readers,
                self._read,
                self._looked_up(readable),
                size=lambda read: read.item.size or 0,
                max_items=DOCUMENTS_AHEAD,
                max_size=BYTES_AHEAD,
            )
            grouped = batches(
                self._changed(reads, present),
                cut=lambda read: read.document,
                source_id=lambda _: self._source.source_id,
            )
            embed_and_write(grouped, self._embed, self._write)
        self._hang({item.uri: Identity(item.attached_to) for item in items if item.attached_to is not None})
        self._items.touch_items(self._scope, self._source, list(present), listing=self._listing)
        return []

    def _hang(self, attached: Mapping[str, Identity]) -> None:
        """Hang attachments on their messages, also those that a run before was interrupted behind."""
        if attached:
            known = self._items.items(self._scope, self._source, list(attached))
            stored = {one.document_id: attached[uri] for uri, one in known.items() if one.document_id is not None}
            self._attachments.hang(self._scope, stored)

    def _is_document(self, item: Item) -> bool:
        """Whether it is to be fetched at all; by the rules of folders."""
        reason = self._reason_to_skip(item)
        if reason is None:
            return True
        self._tally.skip(reason, item.uri, f"has {item.size:,} bytes" if reason == "too_large" else reason)
        self._advance(1)
        return False

    def _reason_to_skip(self, item: Item) -> str | None:
        if any(part.startswith(".") for part in PurePosixPath(item.uri).parts):
            return "hidden"
        if not wanted(item.uri, include=self._options.include, exclude=self._options.exclude):
            return "excluded"
        if not can_read_name(PurePosixPath(item.uri).name):
            return "unsupported"
        if is_generated_name(PurePosixPath(item.uri).name):
            return "generated"
        if item.size is not None and item.size > self._options.max_file_bytes:
            return "too_large"
        return None

    def _looked_up(self, items: Sequence[Item]) -> Iterator[_Read]:
        for window in windows(items, _WINDOW):
            uris = [item.uri for item in window]
            known = self._items.items(self._scope, self._source, uris)
            stamps = self._documents.stamps(self._scope, self._source, uris)
            for item in window:
                given = {"department": department_of(item.uri), "tags": self._options.tags} | self._source.given
                fingerprint = self._preparer.fingerprint(given)
                uri = item.uri
                yield _Read(item, known.get(uri), stamps.get(uri), fingerprint, item.revision)

    def _read(self, read: _Read) -> _Read:
        try:
            read.grants = self._connector.grants(read.item)
            read.told = True
            if not self._unchanged(read):
                self._fetch(read)
        except ItemGoneError:
            read.left_out = True
        except ItemLeftOutError as exc:
            read.left_out = True
            with self._counting:
                self._tally.skip("left_out", read.item.uri, str(exc))
        except ParseError as exc:
            read.problem = exc.reason
        except UsageError as exc:
            read.problem = str(exc)
        return read

    def _unchanged(self, read: _Read) -> bool:
        known = read.known
        if known is None or (known.revision, known.fingerprint) != (read.item.revision, read.fingerprint):
            return False
        if known.problem is not None:
            # It was the same bytes then, which no other attempt reads better.
            read.problem = known.problem
            return True
        return read.stamp is not None and read.stamp.fingerprint == read.fingerprint

    def _fetch(self, read: _Read) -> None:
        item = read.item
        content = self._connector.fetch(item, max_bytes=self._options.max_file_bytes)
        read.revision = content.revision or item.revision
        department = department_of(item.uri)
        document = read_bytes(
            content.data,
            name=PurePosixPath(item.uri).name,
            mime_type=content.content_type,
            source=item.uri,
            department=department,
            max_bytes=self._options.max_file_bytes,
            attachments=content.attachments,
            pictures=self._preparer.shows_pictures,
            workers=self._workers,
            cancelled=self._interrupted.is_set,
        )
        document = replace(
            document,
            tags=tuple(dict.fromkeys((*self._options.tags, *document.tags))),
            metadata={**content.metadata, **document.metadata},
            permissions=document.permissions if read.grants is None else read.grants,
            original=document.original if self._options.keep_originals else None,
        )
        cut = self._preparer.cut(document, read.fingerprint, self._source.metadata)
        read.cut = replace(cut, keeps_attached=not content.attachments)

    def _changed(self, reads: Iterable[_Read], present: set[str]) -> Iterator[_Read]:
        for read in reads:
            if read.cut is not None:
                yield read
                continue
            if read.left_out:
                present.discard(read.item.uri)
            self._settle(read)

    def _settle(self, read: _Read) -> None:
        """What is not stored anew: it is as it was, or cannot be stored, or is no document any more."""
        known = read.known
        document_id = None if known is None else known.document_id
        before = None if known is None else known.grants
        moved = read.told and not read.left_out and document_id is not None and before != read.grants
        if document_id is not None and moved:
            self._give(document_id, before, read.grants)
        if read.problem is not None:
            with self._counting:
                self._tally.fail(read.item.uri, read.problem)
        elif read.left_out:
            self._items.mark_removed(self._scope, self._source, [read.item.uri])
        else:
            with self._counting:
                self._tally.unchanged += 1
        if moved or (read.problem is not None and (known is None or known.revision != read.revision)):
            noted = replace(read.note(document_id), grants=read.grants if moved else before)
            self._items.save_items(self._scope, self._source, [noted], listing=self._listing)
        self._advance(1)

    def _embed(self, batch: list[_Read]) -> list[Embedded]:
        embedded = self._preparer.embed([read.document for read in batch])
        with self._counting:
            self._embedded += sum(len(read.document.chunks) for read in batch)
        return embedded

    def _write(self, batch: list[_Read], embedded: list[Embedded]) -> None:
        cuts = [read.document for read in batch]
        outcomes = self._batch_writer.write_each(self._source, cuts, embedded, force=False)
        written: list[tuple[_Read, IngestResult]] = []
        for read, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, RecollectError):
                read.problem = str(outcome)
                self._settle(read)
            else:
                written.append((read, outcome))
        with self._counting:
            self._tally.count([result for _, result in written])
        for read, result in written:
            before = read.known.grants if read.known else None
            if before != read.grants and (result.status == "unchanged" or before is not None):
                self._give(result.document_id, before, read.grants)
        notes = [read.note(result.document_id) for read, result in written]
        self._items.save_items(self._scope, self._source, notes, listing=self._listing)
        self._advance(len(written))
        if self._batch_writer.statistics_lag_far():
            self._batch_writer.refresh_statistics()

    def _give(self, document_id: int, before: tuple[str, ...] | None, now: tuple[str, ...] | None) -> None:
        """Grants follow the source; where it says nothing any more, the collection's default holds."""
        old = read_permissions(before) if before else Permissions(grants=())
        if now is None:
            new = self._access.of_collection(self._scope, self._collection).default
        else:
            new = read_permissions(now)
        withdrawn = Permissions(grants=(), denials=tuple(set(old.denials) - set(new.denials)))
        change = PermissionChange(add=new, remove=withdrawn, only=True)
        # Of what is attached to it the source speaks for itself.
        self._access.change(self._scope, [document_id], change, attached=False)

    def _close_gone(self) -> None:
        total, gone = self._items.counts(self._scope, self._source)
        require_few_gone(self._source.name, gone, total, most=self._options.max_removed_share)
        while page := self._items.gone_items(self._scope, self._source, limit=_WINDOW):
            ids = [document_id for _, document_id in page if document_id is not None]
            self._tally.removed += self._writer.close(self._scope, ids)
            self._items.forget_items(self._scope, self._source, [uri for uri, _ in page])

    def _advance(self, items: int) -> None:
        with self._counting:
            self._done += items
            if self._on_progress:
                progress = IngestProgress(done=self._done, total=self._found, chunks=self._embedded)
                self._on_progress(progress)
