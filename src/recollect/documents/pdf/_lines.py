"""Segments on one height, put together to lines, and lines to columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from recollect.documents.ocr.readings import PageReading
from recollect.documents.pdf._words import HYPHEN, RIGHT_TO_LEFT, UNORDERED, UNSPACED, Segment, Turn

#: A value as tables have it: amounts, shares, years, with their signs; a dash for nothing.
_NUMBER = re.compile(
    r"[\s$€£¥(<>~]*[-–—−+]?\s*(?:US|C|A|HK)?[$€£¥]?\s*\(?(?:\d[\d,.’']*|\.\d+)(?:\s?/\s?\d+)?\)?"
    r"\s*(?:%|x|bps|pts?\.?|¢|million|billion)?\s*\)?\s*\*{0,3}(?:\(\w{1,2}\))?(?:\s*%)?[⁰¹²³⁴-⁹]*"
)
_NOTHING = re.compile(r"[$€£¥\s]*[-–—−]+\s*%?|[Nn]/[AaMm]|N\.?[AM]\.?|\*+|NM|nm")
_OPENING = re.compile(r"[$€£¥(\s]+")
_CLOSING = re.compile(r"[)%\s*]+|\)?\s*%|pts?\.?|bps|\)?\s?\(\w\)")
_SIGNS = frozenset("$€£¥")
_SPACE = 0.3
_FAR_SIGN = 90.0
_NEAR_SIGN = 14.0
_LONG, _WIDE_SETTING = 0.55, 1.8


def is_value(text: str) -> bool:
    """Whether a cell is a number, or the sign for none."""
    return _NUMBER.fullmatch(text) is not None or _NOTHING.fullmatch(text) is not None


@dataclass(slots=True, eq=False)
class Line:
    """Cells on one height, from left to right (from right to left where the text runs so).

    Attributes:
        cells: The segments.
        page: The page, from 1.
        region: Which column of the page; lines of one region stand below one another.
        turn: Which way it runs on the page: boxes of cells are turned so that it runs to the right.
    """

    cells: list[Segment]
    page: int = 0
    region: int = 0
    turn: Turn = 0

    @property
    def x0(self) -> float:
        """The left edge."""
        return min(cell.x0 for cell in self.cells)

    @property
    def x1(self) -> float:
        """The right edge."""
        return max(cell.x1 for cell in self.cells)

    @property
    def y0(self) -> float:
        """The lower edge of the first cell, which a raised or lowered mark does not move."""
        return self.cells[0].y0

    @property
    def y1(self) -> float:
        """The upper edge of the first cell."""
        return self.cells[0].y1

    @property
    def size(self) -> float:
        """The height of the largest cell."""
        return max(cell.size for cell in self.cells)

    @property
    def bold(self) -> bool:
        """Whether all of it is set in bold type."""
        return all(cell.bold for cell in self.cells)

    @property
    def text(self) -> str:
        """The words; cells that stand apart are separated by two spaces."""
        return "  ".join(cell.text for cell in self.cells)

    def close_up(self, width: float) -> None:
        """Makes the line one text where it is set wide rather than apart: few narrow gaps in a long line of words.

        Args:
            width: Of a full line.
        """
        if len(self.cells) < 2 or self.x1 - self.x0 < _LONG * width or self.text.count(" ") < 2 * len(self.cells):
            return
        gaps = (abs(max(one.x0, two.x0) - min(one.x1, two.x1)) for one, two in pairwise(self.cells))
        if max(gaps) > _WIDE_SETTING * self.size:
            return
        first = self.cells[0]
        text = " ".join(cell.text for cell in self.cells)
        self.cells = [Segment(text, self.x0, self.x1, first.y0, first.y1, self.bold, first.order, first.rtl)]


def lines_of(segments: Sequence[Segment]) -> list[Line]:
    """The lines that segments stand on, from top to bottom."""
    groups: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda one: -(one.y0 + one.y1)):
        for group in reversed(groups[-6:]):
            if _on_line(segment, group):
                group.append(segment)
                break
        else:
            groups.append([segment])
    lines = [Line(_cells(group)) for group in groups]
    return sorted(lines, key=lambda line: -(line.y0 + line.y1))


def _on_line(segment: Segment, group: Sequence[Segment]) -> bool:
    """Whether a segment shares more than half of the smaller height with a line, and no place with its segments."""
    anchor = max(group, key=lambda one: one.size)
    shared = min(anchor.y1, segment.y1) - max(anchor.y0, segment.y0)
    if shared <= 0.5 * min(anchor.size, segment.size):
        return False
    return all(segment.x0 >= one.x1 - 2 or segment.x1 <= one.x0 + 2 or _same_again(segment, one) for one in group)


def _same_again(segment: Segment, other: Segment) -> bool:
    """Whether a text is drawn a second time at its place, to look bold or shadowed."""
    return segment.text == other.text and abs(segment.x0 - other.x0) < 2 and abs(segment.y0 - other.y0) < 2


def _cells(group: Sequence[Segment]) -> list[Segment]:
    rtl = sum(one.rtl for one in group) > len(group) / 2
    ordered = sorted(group, key=(lambda one: -one.x1) if rtl else (lambda one: one.x0))
    cells: list[Segment] = []
    for at, segment in enumerate(ordered):
        if cells and _same_again(segment, cells[-1]):
            continue
        following = ordered[at + 1] if at + 1 < len(ordered) else None
        leads = bool(cells) and following is not None and _leads(cells[-1], segment, following)
        joint = _joint(cells[-1], segment) if cells and not leads else None
        if joint is None:
            cells.append(segment)
            continue
        before = cells[-1]
        cells[-1] = Segment(
            f"{before.text}{joint}{segment.text}",
            min(before.x0, segment.x0),
            max(before.x1, segment.x1),
            *((before.y0, before.y1) if before.size >= segment.size else (segment.y0, segment.y1)),
            before.bold and (segment.bold or segment.size < before.size),
            min(before.order, segment.order),
            before.rtl,
        )
    return cells


def _leads(before: Segment, sign: Segment, value: Segment) -> bool:
    """Whether a sign of a currency, however near to what is before it, is that of the value behind it."""
    if sign.text not in _SIGNS or sign.rtl or not is_value(value.text) or value.x0 - sign.x1 >= _FAR_SIGN:
        return False
    # "5 €" is written with a space, which is narrower than what is between columns.
    return sign.text != "€" or sign.x0 - before.x1 > _SPACE * before.size


def _joint(before: Segment, segment: Segment) -> str | None:
    """What joins two neighbours to one cell, or None: they are two."""
    gap = segment.x0 - before.x1 if not before.rtl else before.x0 - segment.x1
    if _OPENING.fullmatch(before.text) and gap < _FAR_SIGN and is_value(segment.text):
        return ""
    if _CLOSING.fullmatch(segment.text) and gap < _NEAR_SIGN and any(map(str.isdigit, before.text)):
        return ""
    size = min(before.size, segment.size)
    if gap < 0.12 * size and before.rtl == segment.rtl and not (is_value(before.text) and is_value(segment.text)):
        return ""
    return " " if gap < 0.55 * max(before.size, segment.size) else None


# Lines that were recognised on a page, as the segments that everything else is made of.

_SMALLER, _LARGER = 0.8, 1.25
_ENDS_SPLIT = re.compile(r"(?<=[^\W\d_]{2})-$")


def segments_of_reading(reading: PageReading) -> list[Segment]:
    """A segment a line; heights grow upwards, and which column comes first is for the layout to find out."""
    segments = [
        Segment(
            _ENDS_SPLIT.sub(HYPHEN, one.text),
            one.x0,
            one.x1,
            reading.height - one.y1,
            reading.height - one.y0,
            bold=False,
            order=UNORDERED,
            rtl=RIGHT_TO_LEFT.search(one.text) is not None,
        )
        for one in reading.lines
        if one.text
    ]
    _level_sizes(segments)
    for one in segments:
        if one.text == "S" and any(_is_its_value(one, other) for other in segments):
            one.text = "$"
    return segments


def _level_sizes(segments: list[Segment]) -> None:
    """Gives most lines one size: how high a recognised box is depends on the letters that stick out of it."""
    if not segments:
        return
    sizes = sorted((one.size, len(one.text)) for one in segments)
    behind, half = 0, sum(length for _, length in sizes) / 2
    usual = sizes[-1][0]
    for size, length in sizes:
        behind += length
        if behind >= half:
            usual = size
            break
    for one in segments:
        if _SMALLER * usual <= one.size <= _LARGER * usual:
            middle = (one.y0 + one.y1) / 2
            one.y0, one.y1 = middle - usual / 2, middle + usual / 2


def _is_its_value(sign: Segment, other: Segment) -> bool:
    """Whether a value stands behind what may be its sign of a currency."""
    level = abs(sign.y0 + sign.y1 - other.y0 - other.y1) < sign.size
    return level and 0 <= other.x0 - sign.x0 < _FAR_SIGN and is_value(other.text)


# The order in which the lines of a page are read: columns one after the other.
#
# Whether a gap parts columns or the cells of a table is told by the file's own order: a program writes columns one
# after the other and a table row by row. Where a page was recognised there is no such order: full lines of words are
# columns.


_LEAST_SEGMENTS = 4
_LEAST_LINES = 3
_SAME_EDGE = 4.0
_DEEPEST = 6
_INEXACT = 6.0
_FEW_VALUES, _FULL, _LEAST_SPACES = 0.1, 0.8, 3
_CHARACTERS_A_WORD = 3
_LEVEL, _LEAST_VALUES, _CAPTION = 0.3, 2, 2.5
# Beside a table, that is less clear.
_MORE_LINES = 5


def in_reading_order(segments: Sequence[Segment]) -> list[list[Line]]:
    """The lines of a page by region: within one, lines stand below one another."""
    if not segments:
        return []
    rtl = sum(one.rtl for one in segments) > len(segments) / 2
    regions = _regions(list(segments), 0, rtl=rtl)
    return [lines for one in regions if (lines := lines_of(one))]


def _regions(segments: list[Segment], depth: int, *, rtl: bool) -> list[list[Segment]]:
    if depth >= _DEEPEST or len(segments) < 2 * _LEAST_SEGMENTS:
        return [segments]
    edges = _edges(segments)
    # Rows of a table over the whole width part what is above and below; only where nothing else does.
    of_rows = _in_rows(segments)
    for edge, rows in [*((edge, frozenset[int]()) for edge in edges), *((edge, of_rows) for edge in edges if of_rows)]:
        bands = _bands(segments, edge, rows)
        if not any(parted for parted, _ in bands):
            continue
        regions: list[list[Segment]] = []
        for parted, members in bands:
            if not parted:
                regions.extend(_regions(members, depth + 1, rtl=rtl))
                continue
            sides = _sides(members, edge)
            for side in reversed(sides) if rtl else sides:
                regions.extend(_regions(side, depth + 1, rtl=rtl))
        return regions
    return [segments]


def _edges(segments: Sequence[Segment]) -> list[float]:
    """Left edges, not the leftmost, that many segments share: the likeliest first."""
    leftmost, rightmost = min(one.x0 for one in segments), max(one.x1 for one in segments)
    margin = 0.1 * (rightmost - leftmost)
    groups: list[list[float]] = []
    for x0 in sorted(one.x0 for one in segments if leftmost + margin < one.x0 < rightmost - margin):
        if groups and x0 - groups[-1][0] < _SAME_EDGE:
            groups[-1].append(x0)
        else:
            groups.append([x0])
    groups = [group for group in groups if len(group) >= _LEAST_SEGMENTS]
    return [group[0] - 1 for group in sorted(groups, key=len, reverse=True)[:4]]


def _in_rows(segments: Sequence[Segment]) -> frozenset[int]:
    """The ids of segments that a program has written as a row (a label, then values), and of the caption above it."""
    ordered = sorted((one for one in segments if one.order != UNORDERED), key=lambda one: one.order)
    found: set[int] = set()
    start = 0
    for at in range(1, len(ordered) + 1):
        if at < len(ordered) and abs(ordered[at].y0 - ordered[start].y0) < _LEVEL * ordered[start].size:
            continue
        row = ordered[start:at]
        if sum(is_value(one.text) for one in row) >= max(_LEAST_VALUES, len(row) - 1):
            found.update(map(id, row))
            above = ordered[start - 1] if start else row[0]
            if abs(above.x0 - row[0].x0) < _SAME_EDGE and 0 < above.y0 - row[0].y1 < _CAPTION * row[0].size:
                found.add(id(above))
        start = at
    return frozenset(found)


def _bands(segments: Sequence[Segment], edge: float, rows: frozenset[int]) -> list[tuple[bool, list[Segment]]]:
    """The page cut where a segment crosses the edge: whether each part is two columns, and its segments.

    Args:
        segments: Of a region.
        edge: Where a column may begin.
        rows: The ids of segments that are cut at as those are that cross.
    """
    bands: list[tuple[bool, list[Segment]]] = []
    free: list[Segment] = []
    crossing: list[Segment] = []
    for one in sorted(segments, key=lambda one: -(one.y0 + one.y1)):
        if id(one) in rows or (_starts_left(one, edge) and edge < one.x1 - 1 - _slack(one)):
            if free:
                bands.append((_are_columns(free, edge, beside_rows=bool(rows)), free))
                free = []
            crossing = bands[-1][1] if bands and not bands[-1][0] else []
            if not crossing:
                bands.append((False, crossing))
            crossing.append(one)
        else:
            free.append(one)
    if free:
        bands.append((_are_columns(free, edge, beside_rows=bool(rows)), free))
    return _merged(bands)


def _slack(one: Segment) -> float:
    """How far a segment may reach over an edge: where a line was recognised, its ends are not exact."""
    return _INEXACT if one.order == UNORDERED else 0.0


def _starts_left(one: Segment, edge: float) -> bool:
    return one.x0 < edge - _slack(one)


def _sides(members: Sequence[Segment], edge: float) -> tuple[list[Segment], list[Segment]]:
    left = [one for one in members if _starts_left(one, edge)]
    return left, [one for one in members if not _starts_left(one, edge)]


def _merged(bands: Sequence[tuple[bool, list[Segment]]]) -> list[tuple[bool, list[Segment]]]:
    merged: list[tuple[bool, list[Segment]]] = []
    for parted, members in bands:
        if merged and not parted and not merged[-1][0]:
            merged[-1] = (False, merged[-1][1] + members)
        else:
            merged.append((parted, members))
    return merged


def _are_columns(members: Sequence[Segment], edge: float, *, beside_rows: bool) -> bool:
    left, right = _sides(members, edge)
    if min(len(left), len(right)) < (_MORE_LINES if beside_rows else _LEAST_LINES):
        return False
    if beside_rows and not (_is_set_full(left) and _is_set_full(right)):
        return False
    if not all(_has_words(max(side, key=lambda one: one.x1 - one.x0).text, 2) for side in (left, right)):
        return False
    values = max(sum(is_value(one.text) for one in side) / len(side) for side in (left, right))
    if all(one.order == UNORDERED for one in members):
        return values < _FEW_VALUES and _is_set_full(left) and _is_set_full(right)
    ordered = [one.x0 >= edge for one in sorted(members, key=lambda one: one.order)]
    switches = sum(one != other for one, other in pairwise(ordered))
    return values < 0.3 and switches <= max(2, len(members) // 12)


def _has_words(text: str, spaces: int) -> bool:
    """Whether a text is so many words and one more, or as long in a script without spaces."""
    return text.count(" ") >= spaces or len(UNSPACED.findall(text)) >= _CHARACTERS_A_WORD * (spaces + 1)


def _is_set_full(side: Sequence[Segment]) -> bool:
    """Whether most lines of a column are words, and run to its end as those of paragraphs do."""
    start, end = min(one.x0 for one in side), max(one.x1 for one in side)
    full = sum(one.x1 - one.x0 >= _FULL * (end - start) and _has_words(one.text, _LEAST_SPACES) for one in side)
    return full >= len(side) / 2
