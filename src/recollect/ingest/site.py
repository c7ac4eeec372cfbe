"""Pages of a site into its source: fetched side by side, embedded and stored in batches, closed once they are gone."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from recollect.errors import FetchError, UsageError
from recollect.fetching.client import Fetched, PageRequest
from recollect.fetching.crawl import Crawl, Visit, Visited
from recollect.ingest.flow import BYTES_AHEAD, DOCUMENTS_AHEAD, ahead, batches, embed_and_write, threads
from recollect.ingest.pages import page_document
from recollect.ingest.report import IngestProgress, IngestReport, ProgressCallback, Tally
from recollect.ingest.source import require_few_gone
from recollect.privacy.redaction import PLACEHOLDERS

if TYPE_CHECKING:
    from recollect.documents.workers import ParserWorkers
    from recollect.ingest.documents import BatchWriter
    from recollect.ingest.prepare import CutDocument, Embedded, Preparer
    from recollect.model import Document, Scope
    from recollect.store.documents import Source, StoredPage
    from recollect.store.writer import DocumentWriter

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
class _Page:
    """A visited page and what was made of it."""

    visited: Visited
    cut: CutDocument | None = None
    error: str | None = None
    gone: bool = False
    left_out: str | None = None

    @property
    def document(self) -> CutDocument:
        assert self.cut is not None, "only what was read goes further"
        return self.cut


class SiteIngest:
    """One run over pages.

    Args:
        scope: The tenant, and who stores.
        source: The pages' source.
        preparer: Cuts and embeds.
        batch_writer: Stores.
        writer: Closes what is gone.
        workers: The processes that parse.
        readers: Pages parsed at the same time.
        options: How the pages are stored.
        force: Whether to store them anew, changed or not.
        known: The pages of the source that are stored, by URI.
        max_removed_share: Where a larger share of these, and more than a few, is to be closed, none is; None: whatever
            has gone is closed.
        on_progress: Told after every page.
    """

    def __init__(
        self,
        *,
        scope: Scope,
        source: Source,
        preparer: Preparer,
        batch_writer: BatchWriter,
        writer: DocumentWriter,
        workers: ParserWorkers,
        readers: int = 2,
        options: PageOptions | None = None,
        force: bool = False,
        known: Mapping[str, StoredPage] | None = None,
        max_removed_share: float | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self._scope = scope
        self._source = source
        self._preparer = preparer
        self._batch_writer = batch_writer
        self._writer = writer
        self._workers = workers
        self._readers = readers
        self._options = options or PageOptions()
        self._force = force
        self._known = known or {}
        self._max_removed_share = max_removed_share
        self._gone: dict[str, str] = {}
        self._on_progress = on_progress
        self._interrupted = threading.Event()
        self._fingerprint = preparer.fingerprint(self._options.given | source.given)
        self._tally = Tally()
        self._counting = threading.RLock()
        self._total = self._done = self._embedded = 0

    def run(self, crawl: Crawl) -> IngestReport:
        """Store the pages of a crawl, and close those that are gone behind the last one.

        Raises:
            SourceError: So much has gone that somebody should look first: none of it was closed.
        """
        start = time.perf_counter()
        with threads(self._readers, "reader", on_error=self._interrupted.set) as readers:
            reads = ahead(
                readers,
                self._read,
                self._counted(crawl.pages()),
                size=_size,
                max_items=DOCUMENTS_AHEAD,
                max_size=BYTES_AHEAD,
            )
            grouped = batches(
                self._changed(reads), cut=lambda page: page.document, source_id=lambda _: self._source.source_id
            )
            embed_and_write(grouped, self._embed, self._write)
        if crawl.excluded:
            self._tally.skip_reasons["excluded"] = self._tally.skip_reasons.get("excluded", 0) + crawl.excluded
        for problem in crawl.problems:
            self._tally.fail(self._shown(problem.url), self._shown(problem.reason))
        self._close_gone()
        self._report("statistics")
        self._batch_writer.finish()
        return self._tally.report(time.perf_counter() - start)

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
                pictures=self._preparer.shows_pictures,
                workers=self._workers,
                cancelled=self._interrupted.is_set,
            )
            found_at = None if visited.visit.named else str(visited.visit.found_at or visited.visit.url)
            document = described(document, fetched, self._options, visited.visit.request, found_at=found_at)
            page.cut = self._preparer.cut(document, self._fingerprint, self._source.metadata)
        except FetchError as error:
            page.error = error.reason
        except UsageError as error:
            page.error = str(error)
        return page

    def _unchanged(self, uri: str, fetched: Fetched) -> bool:
        if fetched.unchanged:
            return True
        stored = self._known.get(self._name(uri))
        if stored is None or self._force or stored.fingerprint != self._fingerprint:
            return False
        return stored.file_hash == hashlib.sha256(fetched.body).digest()

    def _changed(self, pages: Iterable[_Page]) -> Iterator[_Page]:
        for page in pages:
            if page.cut is None:
                self._settle(page)
            else:
                yield page

    def _settle(self, page: _Page) -> None:
        uri = self._name(page.visited.uri)
        # A page that its site does not want to be found any more is gone too.
        why = page.left_out or (page.error if page.gone else None)
        with self._counting:
            if why is not None and uri in self._known:
                self._gone[uri] = self._shown(why)
            elif page.left_out:
                self._tally.skip("noindex", uri, page.left_out)
            elif page.error is not None:
                self._tally.fail(self._shown(page.visited.uri), self._shown(page.error))
            else:
                self._tally.unchanged += 1
        self._advance(1)

    def _name(self, uri: str) -> str:
        door = self._preparer.door
        return uri if door is None else door.name(uri)

    def _shown(self, text: str) -> str:
        door = self._preparer.door
        return text if door is None else door.shown(text)

    def _close_gone(self) -> None:
        require_few_gone(self._source.name, len(self._gone), len(self._known), most=self._max_removed_share)
        for uri, why in self._gone.items():
            if self._writer.close(self._scope, [self._known[uri].document_id]):
                self._tally.close(uri, why)

    def _embed(self, batch: list[_Page]) -> list[Embedded]:
        embedded = self._preparer.embed([page.document for page in batch])
        with self._counting:
            self._embedded += sum(len(page.document.chunks) for page in batch)
        return embedded

    def _write(self, batch: list[_Page], embedded: Sequence[Embedded]) -> None:
        cuts = [page.document for page in batch]
        written = self._batch_writer.write_each(self._source, cuts, embedded, force=self._force)
        with self._counting:
            self._tally.count_each([self._shown(page.visited.uri) for page in batch], written)
        self._advance(len(batch))
        if self._batch_writer.statistics_lag_far():
            self._batch_writer.refresh_statistics()

    def _advance(self, pages: int) -> None:
        with self._counting:
            self._done += pages
            self._report("files")

    def _report(self, stage: Any) -> None:  # noqa: ANN401 - one of IngestProgress's literals
        if self._on_progress:
            progress = IngestProgress(done=self._done, total=self._total, chunks=self._embedded, stage=stage)
            self._on_progress(progress)


def _size(visited: Visited) -> int:
    return 0 if visited.fetched is None else len(visited.fetched.body)
