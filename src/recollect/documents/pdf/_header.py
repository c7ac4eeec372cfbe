"""The labels of a table's columns, put together from the lines above them.

A text over several columns names them all: what it spans is told by the rule below it, else by how the texts of its
line divide the columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from recollect.documents.pdf._words import Segment

SEPARATOR = " › "
_BELOW, _ABOVE = 7.0, 3.0
_TOUCHING = 1.5
_TIGHT, _CLOSE, _ALIGNED, _OFF_MIDDLE = 0.25, 0.5, 3.0, 0.15
_ENDS_OPEN = re.compile(r"\bend(?:ed|ing)\b", re.IGNORECASE)
#: Years and levels name columns of their own below what stands over several.
_OWN_LEVEL = re.compile(r"(?:fy\s*)?(?:19|20)\d\d\b|level [123]\b|\d\d/\d\d|(?:for the )?years? end", re.IGNORECASE)
#: So do the measures of a change.
_MEASURES = frozenset("$€£¥%#")


@dataclass(slots=True)
class Column:
    """The place of a column on the page."""

    x0: float
    x1: float
    count: int = 1

    def overlap(self, x0: float, x1: float) -> float:
        """How much of an interval is in the column; negative: how far it is away."""
        return min(self.x1, x1) - max(self.x0, x0)


def column_labels(
    lines: Sequence[Sequence[Segment]], columns: Sequence[Column], rules: Sequence[tuple[float, float, float]]
) -> list[str]:
    """One label for each column: the levels from above, joined by `SEPARATOR`.

    Args:
        lines: The cells above the values, line by line.
        columns: The columns of values.
        rules: The thin lines drawn on the page: left end, right end and height of each.
    """
    levels: list[list[tuple[str, tuple[int, ...]]]] = [[] for _ in columns]
    named = False
    unwrapped = _unwrapped(lines, columns, rules)
    for number, cells in enumerate(unwrapped):
        if not cells:
            continue
        under = next((one for one in unwrapped[number + 1 :] if one), [])
        had_others = len(cells) == 1 < len(lines[number])
        spans = _shared_out(cells, under, columns) or _spans(cells, columns, rules, again=named or had_others)
        named = named or any(len(span) == len(columns) for span in spans)
        for cell, span in zip(cells, spans, strict=True):
            for at in span:
                below = levels[at]
                if below and below[-1][1] == span:
                    below[-1] = (f"{below[-1][0]} {cell.text}", span)
                else:
                    below.append((cell.text, span))
    return [SEPARATOR.join(_without_repeats([text for text, _ in below])) for below in levels]


def _unwrapped(
    lines: Sequence[Sequence[Segment]], columns: Sequence[Column], rules: Sequence[tuple[float, float, float]]
) -> list[list[Segment]]:
    """The lines with texts of several lines put together in the last of these; a line may be left without any."""
    done = [list(cells) for cells in lines]
    for upper, lower in pairwise(done):
        more = len(lower) > len(upper)
        for cell in list(upper):
            below = [at for at, one in enumerate(lower) if _overlap(cell, one) > 0]
            if len(below) != 1:
                continue
            one = lower[below[0]]
            if sum(_overlap(other, one) > 0 for other in upper) > 1 or not _goes_on_in(cell, one, rules):
                continue
            if more and not _ruled(one, lower, columns, rules) and cell.y0 - one.y1 > _TIGHT * one.size:
                continue
            upper.remove(cell)
            x0, x1 = min(cell.x0, one.x0), max(cell.x1, one.x1)
            lower[below[0]] = replace(one, text=f"{cell.text} {one.text}", x0=x0, x1=x1)
    return done


def _overlap(one: Segment, other: Segment) -> float:
    return min(one.x1, other.x1) - max(one.x0, other.x0)


def _goes_on_in(upper: Segment, lower: Segment, rules: Sequence[tuple[float, float, float]]) -> bool:
    """Whether a text goes on right below: set to the same middle or edge, and not ruled off."""
    if upper.y0 - lower.y1 > _CLOSE * lower.size or _OWN_LEVEL.match(lower.text):
        return False
    if lower.text in _MEASURES and any(map(str.isdigit, upper.text)):
        return False  # a measure of a period
    if _ENDS_OPEN.search(upper.text) and not any(map(str.isdigit, lower.text)):
        return False  # a period over several columns
    middle = (lower.x0 + lower.x1) / 2
    shifts = (upper.x0 + upper.x1) / 2 - middle, upper.x0 - lower.x0, upper.x1 - lower.x1
    if min(map(abs, shifts)) > _ALIGNED:
        return False
    bottom, top = (lower.y0 + lower.y1) / 2, (upper.y0 + upper.y1) / 2
    return not any(x0 <= middle <= x1 and bottom < height < top for x0, x1, height in rules)


def _without_repeats(parts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        part = part.strip().rstrip(",:").strip()
        if part and part not in kept:
            kept.append(part)
    return kept


def _spans(
    cells: Sequence[Segment],
    columns: Sequence[Column],
    rules: Sequence[tuple[float, float, float]],
    *,
    again: bool,
) -> list[tuple[int, ...]]:
    """Which columns each cell of a line names; ``again``: a line above names all of them."""
    ruled = [_ruled(cell, cells, columns, rules) for cell in cells]
    if all(ruled) and len({at for span in ruled for at in span}) == sum(map(len, ruled)):
        return ruled
    divided = _divided(cells, columns)
    if divided is not None and not (again and len(cells) == 1):
        return divided
    spans: list[tuple[int, ...]] = []
    for cell, by_rule in zip(cells, ruled, strict=True):
        over = tuple(at for at, column in enumerate(columns) if column.overlap(cell.x0, cell.x1) > 0)
        spans.append(by_rule if len(by_rule) > 1 else over or (_nearest(cell, columns),))
    return spans


def _shared_out(
    cells: Sequence[Segment], below: Sequence[Segment], columns: Sequence[Column]
) -> list[tuple[int, ...]] | None:
    """Which columns each cell names where the line below names each with a year or measure: groups below their middles.

    The numbers of a column end below one another, so that its place reaches to the end of the column before it.
    """
    if not 1 < len(cells) < len(columns) or len(below) != len(columns):
        return None
    if not all(_OWN_LEVEL.match(cell.text) or cell.text in _MEASURES for cell in below):
        return None
    ends = [(column.x0, column.x1) for column in columns]
    starts = [min(ends[0][0], below[0].x0), *(x1 for _, x1 in ends[:-1])]
    spans: list[tuple[int, ...]] = []
    at = 0
    for number, cell in enumerate(cells):
        left = len(cells) - number - 1
        behind = len(columns) - left if left else len(columns)
        # What stands twice below a text is not of one group.
        ways = [
            stop
            for stop in (range(at + 1, behind + 1) if left else (len(columns),))
            if len({one.text for one in below[at:stop]}) == stop - at
        ]
        if not ways:
            return None
        middle = (cell.x0 + cell.x1) / 2
        stop = min(ways, key=lambda stop: abs((starts[at] + ends[stop - 1][1]) / 2 - middle))
        width = ends[stop - 1][1] - starts[at]
        if abs((starts[at] + ends[stop - 1][1]) / 2 - middle) > _OFF_MIDDLE * width:
            return None
        spans.append(tuple(range(at, stop)))
        at = stop
    return spans


def _nearest(cell: Segment, columns: Sequence[Column]) -> int:
    return max(range(len(columns)), key=lambda at: columns[at].overlap(cell.x0, cell.x1))


def _ruled(
    cell: Segment,
    cells: Sequence[Segment],
    columns: Sequence[Column],
    rules: Sequence[tuple[float, float, float]],
) -> tuple[int, ...]:
    """The columns above the rule that a cell stands on; none where there is none of its own."""
    near = sorted(rule for rule in rules if cell.y0 - _BELOW <= rule[2] <= cell.y0 + _ABOVE)
    runs: list[list[float]] = []
    for x0, x1, _ in near:
        if runs and x0 <= runs[-1][1] + _TOUCHING:
            runs[-1][1] = max(runs[-1][1], x1)
        else:
            runs.append([x0, x1])
    middle = (cell.x0 + cell.x1) / 2
    run = next((run for run in runs if run[0] - 2 <= middle <= run[1] + 2), None)
    if (
        run is None
        or run[1] - run[0] < 0.8 * (cell.x1 - cell.x0)
        or any(one is not cell and run[0] < (one.x0 + one.x1) / 2 < run[1] for one in cells)
    ):
        return ()
    whole = columns[-1].x1 - columns[0].x0
    if run[0] < columns[0].x0 - 0.3 * whole - 20:
        return ()
    return tuple(at for at, one in enumerate(columns) if run[0] - 2 <= (one.x0 + one.x1) / 2 <= run[1] + 2)


def _divided(cells: Sequence[Segment], columns: Sequence[Column]) -> list[tuple[int, ...]] | None:
    """Equal groups of columns, each below the middle of a cell; None where the line does not divide them so."""
    if not cells or len(columns) % len(cells) or len(cells) == len(columns):
        return None
    each = len(columns) // len(cells)
    spans: list[tuple[int, ...]] = []
    for number, cell in enumerate(cells):
        group = range(number * each, (number + 1) * each)
        x0, x1 = columns[group[0]].x0, columns[group[-1]].x1
        if abs((cell.x0 + cell.x1) - (x0 + x1)) > 0.5 * (x1 - x0) or cell.x0 > columns[group[-1]].x0 + 2:
            return None
        spans.append(tuple(group))
    return spans
