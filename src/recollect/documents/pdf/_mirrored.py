"""Tables that are read from right to left, as in a mirror: then they are read as all others are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recollect.documents.pdf._lines import Line
from recollect.documents.pdf._words import RIGHT_TO_LEFT, Segment

if TYPE_CHECKING:
    from recollect.documents.pdf._grid import Table


def runs_leftwards(segments: Iterable[Segment]) -> bool:
    """Whether most words are written from right to left; numbers say nothing."""
    leftwards = rightwards = 0
    for one in segments:
        if RIGHT_TO_LEFT.search(one.text):
            leftwards += len(one.text)
        elif any(map(str.isalpha, one.text)):
            rightwards += len(one.text)
    return leftwards > rightwards


def in_mirror(line: Line) -> Line:
    """A copy of a line with its cells from left to right as they stand from right to left, or the other way round."""
    cells = sorted(map(segment_in_mirror, line.cells), key=lambda cell: cell.x0)
    return Line(cells, line.page, line.region, line.turn)


def segment_in_mirror(one: Segment) -> Segment:
    """A copy of a segment at its place in a mirror."""
    return replace(one, x0=-one.x1, x1=-one.x0, rtl=False)


def rules_in_mirror(rules: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Level lines at their places in a mirror."""
    return [(-x1, -x0, height) for x0, x1, height in rules]


def turn_back(table: Table) -> Table:
    """A table that was read in a mirror, with its lines where they stand on the page."""
    seen: set[int] = set()
    for line in (*table.lines, *(line for row in table.rows for line in row.lines)):
        if id(line) not in seen:
            seen.add(id(line))
            line.cells = [segment_in_mirror(cell) for cell in line.cells]
    return table
