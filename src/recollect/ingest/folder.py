"""Folders into the store: parsing, embedding and writing overlap, and memory stays bounded.

Readers (threads) hash, parse and cut files; others embed what they hand over, in batches of several documents; a
writer (thread) stores each batch in one transaction. Every queue between them is short.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, TypeAlias

from recollect.documents.opening import open_file
from recollect.documents.reader import read_file
from recollect.documents.walk import FoundFile, SkippedFile, walk
from recollect.errors import NotFoundError, ParseError, RecollectError, StoreUnavailableError, UsageError
from recollect.ingest.flow import BYTES_AHEAD, DOCUMENTS_AHEAD, ahead, batches, embed_and_write, threads, windows
from recollect.ingest.report import IngestProgress, IngestReport, ProgressCallback, Tally
from recollect.ingest.roots import Root, department_of, resolve_roots

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import CutDocument, Embedded, Preparer
    from recollect.model import Scope
    from recollect.store.collections import Collection
    from recollect.store.documents import DocumentRepository, Stamp
    from recollect.store.writer import DocumentWriter


# Files are looked up in the store this many at a time.
_WINDOW_FILES = 256


_Batch: TypeAlias = "list[tuple[CutDocument, Root]]"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A file to look at, and what the store knows of it."""

    found: FoundFile
    root: Root
    uri: str
    stamp: Stamp | None


@dataclass(frozen=True, slots=True)
class _Read:
    """What a reader made of a file: cut, unchanged (neither cut nor error), or failed."""

    candidate: _Candidate
    cut: CutDocument | None = None
    error: str | None = None


@dataclass(slots=True)
class _Met:
    """What a walk met of one source: everything else has disappeared.

    Attributes:
        uris: Files that are there, readable or not.
        closed: Folders that were not looked into: what is inside is not known, so it is not gone.
    """

    uris: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)

    def add(self, root: Root, file: FoundFile | SkippedFile) -> None:
        uri = root.uri(file.source).removesuffix(".") if file.source == "." else root.uri(file.source)
        if isinstance(file, FoundFile):
            self.uris.add(uri)
        elif file.kind not in {"ignored", "link_loop"}:
            self.uris.add(uri)
            self.closed.add(uri.rstrip("/"))

    def __contains__(self, uri: str) -> bool:
        if uri in self.uris:
            return True
        return any(("" if str(folder) == "." else str(folder)) in self.closed for folder in PurePosixPath(uri).parents)


class FolderIngest:
    """One run over folders and files.

    Args:
        scope: The tenant.
        collection: Where the documents go.
        preparer: Cuts and embeds.
        batch_writer: Stores.
        repository: Knows what is in the store already.
        writer: Closes what has disappeared.
        workers: The processes that parse.
        readers: Files parsed at the same time.
        max_file_bytes: Larger files are skipped.
        follow_links: Whether links below a path are followed. What is behind one that is not is not known, so ``sync``
            does not close it.
        tags: Every document is given these.
        permissions: Who may read every document, whatever it says itself; None: whom it names, if any.
        force: Store every document anew, changed or not.
        on_progress: Told after every file.
        give_default: Gives the documents of sources, by their numbers, the permissions that are configured as default
            now, where they had the default; None: nobody's change.
    """

    def __init__(
        self,
        *,
        scope: Scope,
        collection: Collection,
        preparer: Preparer,
        batch_writer: BatchWriter,
        repository: DocumentRepository,
        writer: DocumentWriter,
        workers: ParserWorkers,
        readers: int = 2,
        max_file_bytes: int,
        follow_links: bool = False,
        tags: Sequence[str] = (),
        permissions: tuple[str, ...] | None = None,
        force: bool = False,
        on_progress: ProgressCallback | None = None,
        give_default: Callable[[Sequence[int]], int] | None = None,
    ) -> None:
        self._give_default = give_default
        self._scope = scope
        self._collection = collection
        self._preparer = preparer
        self._batch_writer = batch_writer
        self._repository = repository
        self._writer = writer
        self._workers = workers
        self._interrupted = threading.Event()
        self._readers = readers
        self._max_file_bytes = max_file_bytes
        self._follow_links = follow_links
        self._tags = tuple(tags)
        self._permissions = permissions
        self._force = force
        self._on_progress = on_progress
        self._tally = Tally()
        self._counting = threading.RLock()
        self._total = 0
        self._done = 0
        self._embedded = 0

    def run(self, paths: Sequence[Path], *, sync: bool = False) -> IngestReport:
        """Ingest everything below ``paths``.

        Args:
            paths: Folders and files.
            sync: Close the documents whose files have disappeared from below ``paths``.

        Raises:
            NotFoundError: A path does not exist.
            StoreUnavailableError: The database went away; what was stored before is safe, and running again completes
                the rest.
        """
        start = time.perf_counter()
        roots = resolve_roots(paths, scope=self._scope, repository=self._repository, collection=self._collection)
        if self._on_progress:
            self._total = sum(1 for root in roots for file in self._walk(root) if isinstance(file, FoundFile))
        met = {root.source.source_id: _Met() for root in roots}
        if self._give_default is not None:
            # Before anything is read: what has become narrower is narrower at once.
            self._give_default(list(met))
        with threads(self._readers, "reader", on_error=self._interrupted.set) as readers:
            reads = ahead(
                readers,
                self._read,
                self._candidates(roots, met if sync else None),
                size=lambda candidate: candidate.found.size,
                max_items=DOCUMENTS_AHEAD,
                max_size=BYTES_AHEAD,
            )
            grouped = batches(
                self._cut(reads), cut=lambda pair: pair[0], source_id=lambda pair: pair[1].source.source_id
            )
            embed_and_write(grouped, self._embed, self._write)
        if sync:
            self._close_missing(roots, met)
        self._close_doubles(roots)
        self._report("statistics")
        self._batch_writer.finish()
        return self._tally.report(time.perf_counter() - start)

    def _walk(self, root: Root) -> Iterator[FoundFile | SkippedFile]:
        return walk([root.path], max_bytes=self._max_file_bytes, follow_links=self._follow_links)

    def _candidates(self, roots: Sequence[Root], met: dict[int, _Met] | None) -> Iterator[_Candidate]:
        for root in roots:
            for window in windows(self._found(root, met), _WINDOW_FILES):
                uris = [root.uri(found.source) for found in window]
                stamps = self._repository.stamps(self._scope, root.source, uris)
                for found, uri in zip(window, uris, strict=True):
                    yield _Candidate(found, root, uri, stamps.get(uri))

    def _found(self, root: Root, met: dict[int, _Met] | None) -> Iterator[FoundFile]:
        for file in self._walk(root):
            if met is not None:
                met[root.source.source_id].add(root, file)
            if isinstance(file, FoundFile):
                yield file
            elif file.kind == "unreadable":
                self._tally.fail(str(file.path), file.reason)
            else:
                self._tally.skip(file.kind, str(file.path), file.reason)

    def _read(self, candidate: _Candidate) -> _Read:
        department = department_of(candidate.uri)
        given: dict[str, object] = {"department": department, "tags": self._tags}
        if self._permissions is not None:
            given["permissions"] = self._permissions
        fingerprint = self._preparer.fingerprint(given)
        try:
            if self._unchanged(candidate, fingerprint):
                return _Read(candidate)
            document = read_file(
                candidate.found.path,
                source=candidate.uri,
                department=department,
                max_bytes=self._max_file_bytes,
                below=candidate.found.below,
                workers=self._workers,
                cancelled=self._interrupted.is_set,
            )
            tags = tuple(dict.fromkeys((*self._tags, *document.tags)))
            document = replace(document, tags=tags, permissions=self._permissions or document.permissions)
            return _Read(candidate, self._preparer.cut(document, fingerprint))
        except ParseError as exc:
            return _Read(candidate, error=exc.reason)
        except UsageError as exc:
            return _Read(candidate, error=str(exc))

    def _unchanged(self, candidate: _Candidate, fingerprint: str) -> bool:
        stamp = candidate.stamp
        if stamp is None or self._force or stamp.fingerprint != fingerprint or stamp.file_hash is None:
            return False
        try:
            with open_file(candidate.found.path, below=candidate.found.below) as file:
                return hashlib.file_digest(file, "sha256").digest() == stamp.file_hash
        except OSError:
            return False  # reading it will say what is wrong

    def _embed(self, batch: _Batch) -> list[Embedded]:
        embedded = self._preparer.embed([cut for cut, _ in batch])
        with self._counting:
            self._embedded += sum(len(cut.chunks) for cut, _ in batch)
        return embedded

    def _cut(self, reads: Iterable[_Read]) -> Iterator[tuple[CutDocument, Root]]:
        for read in reads:
            if read.cut is None:
                self._settle(read)
            else:
                yield read.cut, read.candidate.root

    def _settle(self, read: _Read) -> None:
        with self._counting:
            if read.error is None:
                self._tally.unchanged += 1
            else:
                self._tally.fail(str(read.candidate.found.path), read.error)
        self._advance(1)

    def _write(self, batch: _Batch, embedded: list[Embedded]) -> None:
        source = batch[0][1].source
        cuts = [cut for cut, _ in batch]
        try:
            written = self._batch_writer.write(source, cuts, embedded, force=self._force)
            with self._counting:
                self._tally.count(written)
        except (StoreUnavailableError, NotFoundError):
            raise  # the database or the collection is gone: no other document will fare better
        except RecollectError as exc:
            if len(batch) == 1:
                self._tally.fail(cuts[0].document.source or "", str(exc))
            else:
                # One document spoils a whole transaction: alone, the others can be stored.
                for pair, own in zip(batch, embedded, strict=True):
                    self._write([pair], [own])
                return
        self._advance(len(batch))
        if self._batch_writer.statistics_lag_far():
            self._batch_writer.refresh_statistics()

    def _close_missing(self, roots: Sequence[Root], met: dict[int, _Met]) -> None:
        for root in roots:
            if root.is_file:
                continue
            known = self._repository.current_uris(self._scope, root.source, prefix=root.prefix)
            gone = (document_id for uri, document_id in known if uri not in met[root.source.source_id])
            for window in windows(gone, _WINDOW_FILES):
                self._tally.removed += self._writer.close(self._scope, window)

    def _close_doubles(self, roots: Sequence[Root]) -> None:
        for source in {root.source.source_id: root.source for root in roots}.values():
            for window in windows(self._repository.held_twice(self._scope, source), _WINDOW_FILES):
                self._tally.removed += self._writer.close(self._scope, window)

    def _advance(self, files: int) -> None:
        # Files are finished by two threads; the callback is told by one at a time.
        with self._counting:
            self._done += files
            self._report("files")

    def _report(self, stage: Literal["files", "statistics"]) -> None:
        if self._on_progress:
            progress = IngestProgress(done=self._done, total=self._total, chunks=self._embedded, stage=stage)
            self._on_progress(progress)
