"""Pages of the web where a view writes: asked for as jobs, fetched, stored, and fetched anew once they may differ."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from recollect.errors import FetchError, NotFoundError, UsageError
from recollect.fetching.client import PageRequest
from recollect.fetching.crawl import Crawl, CrawlPlan, Visit
from recollect.fetching.urls import parse_url
from recollect.ingest.pages import page_document
from recollect.ingest.report import IngestReport, ProgressCallback, total
from recollect.ingest.site import (
    NamedPages,
    PageOptions,
    PageOutcome,
    SiteIngest,
    can_be_asked_again,
    described,
    visited_again,
)
from recollect.ingest.source import MAX_REMOVED_SHARE
from recollect.model.job import Job, JobCallback, NewJob
from recollect.model.principal import read_permissions
from recollect.pipeline.ingesting import Destination, destination, store_in_stages, told
from recollect.pipeline.jobs import Jobs, enqueue
from recollect.pipeline.preparing import ChunkSizes, errors_shown, make_door, shown_error, shows_pictures

if TYPE_CHECKING:
    from recollect.ingest.door import Door
    from recollect.jobs.progress import Progress
    from recollect.jobs.together import Member, Together
    from recollect.model.source import SourceType
    from recollect.pipeline.standpoint import Standing, Standpoint
    from recollect.store.documents import Source, StoredPage

_SOURCE_TYPE: SourceType = "web"
# What is noted of a source: how it was crawled, and what its last refresh could not fetch.
_CRAWL, _FAILED = "crawl", "failed"
_NAMED_FAILURES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRequest:
    """A page, or the pages of a site, to be stored.

    Attributes:
        page: What to ask for first.
        options: How pages are stored.
        force: Whether to store them anew, changed or not.
        plan: How far links are followed; None: the page alone.
    """

    page: PageRequest
    options: PageOptions = field(default_factory=PageOptions)
    force: bool = False
    plan: CrawlPlan | None = None

    def checked(self) -> UrlRequest:
        """The request, where it can be tried at all.

        Raises:
            UsageError: The method, a header or a grant is not allowed, or a crawl would begin with something else than
                a page that is read.
            FetchError: The URL is none of the web's.
        """
        parse_url(self.page.url)
        self.page.checked()
        if self.plan is not None:
            if self.page.method != "GET" or self.page.headers or self.page.body is not None:
                raise UsageError(
                    "A crawl begins with a page that anybody may read: leave out method, headers and body."
                )
            self.plan.checked()
        permissions = self.options.permissions
        if permissions is None:
            return self
        return replace(self, options=replace(self.options, permissions=read_permissions(permissions).as_tokens()))

    def as_job(self) -> NewJob:
        """The job that stores it; headers and body are shown to nobody."""
        url, page, options = parse_url(self.page.url), self.page, self.options
        shown = {
            "url": str(url),
            "method": None if page.method == "GET" else page.method,
            "options": {key: value for key, value in asdict(options).items() if value not in (None, ())},
            "force": self.force,
            "crawl": None if self.plan is None else asdict(self.plan),
        }
        withheld: dict[str, Any] = {}
        if page.headers:
            withheld["headers"] = dict(page.headers)
        if page.body is not None:
            withheld["body"] = base64.b64encode(page.body).decode("ascii")
        return NewJob(
            kind="ingest_url" if self.plan is None else "crawl",
            arguments={key: value for key, value in shown.items() if value},
            withheld=withheld,
            source=url.host,
            source_type=_SOURCE_TYPE,
            document=str(url) if self.plan is None else None,
        )

    @classmethod
    def of_job(cls, arguments: Mapping[str, Any]) -> UrlRequest:
        """The request of a job's arguments."""
        body, plan, options = arguments.get("body"), arguments.get("crawl"), dict(arguments.get("options", {}))
        lists = {key: tuple(options[key]) for key in ("tags", "permissions") if options.get(key) is not None}
        return cls(
            page=PageRequest(
                url=arguments["url"],
                method=arguments.get("method", "GET"),
                headers=arguments.get("headers", {}),
                body=None if body is None else base64.b64decode(body),
            ),
            options=PageOptions(**{**options, **lists}),
            force=arguments.get("force", False),
            plan=None if plan is None else _plan(plan),
        )


def ask_for(at: Standpoint, request: UrlRequest, *, wait: bool, on_progress: JobCallback | None) -> Job:
    """The job that stores a page or the pages of a site, done where somebody waits for it.

    Raises:
        UsageError: The request cannot be tried at all.
        FetchError: The URL is none of the web's, or plainly one that may not be contacted.
    """
    job = enqueue(at, request.checked().as_job())
    return Jobs(at).wait(job.job_id, on_progress=on_progress) if wait else job


def store_page(view: Standing, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Fetch a page and store it in its domain's source; returns what became of it.

    Raises:
        FetchError: The page cannot be fetched, or holds no text.
    """
    at, request = view.standpoint, UrlRequest.of_job(arguments)
    url = parse_url(request.page.url)
    progress("fetch")
    with errors_shown(make_door(at.assembly, at.scope)):
        fetched = at.assembly.fetcher.fetch(request.page)
        progress("fetch", 1, 1)
        document = page_document(
            fetched,
            uri=str(url),
            pictures=shows_pictures(at.assembly, at.scope),
            workers=at.assembly.parser_workers,
        )
    document = described(document, fetched, request.options, request.page)
    progress("read", 1, 1)
    with _place(at, request.options, url.host) as (place, source):
        given, force = request.options.given, request.force
        return told(source, *store_in_stages(place, source, document, given=given, force=force, progress=progress))


def store_pages(view: Standing, together: Together) -> None:
    """Fetch pages of one host, asked for with the same options, and store them; each job ends with its page."""
    at, first = view.standpoint, UrlRequest.of_job(together.arguments)
    with _place(at, first.options, parse_url(first.page.url).host) as (place, source):
        NamedPages(
            _PageJobs(together, source, place.preparer.door),
            fetcher=at.assembly.fetcher,
            source=source,
            preparer=place.preparer,
            batch_writer=place.batch_writer,
            workers=at.assembly.parser_workers,
            options=first.options,
            force=first.force,
        ).run()


class _PageJobs:
    """Jobs that each ask for a page."""

    def __init__(self, together: Together, source: Source, door: Door | None) -> None:
        self._together, self._source, self._door = together, source, door

    def take(self, most: int) -> Sequence[tuple[Member, PageRequest]] | None:
        taken = self._together.take(most)
        return None if taken is None else [(one, UrlRequest.of_job(one.arguments).page) for one in taken]

    def wanted(self, key: Member) -> bool:
        return self._together.wants(key)

    def came(self, keys: Sequence[Member], stage: str) -> None:
        for one in keys:
            self._together.tell(one, stage)

    def ended(self, outcomes: Sequence[tuple[Member, PageOutcome]]) -> None:
        self._together.end([(one, self._told(outcome)) for one, outcome in outcomes])

    def look(self) -> None:
        self._together.look()

    def _told(self, outcome: PageOutcome) -> dict[str, Any] | Exception:
        if isinstance(outcome, FetchError):
            return shown_error(self._door, outcome)
        return outcome if isinstance(outcome, Exception) else told(self._source, *outcome)


def store_site(at: Standpoint, request: UrlRequest, *, on_progress: ProgressCallback | None = None) -> IngestReport:
    """Fetch the pages of a site and store them in its domain's source.

    Raises:
        FetchError: None of them can be fetched.
    """
    plan = request.plan or CrawlPlan()
    start = Visit.of(request.page, named=True)
    with _place(at, request.options, start.url.host) as (place, source):
        known = {page.uri: page for page in at.store.documents.pages(place.scope, source)}
        noted = {"url": str(start.url), "plan": asdict(plan), "options": asdict(request.options)}
        door = place.preparer.door
        # Where the address holds what may not be kept, the site cannot be crawled again by itself.
        keeps = door is None or door.policy == "tag" or not door.holds(noted)
        at.store.documents.note_source(place.scope, source, {_CRAWL: noted if keeps else None})
        ingest = _site_ingest(at, place, source, request.options, known, on_progress, force=request.force)
        # Every page is asked for whole: one that has not changed would not say where it leads.
        report = ingest.run(Crawl(at.assembly.fetcher, [start], plan))
    if report.errors and not report.added + report.updated + report.unchanged:
        # What could help has been tried: a crawl asks three times for a page that may come.
        raise FetchError(report.errors[0].path, report.errors[0].error)
    return report


def refresh(
    at: Standpoint,
    source_name: str,
    *,
    confirm_removals: bool = False,
    anew: bool = False,
    on_progress: ProgressCallback | None = None,
) -> IngestReport:
    """Fetch the pages of a web source anew where they have changed, and close those that are gone.

    Unchanged pages are not sent again. A page that is there no more (404, 410) is closed; so is one that was found by a
    link and that its site excludes since (``robots.txt``, ``noindex``), or has moved to another page of these. One that
    cannot be fetched now stays, and is told among the report's errors and noted of the source. Pages that were stored
    with headers, a body or another method than GET stay as they are, because those are not kept. Where the site was
    crawled, the links of pages that have changed are followed as they were then, and sitemaps read again.

    Args:
        at: Where the source is: a view's standpoint, of one collection.
        source_name: The domain.
        confirm_removals: Close what is gone, however much it is. Otherwise, where more than half of the pages are gone
            at once, none is closed.
        anew: Have every page sent whole, and follow all its links.
        on_progress: Told after every page.

    Raises:
        NotFoundError: There is no web source of that name.
        SourceError: Too much is gone; then nothing is closed.
    """
    scope = at.present()
    sources = at.store.documents.sources_named(scope, at.place(scope), [source_name], _SOURCE_TYPE)
    if not sources:
        raise NotFoundError(f"The collection {at.collection!r} has no web source {source_name!r}.")
    crawled = at.store.documents.source_metadata(scope, sources[0]).get(_CRAWL)
    groups: dict[PageOptions, dict[str, StoredPage]] = {}
    if crawled:
        groups[UrlRequest.of_job(crawled).options] = {}
    left_alone = 0
    for page in at.store.documents.pages(scope, sources[0]):
        if can_be_asked_again(page):
            groups.setdefault(PageOptions.of(page), {})[page.uri] = page
        else:
            left_alone += 1
    reports = [
        _refreshed(
            at,
            source_name,
            options,
            pages,
            crawled if not number else None,
            max_removed_share=None if confirm_removals else MAX_REMOVED_SHARE,
            anew=anew,
            on_progress=on_progress,
        )
        for number, (options, pages) in enumerate(groups.items())
    ]
    report = total(reports, skipped={"needs_request": left_alone} if left_alone else None)
    failed = {one.path: one.error for one in report.errors[:_NAMED_FAILURES]}
    at.store.documents.note_source(scope, sources[0], {_FAILED: failed})
    return report


def _refreshed(
    at: Standpoint,
    source_name: str,
    options: PageOptions,
    pages: Mapping[str, StoredPage],
    crawled: Mapping[str, Any] | None,
    *,
    max_removed_share: float | None,
    anew: bool,
    on_progress: ProgressCallback | None,
) -> IngestReport:
    """The pages that are stored with the same options, and those that have come since where the site was crawled."""
    with _place(at, options, source_name) as (place, source):
        fingerprint = place.preparer.fingerprint(options.given | source.given)
        plan = _plan(crawled["plan"]) if crawled else CrawlPlan()
        # Every stored page is visited, however many the crawl was to visit, and links are followed from all of them.
        plan = replace(plan, max_pages=plan.max_pages + len(pages))
        starts = [visited_again(page, fingerprint=fingerprint, whole=anew) for page in pages.values()]
        if crawled and crawled["url"] not in pages:
            starts.append(Visit.of(PageRequest(url=crawled["url"]), named=True))
        ingest = _site_ingest(at, place, source, options, pages, on_progress, max_removed_share=max_removed_share)
        return ingest.run(Crawl(at.assembly.fetcher, starts, plan))


def _site_ingest(
    at: Standpoint,
    place: Destination,
    source: Source,
    options: PageOptions,
    known: Mapping[str, StoredPage],
    on_progress: ProgressCallback | None,
    *,
    force: bool = False,
    max_removed_share: float | None = None,
) -> SiteIngest:
    return SiteIngest(
        scope=place.scope,
        source=source,
        preparer=place.preparer,
        batch_writer=place.batch_writer,
        writer=at.store.writer,
        workers=at.assembly.parser_workers,
        readers=at.config.ingest.readers,
        options=options,
        force=force,
        known=known,
        max_removed_share=max_removed_share,
        on_progress=on_progress,
    )


@contextmanager
def _place(at: Standpoint, options: PageOptions, domain: str) -> Iterator[tuple[Destination, Source]]:
    sizes = None
    if options.chunk_size is not None or options.chunk_overlap is not None:
        sizes = ChunkSizes(options.chunk_size, options.chunk_overlap)
    with destination(at, sizes=sizes) as place:
        yield place, at.store.documents.ensure_source(place.scope, place.collection, domain, _SOURCE_TYPE)


def _plan(said: Mapping[str, Any]) -> CrawlPlan:
    # What an older or newer version has noted besides is nothing to this one.
    known = {field.name for field in fields(CrawlPlan)}
    return CrawlPlan(**{key: value for key, value in said.items() if key in known})
