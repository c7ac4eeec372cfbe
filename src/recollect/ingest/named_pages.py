"""Pages that were asked for one by one, fetched side by side and stored in batches: each has an outcome of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from recollect.errors import RecollectError
from recollect.fetching.urls import parse_url
from recollect.ingest.flow import ahead, batches, embed_and_write, threads
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
PageOutcome: TypeAlias = "tuple[str | None, IngestResult] | RecollectError"

# Pages that are asked for at once: while one is waited for, others are read.
_AT_ONCE = 8
# Pages read before those in front of them: enough to go on beside a slow one, few enough where all of them are large.
_AHEAD = 32


@dataclass(slots=True)
class _Page:
    number: int
    cut: CutDocument | None = None
    error: RecollectError | None = None

    @property
    def document(self) -> CutDocument:
        assert self.cut is not None, "only what was read goes further"
        return self.cut


class NamedPages:
    """One run over pages of one host.

    Args:
        fetcher: Fetches them.
        source: Theirs.
        preparer: Cuts and embeds.
        batch_writer: Stores.
        workers: The processes that parse.
        options: How they are stored.
        force: Whether to store them anew, changed or not.
        on_progress: Called after every page that was read, or that could not be; may raise to end the run.
    """

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        source: Source,
        preparer: Preparer,
        batch_writer: BatchWriter,
        workers: ParserWorkers,
        options: PageOptions,
        force: bool = False,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._fetcher = fetcher
        self._source = source
        self._preparer = preparer
        self._batch_writer = batch_writer
        self._workers = workers
        self._options = options
        self._force = force
        self._on_progress = on_progress
        self._interrupted = threading.Event()
        self._fingerprint = preparer.fingerprint(options.given)
        self._outcomes: dict[int, PageOutcome] = {}

    def run(self, requests: Sequence[PageRequest]) -> list[PageOutcome]:
        """Fetch and store pages; the title and the result of each, or why it was not stored, in their order."""
        with threads(_AT_ONCE, "page", on_error=self._interrupted.set) as readers:
            reads = ahead(
                readers,
                lambda numbered: self._read(*numbered),
                enumerate(requests),
                # What a page weighs is not known before it is fetched.
                size=lambda _: 1,
                max_items=_AHEAD,
                max_size=_AHEAD,
            )
            read = (page for page in reads if self._is_read(page))
            grouped = batches(read, cut=lambda page: page.document, source_id=lambda _: self._source.source_id)
            embed_and_write(grouped, lambda batch: self._preparer.embed([page.document for page in batch]), self._write)
        self._batch_writer.finish()
        return [self._outcomes[number] for number in range(len(requests))]

    def _read(self, number: int, request: PageRequest) -> _Page:
        try:
            fetched = self._fetcher.fetch(request)
            uri = str(parse_url(request.url))
            document = page_document(fetched, uri=uri, workers=self._workers, cancelled=self._interrupted.is_set)
            document = described(document, fetched, self._options, request)
            return _Page(number, cut=self._preparer.cut(document, self._fingerprint))
        except RecollectError as error:
            return _Page(number, error=error)

    def _is_read(self, page: _Page) -> bool:
        self._on_progress()
        if page.error is not None:
            self._outcomes[page.number] = page.error
        return page.error is None

    def _write(self, batch: list[_Page], embedded: Sequence[Embedded]) -> None:
        cuts = [page.document for page in batch]
        written = self._batch_writer.write_each(self._source, cuts, embedded, force=self._force)
        for page, result in zip(batch, written, strict=True):
            title = page.document.document.title
            self._outcomes[page.number] = result if isinstance(result, RecollectError) else (title, result)
