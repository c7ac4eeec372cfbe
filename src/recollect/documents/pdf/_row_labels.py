"""The labels of a table's rows: wrapped ones joined, groups put before them as a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.documents.pdf._header import SEPARATOR
from recollect.documents.pdf._lines import Line, is_value
from recollect.documents.pdf._tables import CLOSE

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
    return _grouped(_unwrapped(rows))


def _unwrapped(rows: Sequence[Row]) -> list[Row]:
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
