"""Where a page leads, and whether its author wants it listed."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from recollect.errors import FetchError
from recollect.fetching.urls import WebUrl, join_url

# Bounded in every repetition: a page is a stranger's.
_TAG = re.compile(r"<(a|area|base|meta)\s([^<>]{1,8192})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z-]{1,40})\s{0,20}=\s{0,20}(?:"([^"]{0,4096})"|'([^']{0,4096})'|([^\s"'>]{1,4096}))"""
)
_MAX_BYTES = 8 << 20
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
        text = body[:_MAX_BYTES].decode(encoding or "utf-8", "replace")
    except LookupError:
        text = body[:_MAX_BYTES].decode("utf-8", "replace")
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
