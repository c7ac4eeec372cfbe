"""Rows of cells, understood: titles above them, names of columns over several lines, merged cells, tables side by side.

Formats that know cells alone (spreadsheets, slides, web pages) say neither where a table begins nor which of its rows
name the columns. Cells and names here are on one line each, and a cell without text is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Rows = Sequence[Sequence[str]]

_MOST_LEVELS = 4
_YEAR = re.compile(r"(?:(?:FY|CY|Q[1-4]|H[12])\s?)?(?:19|20)\d\d(?:\s?[AEF*])?|[QH][1-4](?:[ /-](?:19|20)?\d\d)?")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00")


def names_of_columns(rows: Rows, *, header: bool | None) -> tuple[int, list[str]]:
    """How many rows name the columns, and the names: of several rows joined by `` › ``; none where none do.

    Args:
        rows: Without titles, all of one length.
        header: Whether the first row names the columns; None: judge by the cells.
    """
    if header is False or len(rows) < 2:
        return 0, []
    levels = _levels(rows)
    if levels == 1 and not (header or _has_header(rows) or _names_years(rows)):
        return 0, []
    filled = [_spread(row, rows[at + 1]) if at + 1 < levels else list(row) for at, row in enumerate(rows[:levels])]
    names: list[str] = []
    for column in zip(*filled, strict=True):
        named = " › ".join(dict.fromkeys(name.rstrip(":") for name in column if name))
        names.append(named if any(map(str.isalpha, named)) or _YEAR.fullmatch(named) else "")
    return levels, names


def without_titles(rows: Rows) -> tuple[list[str], Rows]:
    """The texts above a table that stand in its cells (a title, a unit), and the rows below them, all of one length."""
    width = max(map(len, rows), default=0)
    held = [at for at in range(width) if any(at < len(row) and row[at] for row in rows)]
    padded = [[row[at] if at < len(row) else "" for at in held] for row in rows]
    titles: list[str] = []
    while len(padded) > 2 and len(held) > 1 and padded[0][0] and set(padded[0][1:]) <= {"", padded[0][0]}:
        titles.append(padded.pop(0)[0])
    return titles, padded


def tables_of_sheet(grid: Rows) -> Iterator[Rows]:
    """The tables of a sheet: what empty rows, or empty columns with a table of its own behind them, set apart."""
    grid = [[_MIDNIGHT.sub(r"\1", cell.strip()) for cell in row] for row in grid]
    width = max(map(len, grid), default=0)
    grid = [[*row, *[""] * (width - len(row))] for row in grid]
    bands: list[list[list[str]]] = [[]]
    for row in grid:
        if any(row):
            bands[-1].append(list(row))
        elif bands[-1]:
            bands.append([])
    joined: list[list[list[str]]] = []
    for band in filter(None, bands):
        if joined and len(joined[-1]) > 1 and _first(band) == _first(joined[-1]) and _has_values(band[0]):
            joined[-1] += band  # a table with an empty row in it
        else:
            joined.append(band)
    for band in joined:
        for start, end in _side_by_side(band):
            yield [cells for row in band if any(cells := row[start:end])]


def _first(rows: Rows) -> int:
    """The first column that holds something."""
    return min(next((at for at, cell in enumerate(row) if cell), len(row)) for row in rows)


def _side_by_side(band: Rows) -> Iterator[tuple[int, int]]:
    """Where tables that stand beside one another begin and end."""
    width = len(band[0])
    empty = [not any(row[at] for row in band) for at in range(width)]
    start = 0
    for at in range(1, width):
        if empty[at - 1] and not empty[at] and any(not one for one in empty[start:at]) and _begins_table(band, at):
            yield start, at
            start = at
    yield start, width


def _begins_table(band: Rows, column: int) -> bool:
    """Whether a column holds names of rows rather than values."""
    below = [row[column] for row in band if row[column]][1:]
    return len(below) > 0 and sum(not _is_value(cell) for cell in below) > len(below) / 2


def _levels(rows: Rows) -> int:
    levels = 1
    while levels < min(_MOST_LEVELS, len(rows) - 1) and _goes_on_below(rows[levels - 1], rows[levels]):
        levels += 1
    return levels


def _goes_on_below(above: Sequence[str], row: Sequence[str]) -> bool:
    """Whether a row names parts of what the row above it names: that has merged cells, and this no values."""
    named = [cell for cell in above[1:] if cell]
    merged = len(named) < len(above) - 1 or len(set(named)) < len(named)
    if not merged or not named or _has_values(named) or not any(row[1:]):
        return False
    below_a_corner = row[0] in {"", above[0]} or not above[0]
    named_apart = all(row[at] for at, cell in enumerate(above) if at and cell)
    return below_a_corner and named_apart and (row[0] in {"", above[0]} or not _has_values(row[1:]))


def _spread(row: Sequence[str], below: Sequence[str]) -> list[str]:
    """A row of names in which each reaches as far to the right as names stand below it and none beside it."""
    spread = list(row)
    for at in range(2, len(spread)):
        if not spread[at] and below[at]:
            spread[at] = spread[at - 1]
    return spread


def _names_years(rows: Rows) -> bool:
    """Whether the first row names years, over values that are something else."""
    names = [name for name in rows[0][1:] if name]
    years = sum(_YEAR.fullmatch(name) is not None for name in names)
    body = [row for row in rows[1:] if row[0] and not _YEAR.fullmatch(row[0])]
    others = all(_YEAR.fullmatch(name) or not _is_value(name) for name in names)
    return bool(years and others and len(set(names)) == len(names) and 2 * len(body) > len(rows) - 1)


def _has_header(rows: Rows) -> bool:
    names = rows[0]
    if len(names) < 2 or len(set(names)) < len(names):
        return False
    if sum(map(bool, names)) < max(2, len(names) - 1) and (any(names[:-1]) or not all(row[0] for row in rows[1:])):
        return False  # but a name beside an empty corner, over rows that all have one, names the values
    # The first column's name may be blank, or a number where a table was exported with its row numbers.
    if any(len(name) > 60 or not any(map(str.isalpha, name)) for name in names[1:] if name) or len(names[0]) > 60:
        return False
    # Two columns may as well be names and values ("Phone | 4210"); numbers below a word make the word a header.
    return len(names) > 2 or any(_is_value(row[1]) for row in rows[1:] if len(row) > 1)


def _has_values(row: Sequence[str]) -> bool:
    return any(_is_value(cell) and not _YEAR.fullmatch(cell) for cell in row)


def _is_value(cell: str) -> bool:
    digits = sum(map(str.isdigit, cell))
    return digits > 0 and digits * 2 >= len(cell)
