"""The lines of a table, understood: its columns with their labels, and its rows with theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from recollect.documents.pdf._header import Column, column_labels
from recollect.documents.pdf._lines import Line, is_value
from recollect.documents.pdf._row_labels import Row, labelled
from recollect.documents.pdf._tables import CLOSE, OF_PERIOD, UNITS, hangs_below
from recollect.documents.pdf._words import Segment

YEAR = re.compile(
    r"(?:(?:FY|Fiscal)?\s*(?:19|20)\d\d\s*[*E]?(?:\s?\(\w\))?|[12]?Q\d.*|[1-4]Q.*|\d\d/\d\d)", re.IGNORECASE
)
_BAD_SHARE = 0.1
_MOST_LEFT_LINES = 2
_SIGNS = frozenset({"$", "€", "£", "¥"})
_INDENTED = 8.0
#: In points.
_PROSE = 150.0
#: In heights of the line: a title stands apart from the rows above it, a table even more.
_APART, _BLANK_LINE = 0.6, 1.2


@dataclass(slots=True)
class Table:
    """A table that was understood.

    Attributes:
        corner: What stands above the row labels: units, the name of the labels.
        labels: One for each column of values.
        rows: In order.
        columns: Their places.
        lines: All lines that it was made of.
        header_lines: How many of them name the columns.
        head: Of a ruled table the row that names the columns.
    """

    corner: str
    labels: list[str]
    rows: list[Row]
    columns: list[Column] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    header_lines: int = 0
    head: Row | None = None


def understand(lines: Sequence[Line], rules: Sequence[tuple[float, float, float]]) -> list[Table | Line]:
    """The tables that lines are, with the lines between them; none where they cannot be understood.

    A line that names the columns anew in the middle begins another table.

    Args:
        lines: From `table_spans`.
        rules: The thin lines drawn on the page.
    """
    columns = _columns(lines)
    if not columns:
        return []
    first = _header_end(lines, columns)
    for at in range(first + 1, len(lines)):
        if _names_anew(lines, at, columns):
            start = _first_of_header(lines, first, at, columns)
            title = _first_of_title(lines, first, start, columns)
            before, after = understand(lines[:title], rules), understand(lines[start:], rules)
            if not before and not after:
                return []
            return [*(before or lines[:title]), *lines[title:start], *(after or lines[start:])]
    return [*_table(lines, columns, first, rules)]


def _table(
    lines: Sequence[Line], columns: list[Column], first: int, rules: Sequence[tuple[float, float, float]]
) -> list[Table]:
    left = columns[0].x0
    header, body = lines[:first], lines[first:]
    corner = [cell.text for line in header for cell in line.cells if _is_corner(cell, left)]
    above = [[cell for cell in line.cells if not _is_corner(cell, left)] for line in header]
    labels = column_labels([cells for cells in above if cells], columns, rules)
    raw, clashes = [], 0
    for line in body:
        row, clash = _row(line, columns, left)
        raw.append(row)
        clashes += clash
    filled = sum(any(row.values) for row in raw)
    if filled < 2 or clashes > _BAD_SHARE * filled:
        return []
    if not any(row.label for row in raw if any(row.values)) and len(columns) > 1:
        corner, labels = [*corner, labels[0]], labels[1:]
        raw = [Row(row.values[0], row.values[1:], row.x0, row.lines) for row in raw]
        columns = columns[1:]
    return [Table(" ".join(corner).strip(), labels, labelled(raw), columns, list(lines), first)]


def _is_left(cell: Segment, left: float) -> bool:
    return cell.x1 < left + 2 and not (YEAR.fullmatch(cell.text) and cell.x0 > left - 60)


def _is_corner(cell: Segment, left: float) -> bool:
    """Whether a cell above the values names no column: it stands above the labels, or tells the unit of all."""
    return _is_left(cell, left) or (cell.text.startswith("(") and UNITS.match(cell.text) is not None)


def _columns(lines: Sequence[Line]) -> list[Column]:
    """Values that stand below one another; texts that do so where there are no values."""
    body = [line for line in lines if not _has_only_years(line)]
    values = [
        (cell.x0, cell.x1)
        for line in body or lines
        for at, cell in enumerate(line.cells)
        if is_value(cell.text) and (at > 0 or len(line.cells) > 1)
    ]
    columns = _clustered(values)
    texts = [
        (cell.x0, cell.x1)
        for line in lines
        for cell in line.cells[1:]
        if not is_value(cell.text)
        and cell.text not in _SIGNS
        and all(column.overlap(cell.x0, cell.x1) < -4 for column in columns)
    ]
    if len(columns) == 1:
        signs = [cell.x0 for line in lines for cell in line.cells if cell.text in _SIGNS]
        columns[0].x0 = min([columns[0].x0, *signs])
    apart = sum(len(line.cells) > 1 for line in lines)
    behind = max((column.x1 for column in columns), default=math.inf)
    columns += [
        column
        for column in _clustered(texts)
        if (column.count >= 3 and column.count > apart / 3) or _are_comments(column, behind)
    ]
    return sorted(columns, key=lambda column: column.x0)


def _are_comments(column: Column, behind: float) -> bool:
    """Whether texts are a column although they are few: as wide as sentences, behind all values."""
    return column.count > 1 and column.x1 - column.x0 > _PROSE and column.x0 > behind


def _has_only_years(line: Line) -> bool:
    """Whether the values of a line are years, as above others: they need not stand where the others do."""
    values = [cell.text for cell in line.cells if is_value(cell.text)]
    return bool(values) and all(map(YEAR.fullmatch, values))


def _clustered(places: Sequence[tuple[float, float]]) -> list[Column]:
    columns: list[Column] = []
    for x0, x1 in sorted(places, key=lambda place: place[1]):
        for column in columns:
            narrower = min(column.x1 - column.x0, x1 - x0)
            if column.overlap(x0, x1) > 0.3 * narrower or abs(column.x1 - x1) < 4:
                column.x0, column.x1 = min(column.x0, x0), max(column.x1, x1)
                column.count += 1
                break
        else:
            columns.append(Column(x0, x1))
    merged: list[Column] = []
    for column in sorted(columns, key=lambda one: one.x0):
        before = merged[-1] if merged else None
        if before and column.x0 < before.x1 - 0.5 * min(column.x1 - column.x0, before.x1 - before.x0):
            before.x1, before.count = max(before.x1, column.x1), before.count + column.count
        else:
            merged.append(column)
    return merged


def nearest(cell: Segment, columns: Sequence[Column]) -> int:
    """The column that a cell stands in, or is nearest to."""
    overlaps = [column.overlap(cell.x0, cell.x1) for column in columns]
    return max(range(len(columns)), key=overlaps.__getitem__)


def _header_end(lines: Sequence[Line], columns: Sequence[Column]) -> int:
    """The first line that is none of the header: what stands above the labels alone belongs to it if more follows."""
    end, named = 0, False
    for at, line in enumerate(lines):
        left_alone = all(_is_left(cell, columns[0].x0) for cell in line.cells)
        # Below the names of columns, a date above labels alone is the name of a group of rows.
        of_group = named and left_alone and OF_PERIOD.match(line.text) is not None
        if _is_header_line(line, columns) and not of_group:
            end = at + 1
            named = named or bool(_over(line, columns))
            continue
        if of_group:
            break
        if not left_alone or at - end >= _MOST_LEFT_LINES or (at > 0 and not named):
            break
    return end


def _over(line: Line, columns: Sequence[Column]) -> list[Segment]:
    """The cells of a line that stand above columns of values."""
    return [cell for cell in line.cells if not _is_corner(cell, columns[0].x0)]


def _first_of_header(lines: Sequence[Line], first: int, at: int, columns: Sequence[Column]) -> int:
    """Where the header begins that a line in the body belongs to."""
    start = at
    for above in range(at - 1, max(first, at - 1 - _MOST_LEFT_LINES), -1):
        line = lines[above]
        if any(is_value(cell.text) and not YEAR.fullmatch(cell.text) for cell in line.cells):
            break
        if line.x1 > columns[0].x0 and _begins_left(line, lines, columns):
            break  # a title that is longer than the labels
        if len(_over(line, columns)) == len(line.cells):
            start = above
    return start


def _begins_left(line: Line, lines: Sequence[Line], columns: Sequence[Column]) -> bool:
    """Whether a line is one text that begins where the labels do, however far it reaches."""
    if len(line.cells) > 1:
        return False
    leftmost = min(one.x0 for one in lines)
    return line.x0 < min(leftmost + _INDENTED, columns[0].x0 - _INDENTED)


def _first_of_title(lines: Sequence[Line], first: int, start: int, columns: Sequence[Column]) -> int:
    """Where the title begins that stands above a header in the body: ``start`` where there is none."""
    title = start
    while title - 1 > first and start - title < _MOST_LEFT_LINES:
        line, above = lines[title - 1], lines[title - 2]
        if is_value(line.text) or not _begins_left(line, lines, columns):
            break
        title -= 1
        if above.y0 - line.y1 > _APART * line.size:
            return title
    return start


def _is_header_line(line: Line, columns: Sequence[Column]) -> bool:
    """Whether a line holds no values but years, and is no label of rows."""
    left = columns[0].x0
    values = [cell for cell in line.cells if is_value(cell.text) and not _is_left(cell, left)]
    if any(not YEAR.fullmatch(cell.text) for cell in values):
        return False
    if values:
        labels = [cell.text for cell in line.cells if _is_left(cell, left)]
        return len(values) > 1 or not labels or all(UNITS.match(text) for text in labels) or len(columns) == 1
    only_left = all(_is_left(cell, left) for cell in line.cells)
    return not only_left or any(
        UNITS.match(cell.text) or OF_PERIOD.match(cell.text) or cell.text.startswith("(") for cell in line.cells
    )


def _names_anew(lines: Sequence[Line], at: int, columns: Sequence[Column]) -> bool:
    """Whether a line in the body names columns, as at the head of a table: years, or texts without a label."""
    line = lines[at]
    over = _over(line, columns)
    if len(over) == len(line.cells) == 1:
        return OF_PERIOD.match(line.text) is not None and _names_one_column(lines[at + 1 :])
    if _is_wrapped(lines, at):
        return False
    if len(over) == 1 and len(columns) == 1:
        # The unit of all beside the name of the only column.
        beside = [cell.text for cell in line.cells if cell is not over[0]]
        return bool(beside) and not is_value(over[0].text) and all(_is_unit(text) for text in beside)
    if len(over) < 2 or any(is_value(cell.text) and not YEAR.fullmatch(cell.text) for cell in over):
        return False
    labels = [cell.text for cell in line.cells if _is_corner(cell, columns[0].x0)]
    if all(UNITS.match(text) or text.startswith("(") for text in labels):
        return True
    if all(YEAR.fullmatch(cell.text) for cell in over) and lines[at - 1].y0 - line.y1 > _BLANK_LINE * line.size:
        return True
    return _first_of_header(lines, 0, at, columns) < at


def _is_unit(text: str) -> bool:
    return text.startswith("(") and text.endswith(")") and UNITS.match(text) is not None


def _is_wrapped(lines: Sequence[Line], at: int) -> bool:
    """Whether a line goes on with the words of the row above it."""
    for above in range(at - 1, -1, -1):
        row, below = lines[above], lines[above + 1]
        if row.y0 - below.y1 > CLOSE * below.size:
            return False
        if any(is_value(cell.text) for cell in row.cells[1:]):
            return hangs_below(lines[at], row)
    return False


def _names_one_column(below: Sequence[Line]) -> bool:
    """Whether the lines up to the next ones without values, at least two, have a single value each."""
    counts = [sum(is_value(cell.text) for cell in line.cells[1:]) for line in below]
    filled = [count for count in counts if count]
    return len(filled) > 1 and max(filled) == 1


def _is_sign_of(sign: Segment, value: Segment, columns: Sequence[Column]) -> bool:
    """Whether the sign of a currency belongs to a value: no other column stands between them."""
    return is_value(value.text) and not any(sign.x1 < column.x1 < value.x0 for column in columns)


def _row(line: Line, columns: Sequence[Column], left: float) -> tuple[Row, int]:
    """A line's label and values, and how many values found their place taken."""
    labels: list[str] = []
    values = [""] * len(columns)
    clashes = 0
    if len(line.cells) == 1 and line.x0 > left - 5 and OF_PERIOD.match(line.text):
        return Row(line.text, values, -math.inf, [line]), 0  # the rows below are of this period
    sign = ""
    for number, cell in enumerate(line.cells):
        following = line.cells[number + 1] if number + 1 < len(line.cells) else None
        if cell.text in _SIGNS and following is not None and _is_sign_of(cell, following, columns):
            sign = cell.text
            continue
        in_values = (
            cell.x1 > left - 2 if is_value(cell.text) else (cell.x0 + cell.x1) / 2 > left and cell.x0 >= left - 5
        )
        if not in_values:
            labels.append(cell.text)
            continue
        at = nearest(cell, columns)
        clashes += bool(values[at]) and is_value(cell.text)
        values[at] = f"{values[at]} {sign}{cell.text}".strip()
        sign = ""
    return Row(" ".join(labels), values, line.cells[0].x0, [line]), clashes
