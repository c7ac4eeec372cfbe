"""Many pages of a site: followed from link to link, fetched side by side, politely, and again where that helps."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recollect import interruption
from recollect.errors import FetchError, UsageError
from recollect.familiar_names import suggesting
from recollect.fetching.client import Fetched, Fetcher, PageRequest
from recollect.fetching.sites import NOTHING, ListedPage, Robots, SiteRules, listed_pages, page_links
from recollect.fetching.urls import WebUrl, parse_url

if TYPE_CHECKING:
    from types import TracebackType


_ATTEMPTS = 3
_BACKOFF_SECONDS = 1.0

# A server that asks to be left alone for longer is left alone: another run may ask again.
_LONGEST_WAIT_SECONDS = 60.0
_LOOK_UP_SECONDS = 0.2
_HTML = ("text/html", "application/xhtml+xml")
_NOINDEX = "its author does not want it to be found (noindex)"


@suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """How far a crawl goes, and how politely.

    Attributes:
        depth: Links followed from the first page, one after the other; 0: none.
        max_pages: Pages fetched at most.
        sitemaps: Whether the pages that the site lists itself are visited too.
        subdomains: Whether links to hosts below the first page's are followed.
        below: Only pages whose path begins so.
        obey_robots: Whether pages that ``robots.txt`` excludes are left out. The pages that a crawl begins with, which
            somebody has named, are fetched all the same.
        delay_seconds: Between two requests to a host; a site may ask for more.
        at_once: Requests to a host at the same time.
    """

    depth: int = 0
    max_pages: int = 1_000
    sitemaps: bool = False
    subdomains: bool = False
    below: str = "/"
    obey_robots: bool = True
    delay_seconds: float = 0.5
    at_once: int = 2

    def checked(self) -> CrawlPlan:
        """The plan, where it can be followed.

        Raises:
            UsageError: A number is out of range, or ``below`` is no path.
        """
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise UsageError(f"{name} of a crawl lies between {least} and {most:,}, not {value!r}.")
        if not self.below.startswith("/"):
            raise UsageError(f"below is a path that begins with a slash, not {self.below!r}.")
        return self


_BOUNDS = {"depth": (0, 1_000), "max_pages": (1, 1_000_000), "delay_seconds": (0, 3_600), "at_once": (1, 64)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A page to be fetched.

    Attributes:
        request: What to ask for.
        url: In its normal form.
        depth: Links followed so far.
        named: Whether somebody asked for this very page, rather than a link.
        uri: What the page is called where it is stored already; it keeps that name, wherever its site moves it.
        found_at: Where a stored page was found, if its site moved it from there. It is asked for there once it is not
            at its own address any more, and nowhere else is it taken for another page.
    """

    request: PageRequest
    url: WebUrl
    depth: int = 0
    named: bool = False
    uri: str | None = None
    found_at: WebUrl | None = None
    attempt: int = 1

    @classmethod
    def of(
        cls, request: PageRequest, *, named: bool = False, uri: str | None = None, found_at: str | None = None
    ) -> Visit:
        """The visit of a request; see the attributes.

        Raises:
            FetchError: Its URL is none of the web's.
        """
        origin = None if found_at is None else parse_url(found_at)
        return cls(request=request, url=parse_url(request.url), named=named, uri=uri, found_at=origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """What came of a visit.

    Attributes:
        visit: Which.
        uri: What the page is called: as it was asked for, or where its site moved it to if nobody asked for it by name.
        fetched: The page; None where there is an error.
        error: Why there is no page. Attempts that could help have been made.
        left_out: Why its site does not want the page to be found, or not under this name; None: it may be.
    """

    visit: Visit
    uri: str
    fetched: Fetched | None = None
    error: FetchError | None = None
    left_out: str | None = None


class Politeness:
    """Turns at a host: so many at once, and so long between the beginnings of two. Safe to share between threads.

    Args:
        delay_seconds: Between two.
        at_once: How many.
        clock: Seconds that never run back.
    """

    def __init__(
        self, *, delay_seconds: float = 0.0, at_once: int = 2, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._delay_seconds = delay_seconds
        self._at_once = at_once
        self._clock = clock
        self._changed = threading.Condition()
        self._busy: dict[str, int] = {}
        self._next: dict[str, float] = {}

    def turn(self, host: str, *, delay_seconds: float = 0.0) -> _Turn:
        """Waits for a turn at ``host``, which ends with the context; ``delay_seconds`` where the site asks for more."""
        delay = max(delay_seconds, self._delay_seconds)
        with self._changed:
            while True:
                interruption.check()
                now = self._clock()
                early = self._next.get(host, now) - now
                if self._busy.get(host, 0) < self._at_once and early <= 0:
                    self._busy[host] = self._busy.get(host, 0) + 1
                    self._next[host] = now + delay
                    return _Turn(self, host)
                self._changed.wait(min(max(early, 0.0), _LOOK_UP_SECONDS) or _LOOK_UP_SECONDS)

    def _end(self, host: str) -> None:
        with self._changed:
            self._busy[host] -= 1
            self._changed.notify_all()


@dataclass(slots=True)
class _Turn:
    _politeness: Politeness
    _host: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._politeness._end(self._host)


class Crawl:
    """One crawl: an iterator over the pages visited, as they come.

    Args:
        fetcher: Fetches.
        starts: What is visited first.
        plan: How far it goes.
        known: Gives what to ask for a page with, for one that was fetched before (its etag); None: as new.
        robots: The rules of sites; None: they are asked for.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        starts: Iterable[Visit],
        plan: CrawlPlan,
        *,
        known: Callable[[str], PageRequest | None] = lambda _: None,
        robots: Robots | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._plan = plan
        self._known = known
        self._robots = robots or Robots(fetcher)
        self._politeness = Politeness(delay_seconds=plan.delay_seconds, at_once=plan.at_once)
        self._starts = list(starts)
        self._hosts = {start.url.host for start in self._starts}
        self._origin = self._starts[0].url if self._starts else None
        self._waiting: deque[Visit] = deque()
        self._later: list[tuple[float, int, Visit]] = []
        self._seen: set[WebUrl] = set()
        self._running: dict[Future[Fetched], Visit] = {}
        self._begun = 0
        self.excluded = 0
        self.problems: list[FetchError] = []

    def pages(self) -> Iterator[Visited]:
        """Visit the pages; each is told once."""
        for start in self._starts:
            self._add(start)
        if self._plan.sitemaps and self._origin is not None:
            self._add_listed(self._origin)
        workers = ThreadPoolExecutor(max(self._plan.at_once, 1), thread_name_prefix="recollect-fetch")
        try:
            while self._waiting or self._running or self._later:
                interruption.check()
                self._begin(workers)
                yield from self._finished()
        finally:
            workers.shutdown(wait=True, cancel_futures=True)

    def _begin(self, workers: ThreadPoolExecutor) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._waiting.appendleft(heapq.heappop(self._later)[2])
        while self._waiting and len(self._running) < 2 * self._plan.at_once:
            visit = self._waiting.popleft()
            context = copy_context()
            self._running[workers.submit(context.run, self._fetch, visit)] = visit

    def _fetch(self, visit: Visit) -> Fetched:
        rules = self._allowing(visit, visit.url)
        delay = 0.0 if rules is None else rules.delay_seconds
        with self._politeness.turn(visit.url.host, delay_seconds=delay):
            fetched = self._fetcher.fetch(visit.request)
        if fetched.url != visit.url:
            self._allowing(visit, fetched.url)
        return fetched

    def _allowing(self, visit: Visit, url: WebUrl) -> SiteRules | None:
        """The rules of an address, which allow it; None: they are not asked."""
        if not self._plan.obey_robots:
            return None
        rules = self._robots.rules(url)
        if not visit.named and not rules.allows(url):
            raise _ExcludedError(for_now=rules is NOTHING)
        return rules

    def _finished(self) -> Iterator[Visited]:
        if not self._running:
            if self._later:
                time.sleep(min(_LOOK_UP_SECONDS, max(0.0, self._later[0][0] - time.monotonic())))
            return
        done, _ = wait(self._running, timeout=_LOOK_UP_SECONDS, return_when=FIRST_COMPLETED)
        for future in done:
            visit = self._running.pop(future)
            try:
                fetched = future.result()
            except _ExcludedError as excluded:
                yield from self._excluded(visit, for_now=excluded.for_now)
            except FetchError as error:
                if not self._put_off(visit, error):
                    yield Visited(visit=visit, uri=visit.uri or str(visit.url), error=error)
            else:
                yield from self._told(visit, fetched)

    def _excluded(self, visit: Visit, *, for_now: bool) -> Iterator[Visited]:
        if visit.uri is None:
            self.excluded += 1
        elif for_now:
            error = FetchError(str(visit.url), "its site cannot say now what may be visited", retryable=True)
            yield Visited(visit=visit, uri=visit.uri, error=error)
        else:
            yield Visited(visit=visit, uri=visit.uri, left_out="robots.txt excludes it")

    def _told(self, visit: Visit, fetched: Fetched) -> Iterator[Visited]:
        uri = visit.uri or str(visit.url)
        if fetched.url != visit.url:
            if not visit.named and str(fetched.url) != visit.uri:
                known = fetched.url in self._seen
                if known or not self._in_reach(fetched.url):
                    yield from self._elsewhere(visit, fetched.url, known=known)
                    return
                uri = visit.uri or str(fetched.url)
            elif visit.named:
                self._join(visit.url, fetched.url)
            self._seen.add(fetched.url)
        kind = fetched.content_type.split(";")[0].strip().lower()
        unwanted = None if fetched.indexed or visit.named else _NOINDEX
        if fetched.unchanged or kind not in _HTML:
            yield Visited(visit=visit, uri=uri, fetched=fetched, left_out=unwanted)
            return
        found = page_links(fetched.body, fetched.url)
        if visit.depth < self._plan.depth:
            for link in found.links:
                if self._in_reach(link):
                    self._add(self._visit(link, visit.depth + 1))
        unwanted = unwanted if found.indexed or visit.named else _NOINDEX
        yield Visited(visit=visit, uri=uri, fetched=fetched, left_out=unwanted)

    def _elsewhere(self, visit: Visit, url: WebUrl, *, known: bool) -> Iterator[Visited]:
        """A link that leads to a page which is visited anyway, or out of the site."""
        if visit.uri is None:
            self.excluded += 1
        elif known:
            yield Visited(visit=visit, uri=visit.uri, left_out=f"its site has moved it to {url}, which is read too")
        else:
            # It may be a page to log in on, which says nothing of this one.
            error = FetchError(str(visit.url), f"redirects out of its site, to {url.authority}")
            yield Visited(visit=visit, uri=visit.uri, error=error)

    def _join(self, asked: WebUrl, url: WebUrl) -> None:
        """A site that calls itself with ``www.``, or without, is the site that was named."""
        if _same_site(asked, url):
            self._hosts.add(url.host)

    def _put_off(self, visit: Visit, error: FetchError) -> bool:
        """Whether a page is asked for again later, or elsewhere."""
        if error.gone and visit.found_at is not None:
            there = PageRequest(url=str(visit.found_at))
            self._waiting.append(replace(visit, request=there, url=visit.found_at, found_at=None, attempt=1))
            return True
        pause = max(_BACKOFF_SECONDS * 4.0 ** (visit.attempt - 1), error.retry_after_seconds or 0.0)
        if not error.retryable or visit.attempt >= _ATTEMPTS or pause > _LONGEST_WAIT_SECONDS:
            return False
        again = replace(visit, attempt=visit.attempt + 1)
        heapq.heappush(self._later, (time.monotonic() + pause, id(again), again))
        return True

    def _add_listed(self, site: WebUrl) -> None:
        rules = self._robots.rules(site)
        for listed in listed_pages(self._fetcher, site, rules.sitemaps, limit=self._plan.max_pages):
            if isinstance(listed, ListedPage):
                if self._in_reach(listed.url):
                    self._add(self._visit(listed.url, self._plan.depth))
            else:
                self.problems.append(listed)

    def _visit(self, url: WebUrl, depth: int) -> Visit:
        return Visit(request=self._known(str(url)) or PageRequest(url=str(url)), url=url, depth=depth)

    def _add(self, visit: Visit) -> None:
        if visit.url not in self._seen and self._begun < self._plan.max_pages:
            self._seen.add(visit.url)
            if visit.found_at is not None:
                self._seen.add(visit.found_at)
            self._begun += 1
            self._waiting.append(visit)

    def _in_reach(self, url: WebUrl) -> bool:
        if not url.path.startswith(self._plan.below):
            return False
        if url.host in self._hosts:
            # Another port of the same host is another service.
            return any(_same_site(start.url, url) for start in self._starts)
        return self._plan.subdomains and any(url.host.endswith(f".{host}") for host in self._hosts)


def _same_site(one: WebUrl, other: WebUrl) -> bool:
    return one.host.removeprefix("www.") == other.host.removeprefix("www.") and _same_service(one, other)


def _same_service(one: WebUrl, other: WebUrl) -> bool:
    standard = {("http", 80), ("https", 443)}
    return one.port == other.port or ({(one.scheme, one.port), (other.scheme, other.port)} <= standard)


class _ExcludedError(Exception):
    """The site does not want the page to be visited; ``for_now``: it cannot say what it allows."""

    def __init__(self, *, for_now: bool) -> None:
        super().__init__()
        self.for_now = for_now
