"""What a site says of itself: where its pages lead, what programs may visit (``robots.txt``), what it lists."""

from __future__ import annotations

import html
import io
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.errors import AddressRefusedError, FetchError
from recollect.fetching.client import BrokenCodingError, Fetcher, PageRequest, TooLargeError, read_limited
from recollect.fetching.urls import WebUrl, join_url

# Where a page leads, and whether its author wants it listed.


# Bounded in every repetition: a page is a stranger's.
_TAG = re.compile(r"<(a|area|base|meta)\s([^<>]{1,8192})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z-]{1,40})\s{0,20}=\s{0,20}(?:"([^"]{0,4096})"|'([^']{0,4096})'|([^\s"'>]{1,4096}))"""
)
_MOST_PAGE_BYTES = 8 << 20
_MAX_LINKS = 20_000


@dataclass(frozen=True, slots=True)
class PageLinks:
    """What a page says of itself and others.

    Attributes:
        links: The pages it leads to, each once, in order.
        indexed: False: its author does not want it to be found by searches (``noindex``).
    """

    links: tuple[WebUrl, ...] = ()
    indexed: bool = True


def page_links(body: bytes, url: WebUrl, *, encoding: str | None = None) -> PageLinks:
    """The links of a web page; those marked ``nofollow`` are left out.

    Args:
        body: The page.
        url: Where it came from: what its links are relative to.
        encoding: As its server says.
    """
    try:
        text = body[:_MOST_PAGE_BYTES].decode(encoding or "utf-8", "replace")
    except LookupError:
        text = body[:_MOST_PAGE_BYTES].decode("utf-8", "replace")
    base, indexed, followed = url, True, True
    found: dict[WebUrl, None] = {}
    for match in _TAG.finditer(_without_comments(text)):
        values = _attributes(match[2])
        match match[1].lower():
            case "meta" if values.get("name", "").lower() == "robots":
                said = set(values.get("content", "").lower().replace(",", " ").split())
                indexed = indexed and not said & {"noindex", "none"}
                followed = followed and not said & {"nofollow", "none"}
            case "base" if base is url:
                base = _joined(url, values.get("href", "")) or url
            case "a" | "area" if "nofollow" not in values.get("rel", "").lower().split():
                link = _joined(base, values.get("href", ""))
                if link is not None:
                    found[link] = None
            case _:
                pass
        if len(found) >= _MAX_LINKS:
            break
    return PageLinks(tuple(found) if followed else (), indexed)


def _without_comments(text: str) -> str:
    kept: list[str] = []
    start = 0
    while (comment := text.find("<!--", start)) >= 0:
        kept.append(text[start:comment])
        end = text.find("-->", comment + 4)
        if end < 0:
            return "".join(kept)
        start = end + 3
    return "".join([*kept, text[start:]])


def _attributes(text: str) -> dict[str, str]:
    return {
        match[1].lower(): html.unescape(next((one for one in match.groups()[1:] if one is not None), ""))
        for match in reversed(list(_ATTRIBUTE.finditer(text)))
    }


def _joined(base: WebUrl, reference: str) -> WebUrl | None:
    reference = reference.strip()
    if not reference or reference.startswith("#"):
        return None
    try:
        return join_url(base, reference)
    except FetchError:
        return None


# What sites ask of programs that visit them (RFC 9309), asked once a site.


_MOST_ROBOTS_BYTES = 4 << 20

# What a program must read at least; the rest of a longer file is left.
_READ_BYTES = 512_000
_KEPT_SECONDS = 24 * 3600.0
_KEPT_SITES = 1_000
_LONGEST_DELAY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SiteRules:
    """A site's rules for one program.

    Attributes:
        delay_seconds: Between two requests, as the site asks; 0: it does not say.
        sitemaps: Addresses of its sitemaps, as they stand there.
    """

    delay_seconds: float = 0.0
    sitemaps: tuple[str, ...] = ()
    _parsed: Any = None
    _agent: str = ""
    _nothing: bool = False

    def allows(self, url: WebUrl) -> bool:
        """Whether the page may be visited."""
        if self._nothing:
            return False
        return self._parsed is None or bool(self._parsed.can_fetch(str(url), self._agent))


#: Of a site that cannot say what it allows now: nothing may be visited until it can.
NOTHING = SiteRules(_nothing=True)


class Robots:
    """The rules of sites, kept for a day. Safe to share between threads.

    Args:
        fetcher: Fetches them, as whom it says.
        clock: Seconds that never run back.
    """

    def __init__(self, fetcher: Fetcher, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, int], tuple[float, SiteRules]] = OrderedDict()

    def rules(self, url: WebUrl) -> SiteRules:
        """The rules of a page's site."""
        with self._lock:
            kept = self._kept.get(url.origin)
        if kept is not None and self._clock() - kept[0] < _KEPT_SECONDS:
            return kept[1]
        rules = self._asked(url)
        if rules is not NOTHING:
            with self._lock:
                self._kept[url.origin] = (self._clock(), rules)
                while len(self._kept) > _KEPT_SITES:
                    self._kept.popitem(last=False)
        return rules

    def _asked(self, url: WebUrl) -> SiteRules:
        try:
            fetched = self._fetcher.fetch(PageRequest(url=str(url.at("/robots.txt"))), max_bytes=_MOST_ROBOTS_BYTES)
        except AddressRefusedError:
            return SiteRules()  # it leads nowhere that may be asked; pages are checked one by one anyway
        except FetchError as error:
            # Without the file everything is allowed; without an answer, nothing.
            return NOTHING if error.retryable else SiteRules()
        return read_rules(fetched.body, self._fetcher.user_agent)


def read_rules(data: bytes, user_agent: str) -> SiteRules:
    """The rules that a ``robots.txt`` has for a program."""
    from protego import Protego

    parsed = Protego.parse(data[:_READ_BYTES].decode("utf-8-sig", "replace"))
    agent = user_agent.partition("/")[0].split(" ")[0] or user_agent
    rate = parsed.request_rate(agent)
    delay = float(parsed.crawl_delay(agent) or 0.0)
    if rate is not None and rate.requests:
        delay = max(delay, rate.seconds / rate.requests)
    return SiteRules(min(max(delay, 0.0), _LONGEST_DELAY_SECONDS), tuple(parsed.sitemaps), parsed, agent)


# Sitemaps: the pages that a site lists itself, in XML, as a feed or line by line, packed or not.


# As the protocol has it: 50 MB unpacked and 50,000 addresses.
_MOST_SITEMAP_BYTES = 52_428_800
_MAX_ENTRIES = 50_000
_MAX_SITEMAPS = 1_000
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page of a sitemap.

    Attributes:
        url: Its address.
        last_modified: When it changed last, as it stands there; None: it does not say.
    """

    url: WebUrl
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one file lists.

    Attributes:
        pages: Addresses as they stand there, with when each changed last.
        sitemaps: Addresses of further sitemaps.
    """

    pages: tuple[tuple[str, str | None], ...] = ()
    sitemaps: tuple[str, ...] = ()


def read_sitemap(data: bytes) -> Sitemap:
    """Reads a sitemap, an index of sitemaps, a feed, or a text with an address a line.

    Raises:
        FetchError: It unpacks to more than a sitemap may have, or is damaged.
    """
    if data.startswith(_GZIP):
        try:
            data = read_limited([data], coding="gzip", max_bytes=_MOST_SITEMAP_BYTES)
        except TooLargeError:
            raise FetchError("sitemap", f"unpacks to more than {_MOST_SITEMAP_BYTES:,} bytes") from None
        except BrokenCodingError as error:
            raise FetchError("sitemap", str(error)) from error
    if b"<" not in data[:1024]:
        lines = data.decode("utf-8-sig", "replace").split()
        return Sitemap(tuple((line, None) for line in lines[:_MAX_ENTRIES] if "://" in line))
    pages: list[tuple[str, str | None]] = []
    sitemaps: list[str] = []
    for kind, address, changed in _entries(data):
        if len(pages) + len(sitemaps) >= _MAX_ENTRIES:
            break
        if kind == "sitemap":
            sitemaps.append(address)
        else:
            pages.append((address, changed))
    return Sitemap(tuple(pages), tuple(sitemaps))


def _entries(data: bytes) -> Iterator[tuple[str, str, str | None]]:
    """Each entry's kind, address and time. Nothing that the file names is loaded or expanded."""
    from lxml import etree

    events = etree.iterparse(
        io.BytesIO(data),
        events=("end",),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    address, changed = "", None
    try:
        for _, element in events:
            name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
            text = (element.text or "").strip()
            if name == "loc":
                address = address or text
            elif name == "link" and _is_entry(element.getparent()):
                address = address or text or element.get("href", "").strip()
            elif name in {"lastmod", "updated", "pubDate"}:
                changed = text or None
            elif name in {"url", "sitemap", "item", "entry"}:
                if address:
                    yield name, address, changed
                address, changed = "", None
                # What has been read is let go of, or a large file would be a large tree.
                element.clear()
    except etree.XMLSyntaxError:
        return


def _is_entry(element: Any) -> bool:  # noqa: ANN401 - an element of lxml, which has no types
    return element is not None and isinstance(element.tag, str) and element.tag.rpartition("}")[2] in {"item", "entry"}


def listed_pages(
    fetcher: Fetcher, site: WebUrl, addresses: Sequence[str], *, limit: int
) -> Iterator[ListedPage | FetchError]:
    """The pages that sitemaps list, those of further sitemaps included; a sitemap that cannot be read is told.

    Args:
        fetcher: Fetches them.
        site: What relative addresses are relative to.
        addresses: Of the sitemaps; none: where they usually are.
        limit: Pages at most.
    """
    waiting = list(addresses) or [str(site.at("/sitemap.xml"))]
    seen: set[str] = set()
    told = 0
    while waiting and len(seen) < _MAX_SITEMAPS and told < limit:
        address = waiting.pop(0)
        try:
            url = join_url(site, address)
            if str(url) in seen:
                continue
            seen.add(str(url))
            found = read_sitemap(fetcher.fetch(str(url), max_bytes=_MOST_SITEMAP_BYTES).body)
        except FetchError as error:
            if addresses or not error.gone:
                yield FetchError(address[:200], error.reason, status=error.status, retryable=error.retryable)
            continue
        waiting += found.sitemaps
        for page, changed in found.pages[: limit - told]:
            try:
                yield ListedPage(join_url(url, page), changed)
            except FetchError:
                continue
            told += 1
