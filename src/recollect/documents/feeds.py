"""RSS and Atom feeds: one text, a heading an entry."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from recollect.documents._html import parse_markup
from recollect.documents._metadata import parse_time
from recollect.documents._packed import parse_tree
from recollect.documents._parsed import Parsed, TextBuilder, one_line
from recollect.documents._text import decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

_ROOT = re.compile(rb"<(?:\w+:)?(rss|feed|RDF)[\s>]")
_MARKUP = re.compile(r"<[a-zA-Z!/]")
_MOST_ENTRIES = 10_000


def is_feed(data: bytes) -> bool:
    """Whether an XML file is a feed, by its first element."""
    start = data[:4096]
    root = re.search(rb"<[\w:]+", start)
    return root is not None and _ROOT.match(start, root.start()) is not None


def parse_feed(data: bytes) -> Parsed:
    """A feed's title and entries, newest as they come; what is no feed after all is read as it stands.

    Nothing that the file names is loaded, and none of its entities is expanded.
    """
    root = parse_tree(data)
    if root is None:
        return Parsed(content=decode(data))
    channel = next((one for one in root.iter() if _name(one) == "channel"), root)
    title, written = _own_text(channel, "title"), _time(channel)
    builder = TextBuilder()
    builder.heading(1, title)
    _paragraphs(builder, _own_text(channel, "description", "subtitle"))
    for number, entry in enumerate(_entries(root)):
        if number == _MOST_ENTRIES:
            break
        builder.heading(2, _own_text(entry, "title") or f"Entry {number + 1}")
        _paragraphs(builder, _own_text(entry, "encoded", "content") or _own_text(entry, "description", "summary"))
    content, headings = builder.result()
    return Parsed(content=content or decode(data), headings=headings, title=one_line(title) or None, event_time=written)


def _entries(root: Any) -> Iterator[Any]:  # noqa: ANN401 - an element of lxml, which has no types
    return (one for one in root.iter() if _name(one) in {"item", "entry"})


def _paragraphs(builder: TextBuilder, text: str) -> None:
    if _MARKUP.search(text):
        parsed = parse_markup(text)
        # Headings within an entry would cut it off from its title.
        builder.paragraph("\n\n".join(line.lstrip("# ") for line in parsed.content.split("\n\n")))
    else:
        builder.paragraph(text)


def _own_text(element: Any, *names: str) -> str:  # noqa: ANN401
    for name in names:
        for child in element:
            if _name(child) == name:
                return _inner(child)
    return ""


def _inner(element: Any) -> str:  # noqa: ANN401
    if len(element):  # Atom's type="xhtml"
        from lxml import etree

        return str(etree.tostring(element, encoding="unicode", with_tail=False))
    return (element.text or "").strip()


def _time(channel: Any) -> datetime | None:  # noqa: ANN401
    written = _own_text(channel, "updated", "lastBuildDate", "pubDate", "date")
    try:
        return parse_time(written or None) or parse_time(parsedate_to_datetime(written).isoformat())
    except ValueError:
        return None


def _name(element: Any) -> str:  # noqa: ANN401
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
