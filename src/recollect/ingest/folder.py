"""Folders into the store: parsing, embedding and writing overlap, and memory stays bounded.

Readers (threads) hash, parse and cut files; others embed what they hand over, in batches of several documents; a
writer (thread) stores each batch in one transaction. Every queue between them is short.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from recollect.documents.reader import PictureWithoutTextError, load_file, read_bytes
from recollect.documents.walk import IGNORE_FILE, FoundFile, SkippedFile, look, open_file, printable, walk
from recollect.errors import ParseError, RecollectError, UsageError
from recollect.ingest.documents import IngestRun, OnItsWay, windows
from recollect.ingest.report import IngestProgress, IngestReport
from recollect.ingest.roots import Reading, Root, department_of, note_reading, resolve_roots
from recollect.model.original import PIECE_BYTES, Original

if TYPE_CHECKING:
    from recollect.model import Document, IngestResult
    from recollect.model.collection import Collection
    from recollect.store.documents import DocumentRepository, Source, Stamp


# Files are looked up in the store this many at a time.
_WINDOW_FILES = 256

# What was below so many paths that went is asked for one by one; for more, all documents are looked through once.
_PREFIXES = 8

# Files that the walk is ahead of their reading, so that their number is known: of some 10 MB at most.
_FILES_AHEAD = 20_000


@dataclass(slots=True)
class _File(OnItsWay):
    """A file on its way: found, looked up in the store, then read.

    Attributes:
        found: By the walk.
        root: The path that it was found below.
        stamp: What the store knows of its document.
        error: Why it could not be read.
        shows_nothing: Whether it is a picture without text.
    """

    found: FoundFile
    root: Root
    stamp: Stamp | None
    error: str | None = None
    shows_nothing: bool = False

    @property
    def uri(self) -> str:
        return self.root.uri(self.found.source)


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
        elif file.kind not in {"ignored", "link_loop", "generated"}:
            self.uris.add(uri)
            self.closed.add(uri.rstrip("/"))

    def __contains__(self, uri: str) -> bool:
        if uri in self.uris:
            return True
        return any(("" if str(folder) == "." else str(folder)) in self.closed for folder in PurePosixPath(uri).parents)


@dataclass(kw_only=True, eq=False, repr=False)
class FolderIngest(IngestRun[_File]):
    """One run over folders and files.

    Attributes:
        collection: Where the documents go.
        repository: Knows what is in the store already.
        max_file_bytes: Larger files are skipped.
        follow_links: Whether links below a path are followed. What is behind one that is not is not known, so ``sync``
            does not close it.
        tags: Every document is given these.
        permissions: Who may read every document, whatever it says itself; None: whom it names, if any.
        keep_originals: Whether the files are kept beside their documents.
        give_default: Gives the documents of sources, by their numbers, the permissions that are configured as default
            now, where they had the default; None: nobody's change.
        apart: Paths below the source's directory (a folder's ends in ``/``) that are left alone, because they are read
            otherwise: what is read is read again then. None: it is noted of the source what is read, and how.
    """

    collection: Collection
    repository: DocumentRepository
    max_file_bytes: int
    follow_links: bool = False
    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] | None = None
    keep_originals: bool = False
    give_default: Callable[[Sequence[int]], int] | None = None
    apart: frozenset[str] | None = None
    _pages_done: int = field(init=False, default=0)
    _pages: int = field(init=False, default=0)

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
        roots = self._roots(paths)
        met = {root.source.source_id: _Met() for root in roots}
        if self.give_default is not None:
            # Before anything is read: what has become narrower is narrower at once.
            self.give_default(list(met))
        if self.apart is None:
            how = Reading(tags=self.tags, permissions=self.permissions, follow_links=self.follow_links)
            note_reading(self.repository, self.scope, roots, how)
        self._store((root, file) for root in roots for file in self._found(root, met if sync else None))
        if sync:
            self._close_missing(roots, met)
        self._close_doubles(roots)
        return self._finish(start)

    def update(self, folder: Path, changed: Sequence[Path]) -> IngestReport:
        """Ingest what has changed below a folder that was ingested whole, and close what has gone.

        Costs what the changed paths cost, however many files the folder holds.

        Args:
            folder: As it was given to `run`.
            changed: Paths below it: files and folders that came, changed or went.

        Raises:
            NotFoundError: The folder does not exist.
            StoreUnavailableError: As for `run`.
        """
        # What a folder's ignore file says is said of all that is in it.
        changed = [path.parent if path.name == IGNORE_FILE else path for path in changed]
        if folder in changed:
            return self.run([folder], sync=True)
        start = time.perf_counter()
        (root,) = self._roots([folder])
        met = _Met()
        found = look(folder, changed, max_bytes=self.max_file_bytes, follow_links=self.follow_links)
        self._store((root, file) for file in self._judged(root, found, met))
        uris = {root.uri(printable(path.relative_to(folder))) for path in changed}
        self._close_gone(root, uris, met)
        return self._finish(start)

    def _roots(self, paths: Sequence[Path]) -> list[Root]:
        door = self.preparer.door
        return resolve_roots(
            paths,
            scope=self.scope,
            repository=self.repository,
            collection=self.collection,
            stored_name=str if door is None else door.name,
        )

    def _store(self, found: Iterable[tuple[Root, FoundFile]]) -> None:
        """Read, embed and store files that the store does not hold as they are."""
        self._take_in(self._known(found), self._read, size=lambda file: file.found.size)

    def _known(self, found: Iterable[tuple[Root, FoundFile]]) -> Iterator[_File]:
        """The files, with what the store knows of each."""
        for root, group in groupby(self._counted(found), key=lambda pair: pair[0]):
            for window in windows((file for _, file in group), _WINDOW_FILES):
                files = [_File(one, root, None) for one in window]
                stamps = self.repository.stamps(self.scope, root.source, [file.uri for file in files])
                for file in files:
                    file.stamp = stamps.get(file.uri)
                    yield file

    def _counted(self, found: Iterable[tuple[Root, FoundFile]]) -> Iterator[tuple[Root, FoundFile]]:
        """The same files, met some way ahead where somebody is told how many there are."""
        waiting: deque[tuple[Root, FoundFile]] = deque()
        for one in found:
            self._total += 1
            waiting.append(one)
            if not self.on_progress or len(waiting) > _FILES_AHEAD:
                yield waiting.popleft()
        yield from waiting

    def _found(self, root: Root, met: dict[int, _Met] | None) -> Iterator[FoundFile]:
        found = walk([root.path], max_bytes=self.max_file_bytes, follow_links=self.follow_links)
        return self._judged(root, found, None if met is None else met[root.source.source_id])

    def _judged(self, root: Root, found: Iterable[FoundFile | SkippedFile], met: _Met | None) -> Iterator[FoundFile]:
        for file in found:
            if met is not None:
                met.add(root, file)
            if isinstance(file, FoundFile):
                if not self._is_apart(root.uri(file.source), root):
                    yield file
            elif file.kind == "unreadable":
                self._tally.fail(self._shown(file.path), file.reason)
            else:
                self._tally.skip(file.kind, self._shown(file.path), file.reason)

    def _is_apart(self, uri: str, root: Root) -> bool:
        """Whether a path below a root is among those that are read otherwise."""
        if not self.apart:
            return False
        folders = (f"{folder}/" for folder in PurePosixPath(uri).parents)
        return any(one in self.apart for one in (uri, *folders) if len(one) > len(root.prefix))

    def _read(self, file: _File) -> _File:
        department = department_of(file.uri)
        given: dict[str, object] = {"department": department, "tags": self.tags} | file.root.source.given
        if self.permissions is not None:
            given["permissions"] = self.permissions
        fingerprint = self.preparer.fingerprint(given)
        found = file.found
        try:
            data = load_file(found.path, max_bytes=self.max_file_bytes, below=found.below)
            if self._unchanged(file.stamp, data, fingerprint):
                return file
            document = read_bytes(
                data,
                name=found.path.name,
                source=file.uri,
                department=department,
                pictures=self.preparer.shows_pictures,
                workers=self.workers,
                cancelled=self._interrupted.is_set,
                on_page=_Pages(self._recognised),
            )
            tags = tuple(dict.fromkeys((*self.tags, *document.tags)))
            document = replace(
                document,
                tags=tags,
                permissions=self.permissions or document.permissions,
                original=_on_disk(found, document) if self.keep_originals else None,
            )
            file.cut = self.preparer.cut(document, fingerprint, file.root.source.metadata)
        except PictureWithoutTextError:
            file.shows_nothing = True
        except ParseError as exc:
            file.error = exc.reason
        except UsageError as exc:
            file.error = str(exc)
        return file

    def _unchanged(self, stamp: Stamp | None, data: bytes, fingerprint: str) -> bool:
        if stamp is None or self.force or stamp.fingerprint != fingerprint:
            return False
        return stamp.file_hash == hashlib.sha256(data).digest()

    def _source_of(self, entry: _File) -> Source:
        return entry.root.source

    def _settle(self, entry: _File) -> None:
        with self._counting:
            if entry.shows_nothing:
                self._tally.skip("without_text", self._shown(entry.found.path), "is a picture without text")
            elif entry.error is None:
                self._tally.unchanged += 1
            else:
                self._tally.fail(self._shown(entry.found.path), entry.error)

    def _count(self, batch: list[_File], outcomes: list[IngestResult | RecollectError]) -> None:
        documents = [entry.document.document for entry in batch]
        with self._counting:
            self._tally.count_each([one.source or "" for one in documents], outcomes)
            for one in documents:
                self._tally.look_at(one.source or "", one.metadata)

    def _close_missing(self, roots: Sequence[Root], met: dict[int, _Met]) -> None:
        for root in roots:
            if root.is_file:
                continue
            known = self.repository.current_uris(self.scope, root.source, prefix=root.prefix)
            gone = (
                document_id
                for uri, document_id in known
                if uri not in met[root.source.source_id] and not self._is_apart(uri, root)
            )
            for window in windows(gone, _WINDOW_FILES):
                self._tally.removed += self.writer.close(self.scope, window)

    def _close_gone(self, root: Root, uris: set[str], met: _Met) -> None:
        """Close the documents of paths, and of what was below them, that were not met."""
        # A path that is a file stands for itself; what went may have been a folder.
        looked = [uri for uri in uris if uri not in met.uris]
        if len(looked) > _PREFIXES:
            gone = self._gone_below(root, root.prefix, set(looked), met)
        else:
            gone = (one for uri in looked for one in self._gone_below(root, uri, {uri}, met))
        for window in windows(gone, _WINDOW_FILES):
            self._tally.removed += self.writer.close(self.scope, window)

    def _gone_below(self, root: Root, prefix: str, looked: set[str], met: _Met) -> Iterator[int]:
        for uri, document_id in self.repository.current_uris(self.scope, root.source, prefix=prefix):
            below = uri in looked or any(str(folder) in looked for folder in PurePosixPath(uri).parents)
            if below and uri not in met:
                yield document_id

    def _close_doubles(self, roots: Sequence[Root]) -> None:
        for source in {root.source.source_id: root.source for root in roots}.values():
            for window in windows(self.repository.held_twice(self.scope, source), _WINDOW_FILES):
                self._tally.removed += self.writer.close(self.scope, window)

    def _recognised(self, done: int, total: int) -> None:
        with self._counting:
            self._pages_done += done
            self._pages += total
            if self.on_progress:
                pages = IngestProgress(
                    done=self._pages_done, total=self._pages, chunks=self._embedded, stage="recognising"
                )
                self.on_progress(pages)


class _Pages:
    """Tells what has come to the pages of all files from what is told of one file's."""

    def __init__(self, add: Callable[[int, int], None]) -> None:
        self._add = add
        self._done = self._total = 0

    def __call__(self, done: int, total: int) -> None:
        self._add(done - self._done, total - self._total)
        self._done, self._total = done, total


def _on_disk(found: FoundFile, document: Document) -> Original | None:
    """The file that a document was read from, to be read again when it is stored: not held in memory until then."""

    def pieces() -> Iterator[bytes]:
        with open_file(found.path, below=found.below) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    return document.original and replace(document.original, opened=pieces)
