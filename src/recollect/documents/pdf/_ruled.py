"""Tables that are ruled: lines or boxes around their cells say which text stands in which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from recollect.documents.pdf._grid import (
    SEPARATOR,
    YEAR,
    Column,
    Row,
    Table,
    runs_leftwards,
    segment_in_mirror,
    turn_back,
)
from recollect.documents.pdf._lines import Line, is_value, lines_of
from recollect.documents.pdf._tables import UNITS
from recollect.documents.pdf._words import Segment

_TOUCHING = 2.5
_LEAST_SIDE = 6.0
_LEAST_UPRIGHT = 3
# Of a drawing, not of tables; each is compared with all others.
_MOST_EDGES = 1_000
_SAME_PLACE = 1.5
#: Stands for a table where the lines of its page are put in order, with what is in it; no text of a file begins so.
MARK = "\x1etable "


@dataclass(frozen=True, slots=True)
class Edge:
    """A line drawn on a page, from ``start`` to ``end`` at a place: a height where it is level, else a distance."""

    level: bool
    start: float
    end: float
    place: float


def take_tables(segments: list[Segment], edges: Sequence[Edge], page: int) -> tuple[list[Segment], dict[str, Table]]:
    """The segments of a page with one in place of each ruled table, and the tables by these segments' texts.

    Args:
        segments: That run from left to right.
        edges: What is drawn on the page.
        page: Its number.
    """
    tables: dict[str, Table] = {}
    edges = _merged(edges)
    upright = sum(not edge.level for edge in edges)
    if upright < _LEAST_UPRIGHT or len(edges) > _MOST_EDGES:
        return segments, tables
    for xs, ys, own in _grids(edges):
        inside = [one for one in segments if _within(one, xs, ys)]
        cut = [part for one in inside for part in _cut(one, own)]
        if not cut:
            continue
        leftwards = runs_leftwards(cut)
        if leftwards:
            xs, own, cut = [-x for x in reversed(xs)], _in_mirror(own), [segment_in_mirror(one) for one in cut]
        table = _table(xs, ys, own, cut, page)
        if table is None:
            continue
        if leftwards:
            xs, table = [-x for x in reversed(xs)], turn_back(table)
        mark = MARK + " | ".join(
            [table.corner, *table.labels, *(text for row in table.rows for text in (row.label, *row.values))]
        )
        while mark in tables:
            mark += "."
        size = median(one.size for one in inside)
        place = Segment(mark, xs[0], xs[-1], ys[-1] - size, ys[-1], False, min(one.order for one in inside))
        first = next(at for at, one in enumerate(segments) if one is inside[0])
        taken = {id(one) for one in inside}
        segments = [
            *(one for one in segments[:first] if id(one) not in taken),
            place,
            *(one for one in segments[first:] if id(one) not in taken),
        ]
        tables[mark] = table
    return segments, tables


def goes_on(table: Table, following: Table) -> bool:
    """Whether a ruled table at the top of a page has the columns of the one at the end of the page before."""
    return (
        table.head is not None
        and following.head is not None
        and (following.header_lines == 1 or _repeats(table, following))
        and len(table.columns) == len(following.columns)
        and all(abs(one.x1 - two.x1) < _TOUCHING for one, two in zip(table.columns, following.columns, strict=True))
    )


def rows_that_follow(table: Table, following: Table) -> list[Row]:
    """The rows of a table that goes on: where it does not repeat the header, what was taken for one is a row too."""
    head = following.head
    return following.rows if head is None or _repeats(table, following) else [head, *following.rows]


def _repeats(table: Table, following: Table) -> bool:
    return (following.corner, following.labels) == (table.corner, table.labels)


def _cut(one: Segment, edges: Sequence[Edge]) -> list[Segment]:
    """A segment, apart where an upright line goes through it: at the space that is nearest to the line."""
    height = (one.y0 + one.y1) / 2
    for edge in edges:
        if edge.level or not edge.start < height < edge.end:
            continue
        if not one.x0 + _TOUCHING < edge.place < one.x1 - _TOUCHING:
            continue
        of_width = (edge.place - one.x0) / (one.x1 - one.x0) * len(one.text)
        spaces = [at for at, char in enumerate(one.text) if char == " "]
        if not spaces:
            continue
        at = min(spaces, key=lambda place: abs(place - of_width))
        before = Segment(one.text[:at], one.x0, edge.place, one.y0, one.y1, one.bold, one.order, one.rtl)
        behind = Segment(one.text[at + 1 :], edge.place, one.x1, one.y0, one.y1, one.bold, one.order, one.rtl)
        return [*_cut(before, edges), *_cut(behind, edges)]
    return [one]


def _in_mirror(edges: Sequence[Edge]) -> list[Edge]:
    return [
        Edge(True, -one.end, -one.start, one.place) if one.level else Edge(False, one.start, one.end, -one.place)
        for one in edges
    ]


def _within(one: Segment, xs: Sequence[float], ys: Sequence[float]) -> bool:
    return xs[0] < (one.x0 + one.x1) / 2 < xs[-1] and ys[0] < (one.y0 + one.y1) / 2 < ys[-1]


def _merged(edges: Sequence[Edge]) -> list[Edge]:
    """Edges with those that go on in one another, or lie on one another, as one: the sides of boxes side by side."""
    merged: list[Edge] = []
    for level in (True, False):
        along: list[list[Edge]] = []
        for edge in sorted((one for one in edges if one.level is level), key=lambda one: one.place):
            if along and edge.place - along[-1][0].place <= _SAME_PLACE:
                along[-1].append(edge)
            else:
                along.append([edge])
        for group in along:
            ordered = sorted(group, key=lambda one: one.start)
            start, end, place = ordered[0].start, ordered[0].end, ordered[0].place
            for edge in ordered[1:]:
                if edge.start > end + _TOUCHING:
                    merged.append(Edge(level, start, end, place))
                    start, end = edge.start, edge.end
                end = max(end, edge.end)
            merged.append(Edge(level, start, end, place))
    return merged


def _grids(edges: Sequence[Edge]) -> Iterable[tuple[list[float], list[float], list[Edge]]]:
    """Edges that touch one another: where their columns and rows begin and end, at least two of each."""
    groups: list[list[Edge]] = []
    for edge in edges:
        touching = [group for group in groups if any(_touch(edge, other) for other in group)]
        joined = [edge, *(one for group in touching for one in group)]
        groups = [group for group in groups if not any(group is other for other in touching)]
        groups.append(joined)
    for group in groups:
        xs = _places(edge.place for edge in group if not edge.level)
        ys = _places(edge.place for edge in group if edge.level)
        if len(xs) > 2 and len(ys) > 2:
            yield xs, ys, group


def _touch(one: Edge, other: Edge) -> bool:
    if one.level == other.level:
        return (
            abs(one.place - other.place) < _TOUCHING
            and one.start < other.end + _TOUCHING
            and other.start < one.end + _TOUCHING
        )
    return (
        one.start - _TOUCHING < other.place < one.end + _TOUCHING
        and other.start - _TOUCHING < one.place < other.end + _TOUCHING
    )


def _places(found: Iterable[float]) -> list[float]:
    places: list[float] = []
    for place in sorted(found):
        if not places or place - places[-1] > _LEAST_SIDE:
            places.append(place)
    return places


def _at(places: Sequence[float], value: float) -> int:
    return max(0, min(len(places) - 2, sum(place <= value for place in places) - 1))


def _table(
    xs: Sequence[float], ys: Sequence[float], edges: Sequence[Edge], inside: Sequence[Segment], page: int
) -> Table | None:
    many = len(xs) - 1
    cells: dict[tuple[int, int], list[Segment]] = {}
    for one in inside:
        row = len(ys) - 2 - _at(ys, (one.y0 + one.y1) / 2)
        cells.setdefault((row, _at(xs, (one.x0 + one.x1) / 2)), []).append(one)
    texts = {place: " ".join(line.text for line in lines_of(found)) for place, found in cells.items()}
    filled = [at for at in range(len(ys) - 1) if any((at, column) in texts for column in range(many))]
    rows = [[texts.get((at, column), "") for column in range(many)] for at in filled]
    if sum(sum(map(bool, row)) > 1 for row in rows) < 2:
        return None
    named = _header_rows(rows)
    head, *body = [
        _row(row, [one for column in range(many) for one in cells.get((at, column), ())], xs[0], page)
        for at, row in zip(filled, rows, strict=True)
    ]
    above = [len(ys) - 2 - at for at in filled[:named]]
    spread = [
        _spread(row, edges, xs, (ys[at] + ys[at + 1]) / 2)[1:] for row, at in zip(rows[:named], above, strict=True)
    ]
    labels = [SEPARATOR.join(dict.fromkeys(filter(None, levels))) for levels in zip(*spread, strict=True)]
    return Table(
        " ".join(filter(None, (row[0] for row in rows[:named]))),
        labels,
        body[named - 1 :],
        [Column(x0, x1) for x0, x1 in pairwise(xs[1:])],
        [line for row in (head, *body) for line in row.lines],
        named,
        head=head,
    )


def _header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many rows name the columns: the second one too where it holds years, below what stands over several."""
    if len(rows) < 3 or rows[0][0] or (rows[1][0] and not UNITS.match(rows[1][0])):
        return 1
    values = [text for text in rows[1][1:] if is_value(text)]
    return 2 if len(values) > 1 and all(map(YEAR.fullmatch, values)) else 1


def _spread(row: Sequence[str], edges: Sequence[Edge], xs: Sequence[float], height: float) -> list[str]:
    """The texts of a header, each over all columns that no line divides."""
    spread = list(row)
    for at in range(1, len(row)):
        divided = any(
            not edge.level and abs(edge.place - xs[at]) < _LEAST_SIDE and edge.start < height < edge.end
            for edge in edges
        )
        if not divided and not spread[at]:
            spread[at] = spread[at - 1]
    return spread


def _row(texts: Sequence[str], found: Sequence[Segment], x0: float, page: int) -> Row:
    line = Line(list(found), page=page)
    return Row(texts[0], list(texts[1:]), x0, [line])
