"""The cells of a table's row, and the column of a year."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: What parts the names that a row stands under, outermost first, its own last.
PATH_MARK = " › "
_EDGES = re.compile(r"^\s*\|?|\|?\s*$")
_BETWEEN = re.compile(r"(?<!\\)\|")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


@dataclass(frozen=True, slots=True)
class Row:
    """A row and the names of its columns.

    Attributes:
        cells: The first is its label.
        header: As many cells, or none.
    """

    cells: tuple[str, ...]
    header: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """Its label, part by part."""
        return tuple(part.strip() for part in self.cells[0].split(PATH_MARK.strip()))

    @property
    def header_years(self) -> frozenset[str]:
        """The years that its columns are of."""
        return frozenset(year for cell in self.header for year in _YEAR.findall(cell))

    def column(self, year: str) -> int | None:
        """The one column with a figure that is of this year alone; None where none is, or several are."""
        of_year = [at for at, cell in enumerate(self.header) if at and set(_YEAR.findall(cell)) == {year}]
        return of_year[0] if len(of_year) == 1 and any(map(str.isdigit, self.cells[of_year[0]])) else None


def read_row(line: str, header: str) -> Row | None:
    """A row of a table; None where the line is none.

    Args:
        line: With its bars.
        header: The line that names the columns; it counts where it has as many cells.
    """
    cells = _cells(line)
    if len(cells) < 2:
        return None
    names = _cells(header)
    return Row(cells, names if len(names) == len(cells) else ())


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in _BETWEEN.split(_EDGES.sub("", line.strip())))
