"""The lines of a table, understood: its columns with their labels, and its rows with theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from recollect.documents.pdf._lines import Line, is_value
from recollect.documents.pdf._tables import CLOSE, OF_PERIOD, UNITS, hangs_below
from recollect.documents.pdf._words import RIGHT_TO_LEFT, Segment

# The labels of a table's columns, put together from the lines above them.
#
# A text over several columns names them all: what it spans is told by the rule below it, else by how the texts of its
# line divide the columns.


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
    unwrapped = _unwrapped_labels(lines, columns, rules)
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


def _unwrapped_labels(
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


# The labels of a table's rows: wrapped ones joined, groups put before them as a path.


_INDENT = 2.0
# In heights of the line: values stand below texts of several lines.
_BESIDE = 1.5
_OPEN_ENDS = (
    ",",
    " at",
    " as",
    " with",
    " that",
    " which",
    " and",
    " of",
    " to",
    " in",
    " for",
    " the",
    " or",
    " on",
    " by",
    " from",
    "(",
    "-",
    "—",
)


@dataclass(slots=True)
class Row:
    """A row of a table.

    Attributes:
        label: What its line begins with.
        values: One for each column, blank where there is none.
        x0: Where the label begins.
        lines: The lines that it stands on.
    """

    label: str
    values: list[str]
    x0: float
    lines: list[Line]

    @property
    def filled(self) -> bool:
        """Whether there is any value."""
        return any(self.values)


def labelled(rows: Sequence[Row]) -> list[Row]:
    """Rows with whole labels: lines without values become part of a label, or the name of a group."""
    return _grouped(_unwrapped_rows(rows))


def _unwrapped_rows(rows: Sequence[Row]) -> list[Row]:
    done: list[Row] = []
    for at, row in enumerate(rows):
        before = done[-1] if done else None
        if before is not None and (_wraps(before, row) or _brings_values(before, row)):
            label = f"{before.label} {row.label}".strip()
            values = [f"{one} {two}".strip() for one, two in zip(before.values, row.values, strict=True)]
            done[-1] = Row(label, values, before.x0, [*before.lines, *row.lines])
        elif before is not None and _continues(before, row, rows[at + 1] if at + 1 < len(rows) else None):
            label = f"{before.label} {row.label}".strip()
            values = row.values if row.filled else before.values
            done[-1] = Row(label, values, before.x0, [*before.lines, *row.lines])
        else:
            done.append(row)
    return done


def _wraps(before: Row, row: Row) -> bool:
    """Whether a row holds nothing but words that go on with those of the row before it, right behind it."""
    if not (before.filled and row.filled) or (row.label and not row.label[:1].islower()):
        return False
    if before.lines[-1].y0 - row.lines[0].y1 > CLOSE * row.lines[0].size:
        return False
    below = [(one, two) for one, two in zip(before.values, row.values, strict=True) if two]
    words = all(not is_value(one or two) for one, two in below)
    return words and any(one for one, _ in below)


def _brings_values(before: Row, row: Row) -> bool:
    """Whether a row without a label has the values of the one before it, whose texts are wrapped above them."""
    if row.label or not before.label or not before.filled or not row.filled:
        return False
    if before.lines[-1].y0 - row.lines[0].y1 > _BESIDE * row.lines[0].size:
        return False
    pairs = list(zip(before.values, row.values, strict=True))
    if any(is_value(one) for one, _ in pairs) or not any(is_value(two) for _, two in pairs):
        return False
    return not any(one and is_value(two) for one, two in pairs)


def _continues(before: Row, row: Row, following: Row | None) -> bool:
    """Whether a row goes on with the label of the one before it."""
    if before.filled and row.filled:
        return False
    small = row.label[:1].islower() or row.label[:1] in {")", "&"}
    if not before.filled:
        if not row.label:
            # Values on a line of their own, beside a label of two lines or more.
            return row.filled and before.lines[-1].y0 - row.lines[0].y1 < 0.3 * row.lines[0].size
        open_bracket = before.label.count("(") > before.label.count(")")
        return small or open_bracket or before.label.endswith(_OPEN_ENDS)
    if row.filled or not row.label:
        return False
    follower_small = following is not None and following.label[:1].islower()
    return (small and not follower_small) or before.label.endswith(_OPEN_ENDS)


def _grouped(rows: Sequence[Row]) -> list[Row]:
    """The path of groups before each label; a group without rows stays as a row of its own."""
    groups: list[tuple[float, Row, bool]] = []
    done: list[Row] = []
    used: set[int] = set()
    for at, row in enumerate(rows):
        groups = [group for group in groups if not _leaves(row, group[0], flat=group[2])]
        if not row.filled:
            bold = row.lines[0].bold
            groups = [one for one in groups if row.x0 > one[0] + _INDENT or (one[1].lines[0].bold and not bold)]
            groups.append((row.x0, row, _is_flat(rows, at)))
            done.append(row)
            continue
        path = [group.label.rstrip(":").strip() for _, group, _ in groups]
        used.update(id(group) for _, group, _ in groups)
        label = SEPARATOR.join(part for part in (*path, row.label) if part)
        done.append(Row(label, row.values, row.x0, row.lines))
        if row.label.lower().startswith(("total", "net ")):
            groups = [group for group in groups if not (group[2] and row.x0 <= group[0] + _INDENT)]
    return [row for row in done if row.filled or id(row) not in used]


def _leaves(row: Row, group_x0: float, *, flat: bool) -> bool:
    if not row.label:
        return False
    return row.x0 < group_x0 - _INDENT if flat else row.x0 <= group_x0 + _INDENT


def _is_flat(rows: Sequence[Row], group: int) -> bool:
    """Whether the rows of a group are not indented below its name."""
    following = next((row for row in rows[group + 1 : group + 4] if row.label), None)
    return following is not None and following.x0 <= rows[group].x0 + _INDENT


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


# Tables that are read from right to left, as in a mirror: then they are read as all others are.


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
