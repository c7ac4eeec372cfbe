"""Pages of the web into their sources, of a site or by name: fetched side by side, embedded and stored in batches."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from recollect.errors import FetchError, RecollectError, UsageError
from recollect.fetching.client import Fetched, PageRequest
from recollect.fetching.crawl import Crawl, Visit, Visited
from recollect.fetching.urls import parse_url
from recollect.ingest.documents import (
    BATCH_CHUNKS,
    EMBEDDED_AT_ONCE,
    IngestRun,
    OnItsWay,
    threads,
)
from recollect.ingest.pages import page_document
from recollect.ingest.report import IngestReport
from recollect.ingest.source import require_few_gone
from recollect.privacy.redaction import PLACEHOLDERS

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.fetching.client import Fetcher
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import Embedded, Preparer
    from recollect.model import Document, IngestResult
    from recollect.store.documents import Source, StoredPage


#: Changes whenever the same page would be read differently by new code, so that pages are fetched whole once more.
READER_VERSION = 1
#: What a stored page's metadata calls how it was fetched and stored.
NOTED = "web"
_LONGEST_VALIDATOR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How pages are stored; kept with each of them, for when it is fetched anew.

    Attributes:
        tags: Given to every one.
        permissions: Who may read them; None: the collection's default.
        chunk_size: Of the longest chunk; None: as the collection has it.
        chunk_overlap: Of neighbouring chunks; None: the same.
    """

    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None

    @classmethod
    def of(cls, page: StoredPage) -> PageOptions:
        """Those of a page that is stored."""
        noted = _noted(page)
        permissions = noted.get("permissions")
        return cls(
            tags=tuple(noted.get("tags", ())),
            permissions=None if permissions is None else tuple(permissions),
            chunk_size=noted.get("chunk_size"),
            chunk_overlap=noted.get("chunk_overlap"),
        )

    @property
    def given(self) -> dict[str, object]:
        """What a version depends on besides the page and how it is cut."""
        return {"reader": READER_VERSION, "tags": self.tags, "permissions": self.permissions}


def described(
    document: Document,
    fetched: Fetched,
    options: PageOptions,
    request: PageRequest,
    *,
    found_at: str | None = None,
) -> Document:
    """A page's document, with what is said of it and how to ask for it again.

    Args:
        document: As it was read.
        fetched: The page.
        options: How it is stored.
        request: What was asked for.
        found_at: Where a link led, if somebody asked for a site rather than for this page.
    """
    noted: dict[str, Any] = {
        "etag": fetched.etag,
        "last_modified": fetched.last_modified,
        "method": None if request.method == "GET" else request.method,
        "needs_headers": True if request.headers or request.body else None,
        "url": str(fetched.url) if str(fetched.url) != document.source else None,
        "found_at": found_at,
        "tags": list(options.tags) or None,
        "permissions": None if options.permissions is None else list(options.permissions),
        "chunk_size": options.chunk_size,
        "chunk_overlap": options.chunk_overlap,
    }
    kept = {
        key: value
        for key, value in noted.items()
        if value is not None and not (isinstance(value, str) and len(value) > _LONGEST_VALIDATOR)
    }
    return replace(
        document,
        metadata={**document.metadata, NOTED: kept},
        tags=tuple(dict.fromkeys((*options.tags, *document.tags))),
        permissions=options.permissions,
    )


def can_be_asked_again(page: StoredPage) -> bool:
    """Whether everything that its request took is known: headers and bodies are not kept, nor what was taken out."""
    noted = _noted(page)
    return "method" not in noted and "needs_headers" not in noted and not _is_redacted(page.uri)


def visited_again(page: StoredPage, *, fingerprint: str, whole: bool = False) -> Visit:
    """The visit of a page that is stored: an unchanged one is not sent again.

    Args:
        page: As it is stored.
        fingerprint: What its version would have now; with another one the whole page is wanted.
        whole: Whether it is wanted in any case.
    """
    noted = _noted(page)
    asked = {} if whole or page.fingerprint != fingerprint else noted
    request = PageRequest(url=page.uri, etag=asked.get("etag"), last_modified=asked.get("last_modified"))
    found_at = noted.get("found_at")
    moved = found_at if found_at != page.uri and not _is_redacted(found_at or "") else None
    return Visit.of(request, named=found_at is None, uri=page.uri, found_at=moved)


def _is_redacted(text: str) -> bool:
    return any(placeholder in text for placeholder in PLACEHOLDERS.values())


def _noted(page: StoredPage) -> Mapping[str, Any]:
    noted = page.metadata.get(NOTED)
    return noted if isinstance(noted, Mapping) else {}


@dataclass(slots=True)
class _Page(OnItsWay):
    """A visited page and what was made of it."""

    visited: Visited
    error: str | None = None
    gone: bool = False
    left_out: str | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class SiteIngest(IngestRun[_Page]):
    """One run over pages.

    Attributes:
        source: The pages' source.
        options: How the pages are stored.
        known: The pages of the source that are stored, by URI.
        max_removed_share: Where a larger share of these, and more than a few, is to be closed, none is; None: whatever
            has gone is closed.
    """

    source: Source
    options: PageOptions
    known: Mapping[str, StoredPage]
    max_removed_share: float | None = None
    _gone: dict[str, str] = field(init=False, default_factory=dict)

    @cached_property
    def _fingerprint(self) -> str:
        return self.preparer.fingerprint(self.options.given | self.source.given)

    def run(self, crawl: Crawl) -> IngestReport:
        """Store the pages of a crawl, and close those that are gone behind the last one.

        Raises:
            SourceError: So much has gone that somebody should look first: none of it was closed.
        """
        start = time.perf_counter()
        self._take_in(self._counted(crawl.pages()), self._read, size=_size)
        if crawl.excluded:
            self._tally.skip_reasons["excluded"] = self._tally.skip_reasons.get("excluded", 0) + crawl.excluded
        for problem in crawl.problems:
            self._tally.fail(self._shown(problem.url), self._shown(problem.reason))
        self._close_gone()
        return self._finish(start)

    def _counted(self, visits: Iterable[Visited]) -> Iterator[Visited]:
        for visited in visits:
            self._total += 1
            yield visited

    def _read(self, visited: Visited) -> _Page:
        page = _Page(visited)
        if visited.error is not None:
            page.error, page.gone = visited.error.reason, visited.error.gone
            return page
        page.left_out = visited.left_out
        fetched = visited.fetched
        if page.left_out or fetched is None or self._unchanged(visited.uri, fetched):
            return page
        try:
            document = page_document(
                fetched,
                uri=visited.uri,
                pictures=self.preparer.shows_pictures,
                workers=self.workers,
                cancelled=self._interrupted.is_set,
            )
            found_at = None if visited.visit.named else str(visited.visit.found_at or visited.visit.url)
            document = described(document, fetched, self.options, visited.visit.request, found_at=found_at)
            page.cut = self.preparer.cut(document, self._fingerprint, self.source.metadata)
        except FetchError as error:
            page.error = error.reason
        except UsageError as error:
            page.error = str(error)
        return page

    def _unchanged(self, uri: str, fetched: Fetched) -> bool:
        if fetched.unchanged:
            return True
        stored = self.known.get(self._name(uri))
        if stored is None or self.force or stored.fingerprint != self._fingerprint:
            return False
        return stored.file_hash == hashlib.sha256(fetched.body).digest()

    def _source_of(self, entry: _Page) -> Source:  # noqa: ARG002
        return self.source

    def _settle(self, entry: _Page) -> None:
        uri = self._name(entry.visited.uri)
        # A page that its site does not want to be found any more is gone too.
        why = entry.left_out or (entry.error if entry.gone else None)
        with self._counting:
            if why is not None and uri in self.known:
                self._gone[uri] = self._shown(why)
            elif entry.left_out:
                self._tally.skip("noindex", uri, entry.left_out)
            elif entry.error is not None:
                self._tally.fail(self._shown(entry.visited.uri), self._shown(entry.error))
            else:
                self._tally.unchanged += 1

    def _name(self, uri: str) -> str:
        door = self.preparer.door
        return uri if door is None else door.name(uri)

    def _close_gone(self) -> None:
        require_few_gone(self.source.name, len(self._gone), len(self.known), most=self.max_removed_share)
        for uri, why in self._gone.items():
            if self.writer.close(self.scope, [self.known[uri].document_id]):
                self._tally.close(uri, why)

    def _count(self, batch: list[_Page], outcomes: list[IngestResult | RecollectError]) -> None:
        with self._counting:
            self._tally.count_each([self._shown(page.visited.uri) for page in batch], outcomes)


def _size(visited: Visited) -> int:
    return 0 if visited.fetched is None else len(visited.fetched.body)


# Pages that were asked for one by one, fetched side by side and stored in batches: each has an outcome of its own.


#: What became of a page: it was stored, or why not.
PageOutcome: TypeAlias = "tuple[str | None, IngestResult] | Exception"

Key = TypeVar("Key", bound=Hashable)

# Pages that are asked for at once: while one is waited for, others are read.
_AT_ONCE = 8
# A batch is embedded and stored once it has so many pages: what is at work when a worker is killed is done again.
_BATCH_PAGES = 32
# While nothing is embedded, fewer do, or any that have waited for so long: for one that is slow, say.
_FEW_PAGES = 8
_WAIT_SECONDS = 0.2
# More are taken while fewer than these are read: enough to go on with, few enough where all of them are large.
_AHEAD = _BATCH_PAGES


class AskedPages(Protocol[Key]):
    """Pages that somebody asked for, taken as there is room for more. What is told may be told from any thread."""

    def take(self, most: int) -> Sequence[tuple[Key, PageRequest]] | None:
        """Further pages, so many at most; none: later, once others have ended. None: there are no more."""
        ...

    def wanted(self, key: Key) -> bool:
        """Whether anybody still wants a page."""
        ...

    def came(self, keys: Sequence[Key], stage: str) -> None:
        """Pages are through a stage: ``fetch``, ``read``, ``cut`` or ``embed``."""
        ...

    def ended(self, outcomes: Sequence[tuple[Key, PageOutcome]]) -> None:
        """What became of pages; each is told once."""
        ...

    def look(self) -> None:
        """Called often; may raise to end the run."""
        ...


@dataclass(slots=True, eq=False)
class _NamedPage(OnItsWay, Generic[Key]):
    key: Key
    request: PageRequest
    error: Exception | None = None
    read_at: float = 0.0


@dataclass(eq=False, repr=False)
class NamedPages(Generic[Key]):
    """One run over pages of one host. While pages are embedded and stored, others are fetched and read.

    No page waits for one before it: what was read is embedded, in whatever order it came.

    Attributes:
        asked: The pages, and whoever asked for them.
        fetcher: Fetches them.
        source: Theirs.
        preparer: Cuts and embeds.
        batch_writer: Stores.
        workers: The processes that parse.
        options: How they are stored.
        force: Whether to store them anew, changed or not.
        clock: Gives seconds.
    """

    asked: AskedPages[Key]
    _: KW_ONLY
    fetcher: Fetcher
    source: Source
    preparer: Preparer
    batch_writer: BatchWriter
    workers: ParserWorkers
    options: PageOptions
    force: bool = False
    clock: Callable[[], float] = time.monotonic
    _interrupted: threading.Event = field(init=False, default_factory=threading.Event)
    # What is at work, by where it is: batches are written in the order in which they were put together.
    _reading: set[Future[_NamedPage[Key]]] = field(init=False, default_factory=set)
    _read: list[_NamedPage[Key]] = field(init=False, default_factory=list)
    _embedding: deque[tuple[list[_NamedPage[Key]], Future[list[Embedded]]]] = field(init=False, default_factory=deque)
    _writing: Future[None] | None = field(init=False, default=None)
    _over: bool = field(init=False, default=False)

    @cached_property
    def _fingerprint(self) -> str:
        return self.preparer.fingerprint(self.options.given | self.source.given)

    def run(self) -> None:
        """Fetch and store the pages until there are no more."""
        with (
            threads(_AT_ONCE, "page", on_error=self._interrupted.set) as readers,
            threads(EMBEDDED_AT_ONCE, "embed-batch") as embedders,
            threads(1, "writer") as writer,
        ):
            while True:
                self.asked.look()
                self._take(readers)
                self._collect()
                self._hand_over(embedders, writer)
                at_work = self._at_work()
                if at_work:
                    wait(at_work, timeout=_WAIT_SECONDS, return_when=FIRST_COMPLETED)
                elif self._over and not self._read:
                    break
        self.batch_writer.finish()

    def _at_work(self) -> set[Future[object]]:
        at_work: set[Future[object]] = set(self._reading)  # type: ignore[arg-type]
        at_work.update(future for _, future in self._embedding if not future.done())  # type: ignore[misc]
        if self._writing is not None:
            at_work.add(self._writing)  # type: ignore[arg-type]
        return at_work

    def _take(self, readers: ThreadPoolExecutor) -> None:
        while not self._over and len(self._reading) + len(self._read) < _AHEAD:
            taken = self.asked.take(_BATCH_PAGES)
            self._over = taken is None
            if not taken:
                return
            self._reading.update(readers.submit(self._fetch, _NamedPage(key, request)) for key, request in taken)

    def _fetch(self, page: _NamedPage[Key]) -> _NamedPage[Key]:
        if not self.asked.wanted(page.key):
            return page
        try:
            fetched = self.fetcher.fetch(page.request)
            self.asked.came([page.key], "fetch")
            uri = str(parse_url(page.request.url))
            document = page_document(
                fetched,
                uri=uri,
                pictures=self.preparer.shows_pictures,
                workers=self.workers,
                cancelled=self._interrupted.is_set,
            )
            self.asked.came([page.key], "read")
            document = described(document, fetched, self.options, page.request)
            page.cut = self.preparer.cut(document, self._fingerprint, self.source.metadata)
            self.asked.came([page.key], "cut")
        except Exception as error:  # noqa: BLE001 - whatever a page does to its reader is its own end
            page.error = error
        return page

    def _collect(self) -> None:
        """Look at the pages that were read, or could not be."""
        done = {future for future in self._reading if future.done()}
        self._reading -= done
        failed: list[tuple[Key, PageOutcome]] = []
        for future in done:
            page = future.result()
            page.read_at = self.clock()
            if page.error is not None:
                failed.append((page.key, page.error))
            elif page.cut is not None:
                self._read.append(page)
        if failed:
            self.asked.ended(failed)

    def _hand_over(self, embedders: ThreadPoolExecutor, writer: ThreadPoolExecutor) -> None:
        """Have what was read embedded, and what was embedded stored."""
        if self._writing is not None and self._writing.done():
            self._writing.result()
            self._writing = None
        if self._writing is None and self._embedding and self._embedding[0][1].done():
            batch, embedded = self._embedding.popleft()
            self._writing = writer.submit(self._write, batch, embedded.result())
        while len(self._embedding) < EMBEDDED_AT_ONCE and (batch := self._batch()):
            self._embedding.append((batch, embedders.submit(self._embed, batch)))

    def _batch(self) -> list[_NamedPage[Key]]:
        """Pages that are embedded and stored together, each address once; none: more are waited for."""
        self._read = [page for page in self._read if self.asked.wanted(page.key)]
        batch: dict[str | None, _NamedPage[Key]] = {}
        chunks = 0
        for page in self._read:
            if len(batch) >= _BATCH_PAGES or chunks >= BATCH_CHUNKS:
                break
            if batch.setdefault(page.document.document.source, page) is page:
                chunks += len(page.document.chunks)
        full = len(batch) >= _BATCH_PAGES or chunks >= BATCH_CHUNKS
        if not batch or not (full or self._is_due()):
            return []
        self._read = [page for page in self._read if page not in batch.values()]
        return list(batch.values())

    def _is_due(self) -> bool:
        """Whether less than a whole batch is embedded: nothing else is, and there may be nothing more for a while."""
        if any(not future.done() for _, future in self._embedding):
            return False
        waited = self.clock() - min(page.read_at for page in self._read)
        return not self._reading or len(self._read) >= _FEW_PAGES or waited >= _WAIT_SECONDS

    def _embed(self, batch: list[_NamedPage[Key]]) -> list[Embedded]:
        embedded = self.batch_writer.embed([page.document for page in batch])
        self.asked.came([page.key for page in batch], "embed")
        return embedded

    def _write(self, batch: list[_NamedPage[Key]], embedded: Sequence[Embedded]) -> None:
        cuts = [page.document for page in batch]
        written = self.batch_writer.write_each(self.source, cuts, embedded, force=self.force)
        outcomes: list[tuple[Key, PageOutcome]] = []
        for page, result in zip(batch, written, strict=True):
            stored = (page.document.document.title, result) if not isinstance(result, RecollectError) else result
            outcomes.append((page.key, stored))
        self.asked.ended(outcomes)
        if self.batch_writer.statistics_lag_far():
            self.batch_writer.refresh_statistics()
