"""The outline of a document: headings, pages, and where lines stand on them."""

from __future__ import annotations

import base64
import binascii
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from recollect.model.record import Public, Record

# The boxes of a page's lines in a few bytes each: a long document has tens of thousands of them.


_MOST_BYTES = 2_000_000
_NUMBERS = 6


@dataclass(frozen=True, slots=True)
class LineBox:
    """Where a line of a page's text stands on the page.

    Attributes:
        start_offset: Of the line's first character in the document's content.
        end_offset: Just behind its last one.
        left: The left edge, as a share of the page's width, 0 to 1.
        top: The upper edge, as a share of its height from above.
        right: The right edge.
        bottom: The lower edge.
    """

    start_offset: int
    end_offset: int
    left: float
    top: float
    right: float
    bottom: float


class PackedLines(Sequence[LineBox]):
    """Lines as `packed` wrote them, which are read when somebody asks for one.

    Args:
        text: From `packed`.
        start_offset: Of their page.
    """

    __slots__ = ("_lines", "start_offset", "text")

    def __init__(self, text: str, start_offset: int) -> None:
        self.text = text
        self.start_offset = start_offset
        self._lines: tuple[LineBox, ...] | None = None

    def _read(self) -> tuple[LineBox, ...]:
        if self._lines is None:
            self._lines = tuple(_unpacked(self.text, self.start_offset))
        return self._lines

    @overload
    def __getitem__(self, index: int) -> LineBox: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[LineBox]: ...

    def __getitem__(self, index: int | slice) -> LineBox | Sequence[LineBox]:
        """One line or several.

        Raises:
            ValueError: The text is not one of `packed`. (So it is wherever lines are read.)
        """
        return self._read()[index]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._read())

    def __bool__(self) -> bool:
        """Whether there are any; told without reading them."""
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        """Whether the other are the same lines."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """That of a tuple of the lines."""
        return hash(self._read())

    def __repr__(self) -> str:
        """As of a tuple of the lines."""
        return repr(self._read())


def packed(lines: Sequence[LineBox], start_offset: int) -> str:
    """Lines as a short text; edges in ten thousandths.

    Each number is told by its distance to the one before it of its kind, which mostly is small or the same again.

    Args:
        lines: Of one page.
        start_offset: Of the page.
    """
    if isinstance(lines, PackedLines) and lines.start_offset == start_offset:
        return lines.text
    numbers: list[int] = []
    end, left, right, bottom = start_offset, 0, 0, 0
    for one in lines:
        edges = [round(edge * _PARTS) for edge in (one.left, one.top, one.right, one.bottom)]
        numbers += (one.start_offset - end, one.end_offset - one.start_offset)
        numbers += (edges[0] - left, edges[1] - bottom, edges[2] - right, edges[3] - edges[1])
        end, (left, _, right, bottom) = one.end_offset, edges
    if not numbers:
        return ""
    return base64.b64encode(zlib.compress(bytes(_varints(numbers)), 9)).decode().rstrip("=")


def _unpacked(text: str, start_offset: int) -> Iterator[LineBox]:
    numbers = _numbers(text)
    end, left, right, bottom = start_offset, 0, 0, 0
    for at in range(0, len(numbers), _NUMBERS):
        apart, length, *edges = numbers[at : at + _NUMBERS]
        start = end + apart
        end = start + length
        left, top, right = left + edges[0], bottom + edges[1], right + edges[2]
        bottom = top + edges[3]
        yield LineBox(start, end, left / _PARTS, top / _PARTS, right / _PARTS, bottom / _PARTS)


def _varints(numbers: Iterable[int]) -> Iterator[int]:
    """Whole numbers as bytes of seven bits each, the lowest first; the lowest bit of all is the sign."""
    for number in numbers:
        rest = number << 1 if number >= 0 else (-number << 1) - 1
        while rest > 0x7F:
            yield rest & 0x7F | 0x80
            rest >>= 7
        yield rest


def _numbers(text: str) -> list[int]:
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text + "=" * (-len(text) % 4), validate=True), _MOST_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError("is not what lines of a page are packed to") from error
    numbers: list[int] = []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(-(number + 1 >> 1) if number & 1 else number >> 1)
            number = shift = 0
        elif shift > 63:
            raise ValueError("is not what lines of a page are packed to: a number is too large")
    if shift or len(numbers) % _NUMBERS or not unpacking.eof:
        raise ValueError("is not what lines of a page are packed to: it breaks off")
    return numbers


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


def outline_of(parts: tuple[PassagePart, ...]) -> Outline:
    """The headings and pages that the parts of a passage tell of."""
    headings = tuple(Heading(1, one.section or "", one.start_offset, one.start_offset) for one in parts)
    pages = tuple(PageSpan(one.page, one.start_offset, one.end_offset) for one in parts if one.page is not None)
    return Outline(headings=headings if any(one.section for one in parts) else (), pages=pages)
