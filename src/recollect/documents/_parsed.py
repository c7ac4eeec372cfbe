"""What every parser gives: text with its outline, tables understood and written as lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.documents._text import clean
from recollect.model import Heading, PageSpan
from recollect.model.stated import StatedFields

if TYPE_CHECKING:
    from datetime import datetime


Fact = str | int | float | bool | None
# Letters of a row, or of all names, that are a value or two in each column; more are text.
_LONG_ROW, _LONG_HEADER = 300, 500
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file inside a file.

    Attributes:
        name: Of its document within that of the file: ``2-offer.pdf``.
        own_name: As its sender wrote it; empty: it has none.
        mime_type: As its sender declared it; empty: not at all.
        data: All of it.
    """

    name: str
    own_name: str
    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A file's text and structure, before it becomes a document.

    Attributes:
        unread: Pages that are pictures, whose text nobody has recognised.
        attached: What is attached to a message.
    """

    content: str
    headings: Sequence[Heading] = ()
    pages: Sequence[PageSpan] = ()
    title: str | None = None
    event_time: datetime | None = None
    metadata: Mapping[str, Fact] = field(default_factory=dict)
    permissions: tuple[str, ...] | None = None
    stated: StatedFields = field(default_factory=StatedFields)
    mime_type: str = "text/plain"
    unread: Sequence[int] = ()
    attached: Sequence[AttachedFile] = ()


class TextBuilder:
    """Puts blocks together to one text and notes where its headings stand.

    The result is Markdown in what carries structure (``#`` before headings, ``-`` before list items) and plain text
    in everything else: no escapes, no emphasis marks, no link targets, no images, because its characters are quoted
    to people as they are.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._in_list = False

    def heading(self, level: int, title: str) -> None:
        """Adds a heading of ``level`` 1 to 6; a blank one is ignored."""
        title = one_line(title)
        if not title:
            return
        level = min(max(level, 1), 6)
        start = self._append(f"{'#' * level} {title}")
        self._headings.append(Heading(level, title, start, self._length))

    def paragraph(self, text: str) -> None:
        """Adds a paragraph, its own line ends kept; a blank one is ignored."""
        self._append(clean(text).strip())

    def item(self, text: str, *, marker: str = "-", depth: int = 0) -> None:
        """Adds a list item, indented by its depth; neighbouring items stand on neighbouring lines."""
        text = clean(text).strip()
        if text:
            indent = "  " * min(depth, 10)
            mark = f"{marker} " if marker else "  "
            self._append(f"{indent}{mark}{text}", joint="\n" if self._in_list else "\n\n")
            self._in_list = True

    def code(self, text: str) -> None:
        """Adds lines that keep their white space, fenced, so that a comment in them is not taken for a heading."""
        text = clean(text).strip("\n")
        if text.strip():
            fence = "```" if "```" not in text else "~~~"
            self._append(f"{fence}\n{text}\n{fence}")

    def table(self, rows: Sequence[Sequence[str]], *, header: bool | None = None) -> None:
        """Adds a table, with pipes where something names its columns (see `pipe_table`)."""
        self._append(pipe_table(rows, header=header))

    def extend(self, parsed: Parsed) -> None:
        """Adds another text with its headings."""
        start = self._append(parsed.content)
        self._headings.extend(
            Heading(one.level, one.title, one.start_offset + start, one.end_offset + start) for one in parsed.headings
        )

    def result(self) -> tuple[str, list[Heading]]:
        """The text and its headings so far."""
        return "".join(self._parts), list(self._headings)

    def _append(self, text: str, *, joint: str = "\n\n") -> int:
        self._in_list = False
        if not text:
            return self._length
        if self._parts:
            self._parts.append(joint)
            self._length += len(joint)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start


def one_line(text: str) -> str:
    """``text`` cleaned, on one line, with single spaces."""
    return _SPACES.sub(" ", clean(text)).strip()


def pipe_table(rows: Sequence[Sequence[str]], *, header: bool | None = None) -> str:
    """A table as Markdown writes it, which pieces are cut from and indexed with the names of their columns.

    What stands above the names stays a line, apart. Where nothing names the columns, or cells hold paragraphs rather
    than values, the rows are those of `table_lines`.

    Args:
        rows: As for `table_lines`.
        header: As for `table_lines`.
    """
    titles, table, levels, names = _understood(rows, header=header)
    body = table[levels:]
    lengths = sorted(sum(map(len, row)) for row in body)
    if not levels or not body or lengths[len(lengths) // 2] > _LONG_ROW or sum(map(len, names)) > _LONG_HEADER:
        return "\n".join(table_lines(rows, header=header))
    # A name without letters says nothing before a value, but is not lost above one.
    above = [" › ".join(dict.fromkeys(filter(None, column))) for column in zip(*table[:levels], strict=True)]
    names = [name or own for name, own in zip(names, above, strict=True)]
    lines = [_piped(names), f"|{'---|' * len(names)}", *map(_piped, body)]
    return "\n\n".join(["\n".join(part) for part in (titles, lines) if part])


def _piped(row: Sequence[str]) -> str:
    # As in tables of PDF files: a pipe in a cell would part it.
    return f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def table_lines(rows: Sequence[Sequence[str]], *, header: bool | None = None) -> list[str]:
    """A table as lines that can each be read, found and quoted alone.

    A row of a table with a header is written ``Header: cell; Header: cell``, so that a row cut off from its header
    still says what its numbers are; names over several rows are joined, ``2024 › Plan``. Without a header the cells are
    joined by `` | ``. What stands above the header in a row of its own stays a line. Empty rows vanish, and so do empty
    cells where columns have names.

    Args:
        rows: The cells, row by row; rows may differ in length.
        header: Whether the first row names the columns; None: judge by the cells.
    """
    titles, cleaned_rows, levels, names = _understood(rows, header=header)
    if not levels:
        return [*titles, *(_plain(row) for row in cleaned_rows)]
    return [
        *titles,
        *(
            "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell)
            for row in cleaned_rows[levels:]
        ),
    ]


def _understood(
    rows: Sequence[Sequence[str]], *, header: bool | None
) -> tuple[list[str], Sequence[Sequence[str]], int, list[str]]:
    """What stands above a table, its rows, how many of them name its columns, and the names."""
    cleaned = [[one_line(cell) for cell in row] for row in rows]
    titles, table = without_titles([row for row in cleaned if any(row)])
    return titles, table, *names_of_columns(table, header=header)


def _plain(row: Sequence[str]) -> str:
    """The cells of a row; an empty one between others keeps its place."""
    last = max((at for at, cell in enumerate(row) if cell), default=-1)
    return " | ".join(row[: last + 1]).strip()


# Rows of cells, understood: titles above them, names of columns over several lines, merged cells, tables side by
# side.
#
# Formats that know cells alone (spreadsheets, slides, web pages) say neither where a table begins nor which of its
# rows name the columns. Cells and names here are on one line each, and a cell without text is empty.


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
