"""A connector's source into the store: what has changed is stored, what has gone is closed, and grants follow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from recollect import interruption
from recollect.documents.formats import can_read_name, is_generated_name
from recollect.documents.reader import read_bytes
from recollect.errors import NotFoundError, ParseError, RecollectError, SourceError, StoreUnavailableError, UsageError
from recollect.ingest.documents import IngestRun, OnItsWay, windows
from recollect.ingest.report import IngestReport
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
    from recollect.model import IngestResult
    from recollect.model.collection import Collection
    from recollect.store.closing import AttachmentRepository
    from recollect.store.documents import DocumentRepository, Source, Stamp
    from recollect.store.sources import SourceRepository


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


@dataclass(slots=True)
class _Read(OnItsWay):
    """An item on its way: named, looked up in the store, then fetched.

    Attributes:
        known: What the store knows of the item.
        stamp: What it knows of its document.
        revision: That was read.
        grants: As the source says.
        told: Whether it has said.
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
    problem: str | None = None
    left_out: bool = False

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


@dataclass(kw_only=True, eq=False, repr=False)
class SourceIngest(IngestRun[_Read]):
    """One run over what a connector names.

    Everything before a checkpoint is stored before its cursor is: a run that is killed goes on there, and what it had
    stored behind it is found unchanged. What has gone is closed at the end of a run alone, so a listing that fails
    closes nothing.

    Attributes:
        collection: Where the documents go.
        source: That they belong to.
        connector: Names and fetches.
        include: Patterns of what is read; none: everything.
        exclude: Patterns of what is not.
        tags: Every document is given these.
        max_file_bytes: Larger items are skipped.
        max_removed_share: Where a larger share of the documents has gone, nothing is closed; None: whatever has gone.
        keep_originals: Whether what was fetched is kept beside its document.
        anew: Read everything, wherever the last run ended; what is unchanged is not fetched.
        sources: Knows how far the source was read.
        items: Knows what it named before.
        documents: Knows what is in the store already.
        access: Changes who may read what is stored.
        attachments: Hangs what is attached to messages on them.
    """

    collection: Collection
    source: Source
    connector: Connector
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    max_file_bytes: int
    max_removed_share: float | None = MAX_REMOVED_SHARE
    keep_originals: bool = False
    anew: bool = False
    sources: SourceRepository
    items: SourceItemRepository
    documents: DocumentRepository
    access: AccessRepository
    attachments: AttachmentRepository
    _listing: int = field(init=False, default=0)
    _present: set[str] = field(init=False, default_factory=set)

    def run(self) -> IngestReport:
        """Bring the store to what the source holds now.

        Raises:
            SourceError: It cannot be listed or read, or so much has gone that somebody should look first. What was
                stored stays, and the next run goes on there.
            StoreUnavailableError: The database went away; the same.
        """
        start = time.perf_counter()
        try:
            cursor, self._listing = self.sources.begin(self.scope, self.source, anew=self.anew)
            self._take(self.connector.changes(cursor))
            self._close_gone()
            self.batch_writer.finish()
            self.sources.end(self.scope, self.source)
        except RecollectError as exc:
            if not isinstance(exc, StoreUnavailableError | NotFoundError):
                self.sources.fail(self.scope, self.source, str(exc))
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
                    self._listing = self.sources.begin_listing(self.scope, self.source)
                case Removed(uri):
                    self.items.mark_removed(self.scope, self.source, [uri])
                case ListingEnds():
                    self.items.mark_unnamed(self.scope, self.source, listing=self._listing)
                case Checkpoint(cursor):
                    self.sources.save_cursor(self.scope, self.source, cursor)
        self._store(found)

    def _store(self, items: list[Item]) -> list[Item]:
        """Fetch and store what has changed of some items; returns none, which is what is left of them."""
        self._total += len(items)
        readable = [item for item in items if self._is_document(item)]
        self._present = {item.uri for item in items}
        self._take_in(self._looked_up(readable), self._read, size=lambda read: read.item.size or 0)
        self._hang({item.uri: Identity(item.attached_to) for item in items if item.attached_to is not None})
        self.items.touch_items(self.scope, self.source, list(self._present), listing=self._listing)
        return []

    def _hang(self, attached: Mapping[str, Identity]) -> None:
        """Hang attachments on their messages, also those that a run before was interrupted behind."""
        if attached:
            known = self.items.items(self.scope, self.source, list(attached))
            stored = {one.document_id: attached[uri] for uri, one in known.items() if one.document_id is not None}
            self.attachments.hang(self.scope, stored)

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
        if not wanted(item.uri, include=self.include, exclude=self.exclude):
            return "excluded"
        if not can_read_name(PurePosixPath(item.uri).name):
            return "unsupported"
        if is_generated_name(PurePosixPath(item.uri).name):
            return "generated"
        if item.size is not None and item.size > self.max_file_bytes:
            return "too_large"
        return None

    def _looked_up(self, items: Sequence[Item]) -> Iterator[_Read]:
        for window in windows(items, _WINDOW):
            uris = [item.uri for item in window]
            known = self.items.items(self.scope, self.source, uris)
            stamps = self.documents.stamps(self.scope, self.source, uris)
            for item in window:
                given = {"department": department_of(item.uri), "tags": self.tags} | self.source.given
                fingerprint = self.preparer.fingerprint(given)
                uri = item.uri
                yield _Read(item, known.get(uri), stamps.get(uri), fingerprint, item.revision)

    def _read(self, read: _Read) -> _Read:
        try:
            read.grants = self.connector.grants(read.item)
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
        content = self.connector.fetch(item, max_bytes=self.max_file_bytes)
        read.revision = content.revision or item.revision
        department = department_of(item.uri)
        document = read_bytes(
            content.data,
            name=PurePosixPath(item.uri).name,
            mime_type=content.content_type,
            source=item.uri,
            department=department,
            max_bytes=self.max_file_bytes,
            attachments=content.attachments,
            pictures=self.preparer.shows_pictures,
            workers=self.workers,
            cancelled=self._interrupted.is_set,
        )
        document = replace(
            document,
            tags=tuple(dict.fromkeys((*self.tags, *document.tags))),
            metadata={**content.metadata, **document.metadata},
            permissions=document.permissions if read.grants is None else read.grants,
            original=document.original if self.keep_originals else None,
        )
        cut = self.preparer.cut(document, read.fingerprint, self.source.metadata)
        read.cut = replace(cut, keeps_attached=not content.attachments)

    def _source_of(self, entry: _Read) -> Source:  # noqa: ARG002
        return self.source

    def _settle(self, entry: _Read) -> None:
        """What is not stored anew: it is as it was, or cannot be stored, or is no document any more."""
        known = entry.known
        document_id = None if known is None else known.document_id
        before = None if known is None else known.grants
        moved = entry.told and not entry.left_out and document_id is not None and before != entry.grants
        if document_id is not None and moved:
            self._give(document_id, before, entry.grants)
        if entry.problem is not None:
            with self._counting:
                self._tally.fail(entry.item.uri, entry.problem)
        elif entry.left_out:
            self._present.discard(entry.item.uri)
            self.items.mark_removed(self.scope, self.source, [entry.item.uri])
        else:
            with self._counting:
                self._tally.unchanged += 1
        if moved or (entry.problem is not None and (known is None or known.revision != entry.revision)):
            noted = replace(entry.note(document_id), grants=entry.grants if moved else before)
            self.items.save_items(self.scope, self.source, [noted], listing=self._listing)

    def _count(self, batch: list[_Read], outcomes: list[IngestResult | RecollectError]) -> None:
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
        self.items.save_items(self.scope, self.source, notes, listing=self._listing)

    def _give(self, document_id: int, before: tuple[str, ...] | None, now: tuple[str, ...] | None) -> None:
        """Grants follow the source; where it says nothing any more, the collection's default holds."""
        old = read_permissions(before) if before else Permissions(grants=())
        new = self.access.of_collection(self.scope, self.collection).default if now is None else read_permissions(now)
        withdrawn = Permissions(grants=(), denials=tuple(set(old.denials) - set(new.denials)))
        change = PermissionChange(add=new, remove=withdrawn, only=True)
        # Of what is attached to it the source speaks for itself.
        self.access.change(self.scope, [document_id], change, attached=False)

    def _close_gone(self) -> None:
        total, gone = self.items.counts(self.scope, self.source)
        require_few_gone(self.source.name, gone, total, most=self.max_removed_share)
        while page := self.items.gone_items(self.scope, self.source, limit=_WINDOW):
            ids = [document_id for _, document_id in page if document_id is not None]
            self._tally.removed += self.writer.close(self.scope, ids)
            self.items.forget_items(self.scope, self.source, [uri for uri, _ in page])
