"""Pages that were asked for one by one, fetched side by side and stored in batches: each has an outcome of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from recollect.errors import RecollectError
from recollect.fetching.urls import parse_url
from recollect.ingest.flow import BATCH_CHUNKS, EMBEDDED_AT_ONCE, threads
from recollect.ingest.pages import page_document
from recollect.ingest.site import PageOptions, described

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.fetching.client import Fetcher, PageRequest
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import CutDocument, Embedded, Preparer
    from recollect.model import IngestResult
    from recollect.store.documents import Source

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
class _Page(Generic[Key]):
    key: Key
    request: PageRequest
    cut: CutDocument | None = None
    error: Exception | None = None
    read_at: float = 0.0

    @property
    def document(self) -> CutDocument:
        assert self.cut is not None, "only what was read goes further"
        return self.cut


class NamedPages(Generic[Key]):
    """One run over pages of one host. While pages are embedded and stored, others are fetched and read.

    No page waits for one before it: what was read is embedded, in whatever order it came.

    Args:
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

    def __init__(
        self,
        asked: AskedPages[Key],
        *,
        fetcher: Fetcher,
        source: Source,
        preparer: Preparer,
        batch_writer: BatchWriter,
        workers: ParserWorkers,
        options: PageOptions,
        force: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._asked = asked
        self._fetcher = fetcher
        self._source = source
        self._preparer = preparer
        self._batch_writer = batch_writer
        self._workers = workers
        self._options = options
        self._force = force
        self._clock = clock
        self._interrupted = threading.Event()
        self._fingerprint = preparer.fingerprint(options.given | source.given)
        # What is at work, by where it is: batches are written in the order in which they were put together.
        self._reading: set[Future[_Page[Key]]] = set()
        self._read: list[_Page[Key]] = []
        self._embedding: deque[tuple[list[_Page[Key]], Future[list[Embedded]]]] = deque()
        self._writing: Future[None] | None = None
        self._over = False

    def run(self) -> None:
        """Fetch and store the pages until there are no more."""
        with (
            threads(_AT_ONCE, "page", on_error=self._interrupted.set) as readers,
            threads(EMBEDDED_AT_ONCE, "embed-batch") as embedders,
            threads(1, "writer") as writer,
        ):
            while True:
                self._asked.look()
                self._take(readers)
                self._collect()
                self._hand_over(embedders, writer)
                at_work = self._at_work()
                if at_work:
                    wait(at_work, timeout=_WAIT_SECONDS, return_when=FIRST_COMPLETED)
                elif self._over and not self._read:
                    break
        self._batch_writer.finish()

    def _at_work(self) -> set[Future[object]]:
        at_work: set[Future[object]] = set(self._reading)  # type: ignore[arg-type]
        at_work.update(future for _, future in self._embedding if not future.done())  # type: ignore[misc]
        if self._writing is not None:
            at_work.add(self._writing)  # type: ignore[arg-type]
        return at_work

    def _take(self, readers: ThreadPoolExecutor) -> None:
        while not self._over and len(self._reading) + len(self._read) < _AHEAD:
            taken = self._asked.take(_BATCH_PAGES)
            self._over = taken is None
            if not taken:
                return
            self._reading.update(readers.submit(self._fetch, _Page(key, request)) for key, request in taken)

    def _fetch(self, page: _Page[Key]) -> _Page[Key]:
        if not self._asked.wanted(page.key):
            return page
        try:
            fetched = self._fetcher.fetch(page.request)
            self._asked.came([page.key], "fetch")
            uri = str(parse_url(page.request.url))
            document = page_document(
                fetched,
                uri=uri,
                pictures=self._preparer.shows_pictures,
                workers=self._workers,
                cancelled=self._interrupted.is_set,
            )
            self._asked.came([page.key], "read")
            document = described(document, fetched, self._options, page.request)
            page.cut = self._preparer.cut(document, self._fingerprint, self._source.metadata)
            self._asked.came([page.key], "cut")
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
            page.read_at = self._clock()
            if page.error is not None:
                failed.append((page.key, page.error))
            elif page.cut is not None:
                self._read.append(page)
        if failed:
            self._asked.ended(failed)

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

    def _batch(self) -> list[_Page[Key]]:
        """Pages that are embedded and stored together, each address once; none: more are waited for."""
        self._read = [page for page in self._read if self._asked.wanted(page.key)]
        batch: dict[str | None, _Page[Key]] = {}
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
        waited = self._clock() - min(page.read_at for page in self._read)
        return not self._reading or len(self._read) >= _FEW_PAGES or waited >= _WAIT_SECONDS

    def _embed(self, batch: list[_Page[Key]]) -> list[Embedded]:
        embedded = self._batch_writer.embed([page.document for page in batch])
        self._asked.came([page.key for page in batch], "embed")
        return embedded

    def _write(self, batch: list[_Page[Key]], embedded: Sequence[Embedded]) -> None:
        cuts = [page.document for page in batch]
        written = self._batch_writer.write_each(self._source, cuts, embedded, force=self._force)
        outcomes: list[tuple[Key, PageOutcome]] = []
        for page, result in zip(batch, written, strict=True):
            stored = (page.document.document.title, result) if not isinstance(result, RecollectError) else result
            outcomes.append((page.key, stored))
        self._asked.ended(outcomes)
        if self._batch_writer.statistics_lag_far():
            self._batch_writer.refresh_statistics()
