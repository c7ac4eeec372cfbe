"""The order in which the lines of a page are read: columns one after the other.

Whether a gap parts columns or the cells of a table is told by the file's own order: a program writes columns one after
the other and a table row by row. Where a page was recognised there is no such order: full lines of words are columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from recollect.documents.pdf._lines import Line, is_value, lines_of
from recollect.documents.pdf._words import UNORDERED, UNSPACED, Segment

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
