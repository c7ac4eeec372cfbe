"""Sitemaps: the pages that a site lists itself, in XML, as a feed or line by line, packed or not."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.errors import FetchError
from recollect.fetching.client import BrokenCodingError, Fetcher, TooLargeError, read_limited
from recollect.fetching.urls import WebUrl, join_url

# As the protocol has it: 50 MB unpacked and 50,000 addresses.
_MAX_BYTES = 52_428_800
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
            data = read_limited([data], coding="gzip", max_bytes=_MAX_BYTES)
        except TooLargeError:
            raise FetchError("sitemap", f"unpacks to more than {_MAX_BYTES:,} bytes") from None
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
            found = read_sitemap(fetcher.fetch(str(url), max_bytes=_MAX_BYTES).body)
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
