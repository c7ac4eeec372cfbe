"""A document's headings, found in its text where nobody found them before."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recollect.chunking._boundaries import fence_spans
from recollect.model import Heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.chunking._boundaries import Boundaries, SeparatorBoundaries
    from recollect.model import Document

_ATX = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+([^\r\n]*))?(?=\r?$)", re.MULTILINE)
# What a Markdown text says of itself at its top, and the space behind it.
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n\s*|\Z)")
_CLOSING = re.compile(r"(?:^|[ \t])#+[ \t]*$")


def headings_of(document: Document, *, expect_markdown: bool) -> Sequence[Heading]:
    """The document's own headings, or else those of its Markdown.

    Args:
        document: Any document.
        expect_markdown: Look for ``#`` lines whatever the MIME type says: a strategy that cuts by structure
            serves documents made by hand, too.
    """
    if document.headings or not (expect_markdown or document.mime_type == "text/markdown"):
        return document.headings
    return markdown_headings(document.content)


def section_starts(
    content: str, headings: Sequence[Heading], boundaries: Boundaries | SeparatorBoundaries
) -> list[int]:
    """Where the document's sections begin: its headings of the first two levels that it has.

    Headings without text between them stay together, so a section can begin with a deeper one. Front matter is no
    section: it belongs to the one below it.
    """
    matter = _FRONT_MATTER.match(content)
    top = matter.end() if matter else 0
    levels = sorted({heading.level for heading in headings})[:2]
    free = set(boundaries.headings)
    starts: set[int] = set()
    first = 0
    for heading in headings:
        first = heading.start_offset if heading.start_offset in free else first
        if heading.level in levels:
            starts.add(first)
    return sorted(start for start in starts if start > top)


def markdown_headings(content: str) -> tuple[Heading, ...]:
    """The ATX headings outside fenced code (CommonMark 0.31, section 4.2)."""
    fences = iter(fence_spans(content))
    fence = next(fences, None)
    found: list[Heading] = []
    for match in _ATX.finditer(content):
        while fence and fence[1] <= match.start():
            fence = next(fences, None)
        if fence and fence[0] <= match.start():
            continue
        title = _CLOSING.sub("", match.group(2) or "").strip()
        start = match.start(1)
        found.append(Heading(len(match.group(1)), title, start, match.end()))
    return tuple(found)
