"""Where the characters of a document stand: under which headings, on which page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recollect.model._line_boxes import LineBox, PackedLines, packed
from recollect.model.record import Public, Record

_PARTS = 10_000


@dataclass(frozen=True, slots=True)
class Heading(Record):
    """A heading inside a document's content.

    Attributes:
        level: 1 for the outermost; deeper headings have larger numbers.
        title: The heading's words, without markup.
        start_offset: Character offset of the heading's first character (markup included).
        end_offset: Character offset just behind the heading's line.
    """

    level: Public[int]
    title: Public[str]
    start_offset: Public[int]
    end_offset: Public[int]


@dataclass(frozen=True, slots=True)
class PageBox(Record):
    """A rectangle on a page; the edges are those of `LineBox`.

    Attributes:
        page: From 1.
        left: The left edge.
        top: The upper edge.
        right: The right edge.
        bottom: The lower edge.
    """

    page: Public[int]
    left: Public[float]
    top: Public[float]
    right: Public[float]
    bottom: Public[float]


@dataclass(frozen=True, slots=True)
class PageSpan(Record):
    """The characters of a document's content that stand on one page.

    Attributes:
        number: From 1.
        start_offset: Of the page's first character.
        end_offset: Just behind its last one.
        lines: Where its lines stand on the page, of formats that tell it.
    """

    number: Public[int]
    start_offset: Public[int]
    end_offset: Public[int]
    lines: Sequence[LineBox] = ()

    def as_list(self) -> list[Any]:
        """As it is stored: what is known of its lines as one short text."""
        span = [self.number, self.start_offset, self.end_offset]
        return [*span, packed(self.lines, self.start_offset)] if self.lines else span

    @classmethod
    def of_list(cls, stored: Sequence[Any]) -> PageSpan:
        """What `as_list` gave, or lines one by one: start, end and the four edges in ten thousandths.

        Raises:
            ValueError: It is something else. (So is TypeError.)
        """
        number, start, end, *more = stored
        lines = more[0] if more else ()
        if isinstance(lines, str):
            return cls(number, start, end, PackedLines(lines, start))
        return cls(
            number,
            start,
            end,
            tuple(LineBox(begin, stop, *(edge / _PARTS for edge in box)) for begin, stop, *box in lines),
        )


def _edges(one: LineBox) -> tuple[float, float, float, float]:
    return one.left, one.top, one.right, one.bottom


@dataclass(frozen=True, slots=True)
class PassagePart(Record):
    """Characters of a passage that stand under the same headings, on the same page.

    Attributes:
        start_offset: Where they begin in the document's content.
        end_offset: Just behind the last one.
        section: Titles of the headings they stand under, joined by `` > ``; None outside any section.
        page: From 1; None where the format has no pages.
    """

    start_offset: Public[int]
    end_offset: Public[int]
    section: Public[str | None]
    page: Public[int | None]


@dataclass(frozen=True, slots=True)
class Outline:
    """The headings and pages of a document, or as many of them as tell where a span of it stands.

    Attributes:
        headings: In order of ``start_offset``.
        pages: In order of ``number``.
    """

    headings: tuple[Heading, ...] = ()
    pages: tuple[PageSpan, ...] = ()

    def section_path(self, offset: int) -> tuple[str, ...]:
        """Titles of the headings that the character at ``offset`` stands under, outermost first."""
        return section_path(self.headings, offset)

    def page_at(self, offset: int) -> int | None:
        """The number of the page that the character at ``offset`` stands on, or None without pages."""
        return page_at(self.pages, offset)

    def boxes(self, start: int, end: int) -> tuple[PageBox, ...]:
        """Where the lines that hold the characters from ``start`` to ``end`` stand, as far as that is known."""
        return tuple(
            PageBox(page.number, *_edges(line))
            for page in self.pages
            if page.start_offset < end and page.end_offset > start
            for line in page.lines
            if line.start_offset < end and line.end_offset > start
        )

    def parts(self, start: int, end: int) -> tuple[PassagePart, ...]:
        """The characters from ``start`` to ``end``, cut where another section or page begins."""
        begins = [start, *(heading.start_offset for heading in self.headings)]
        begins += [page.start_offset for page in self.pages]
        cuts = sorted({begin for begin in begins if start <= begin < end})
        parts: list[PassagePart] = []
        for begin, stop in zip(cuts, [*cuts[1:], end], strict=True):
            section, page = " > ".join(self.section_path(begin)) or None, self.page_at(begin)
            if parts and (parts[-1].section, parts[-1].page) == (section, page):
                parts[-1] = PassagePart(parts[-1].start_offset, stop, section, page)
            else:
                parts.append(PassagePart(begin, stop, section, page))
        return tuple(parts)


def section_path(headings: Sequence[Heading], offset: int) -> tuple[str, ...]:
    """Titles of the headings that the character at ``offset`` stands under, outermost first.

    A heading's own characters belong to its section.
    """
    last = bisect_right(headings, offset, key=lambda heading: heading.start_offset)
    path: list[Heading] = []
    for heading in reversed(headings[:last]):
        if not path or heading.level < path[-1].level:
            path.append(heading)
            if heading.level <= 1:
                break
    return tuple(heading.title for heading in reversed(path))


def page_at(pages: Sequence[PageSpan], offset: int) -> int | None:
    """The number of the page that the character at ``offset`` stands on, or None without pages."""
    index = bisect_right(pages, offset, key=lambda page: page.start_offset)
    return pages[index - 1].number if index else None
