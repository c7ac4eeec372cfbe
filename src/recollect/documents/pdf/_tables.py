"""Where tables begin and end among the lines of a page.

A table is known by its numbers: lines whose cells stand apart and hold values, with the short lines between them and
the lines above that name the columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from recollect.documents.pdf._lines import Line, is_value

UNITS = re.compile(
    r"\(?\s*(?:all |dollars?|amounts?|figures|tabular|shares|unaudited|u\.?s\.? )?[^.]{0,30}"
    r"\b(?:in|of)?\s*(?:us )?(?:\$|€|£)?\s*(?:millions?|thousands?|billions?|dollars|percent|unaudited)\b",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    r"\b(?:ended|ending|as of|as at|december|january|june|march|september|quarters?|months?|(?:19|20)\d\d|"
    r"years?|fiscal|weighted|level [123]|total|change)\b",
    re.IGNORECASE,
)
OF_PERIOD = re.compile(
    r"\(?(?:for the |as of |at |as at )?(?:fiscal )?(?:\w+ )?(?:years?|quarters?|months|december|june)\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?:19|20)\d\d\b|\d\d/\d\d")
_NUMBERED = re.compile(r"(?:part|items?|notes?)\b|\d+\.\s", re.IGNORECASE)
_SENTENCE = re.compile(r".{60,}\.")
_MOST_HEADER_LINES = 7
_MOST_PLAIN_LINES = 3
_MOST_GROUPS = 3
_LONGEST_CELL = 60
_LONGEST_GROUP = 90
_LONGEST_NAME = 60
_FULL_WIDTH = 0.72
_FAR = 4.5
#: In heights of the line, between the lines of a cell.
CLOSE = 0.4
_ALIGNED, _HANGING = 2.0, 15.0


class _Kind(Enum):
    DATA = "values"
    CELLS = "short texts apart"
    PLAIN = "one text"


def table_spans(lines: Sequence[Line], width: float) -> list[tuple[int, int]]:
    """The runs of lines that are tables: the first line of each, and the one behind its last.

    Args:
        lines: Of one region of a page.
        width: Of the region.
    """
    kinds = [_kind(line) for line in lines]
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(lines):
        if kinds[at] is not _Kind.DATA:
            at += 1
            continue
        end = _end(lines, kinds, at, width)
        data = [line for line, kind in zip(lines[at:end], kinds[at:end], strict=True) if kind is _Kind.DATA]
        if len(data) < 2:
            at += 1
            continue
        values_from = min(cell.x0 for line in data for cell in line.cells[1:])
        first_free = spans[-1][1] if spans else 0
        spans.append((_start(lines, kinds, at, first_free, values_from, width), end))
        at = end
    return spans


def _kind(line: Line) -> _Kind:
    if len(line.cells) < 2:
        return _Kind.PLAIN
    if any(is_value(cell.text) for cell in line.cells[1:]):
        longest = max(len(cell.text) for cell in line.cells[1:])
        return _Kind.DATA if longest < 2 * _LONGEST_CELL else _Kind.PLAIN
    return _Kind.CELLS if max(len(cell.text) for cell in line.cells) < _LONGEST_CELL else _Kind.PLAIN


def _end(lines: Sequence[Line], kinds: Sequence[_Kind], start: int, width: float) -> int:
    """Behind the last line with values that belongs to the table at ``start``."""
    last, plain = start, 0.0
    data = lines[start]
    for at in range(start + 1, len(lines)):
        line = lines[at]
        if lines[at - 1].y0 - line.y1 > _FAR * line.size:
            break
        if kinds[at] is _Kind.DATA:
            last, plain, data = at, 0.0, line
            continue
        if last == at - 1 and lines[at - 1].y0 - line.y1 < CLOSE * line.size and hangs_below(line, data):
            last = at
            continue
        plain += 0.5 if kinds[at] is _Kind.CELLS else 1
        wide = line.x1 - line.x0 > _FULL_WIDTH * width and len(line.cells) == 1
        if wide or plain > _MOST_PLAIN_LINES or _SENTENCE.fullmatch(line.text):
            break
    return last + 1


def hangs_below(line: Line, row: Line) -> bool:
    """Whether all texts of a line begin where words of a row do that stand behind its label, or hang from there."""
    starts = [cell.x0 for cell in row.cells[1:] if not is_value(cell.text)]
    return all(any(-_ALIGNED < cell.x0 - x0 < _HANGING for x0 in starts) for cell in line.cells)


def _start(
    lines: Sequence[Line], kinds: Sequence[_Kind], at: int, first_free: int, values_from: float, width: float
) -> int:
    """The first of the lines above the values that name the columns."""
    start = at
    while start > first_free and at - start < _MOST_HEADER_LINES:
        line, below = lines[start - 1], lines[start]
        if line.y0 - below.y1 > 2.5 * line.size:
            break
        if _names_columns(line, kinds[start - 1], values_from, width):
            start -= 1
            continue
        above = _above_groups(lines, start, first_free, values_from)
        if start < at or above == start:
            break
        start = above
    return start if start < at else _top(lines, at, first_free, values_from)


def _top(lines: Sequence[Line], at: int, first_free: int, values_from: float) -> int:
    """The top of the page, where only names of groups stand above values: a table of the page before goes on there."""
    names = all(_YEAR.match(cell.text) for cell in lines[at].cells if is_value(cell.text))
    if first_free or names or at > _MOST_GROUPS:
        return at
    for line, below in pairwise(lines[: at + 1]):
        apart = line.y0 - below.y1 > 2.5 * line.size
        if apart or len(line.cells) > 1 or line.x1 > values_from or len(line.text) > _LONGEST_GROUP:
            return at
        if line.text.endswith(".") or _NUMBERED.match(line.text):
            return at
    return 0


def _above_groups(lines: Sequence[Line], start: int, first_free: int, values_from: float) -> int:
    """The line that names columns above names of groups, as ``Assets`` is one; ``start`` where there is none."""
    for above in range(start - 1, max(first_free, start - 1 - _MOST_GROUPS) - 1, -1):
        line = lines[above]
        if line.y0 - lines[above + 1].y1 > 2.5 * line.size:
            return start
        if _names_them(line, values_from):
            return above
        if len(line.cells) > 1 or line.x1 > values_from or len(line.text) > _LONGEST_GROUP:
            return start
    return start


def _names_them(line: Line, values_from: float) -> bool:
    """Whether a line above the name of a group names columns: several short texts stand above the values."""
    over = [cell for cell in line.cells if cell.x0 > values_from - 60]
    if len(over) < 2 or any(len(cell.text) >= _LONGEST_NAME for cell in line.cells):
        return False
    if any(is_value(cell.text) and not _YEAR.match(cell.text) for cell in over):
        return False
    beside = [cell.text for cell in line.cells if cell not in over]
    # A unit stands beside them, or the end of one.
    of_unit = all(UNITS.match(text) or text.count(")") > text.count("(") for text in beside)
    return of_unit or line.bold or sum(bool(_PERIOD.search(cell.text)) for cell in over) > 1


def _names_columns(line: Line, kind: _Kind, values_from: float, width: float) -> bool:
    if kind is _Kind.CELLS or len(line.cells) > 1:
        return all(len(cell.text) < _LONGEST_NAME for cell in line.cells)
    text = line.text
    if text.count(")") > text.count("(") or (text[:1].islower() and text.endswith(":")):
        return False  # the end of a sentence above the table
    if line.x0 >= values_from - 25:
        return len(text) < 2 * _LONGEST_NAME and not text.endswith(".")
    if UNITS.match(text) and len(text) < 90:
        return text.startswith("(") or text.endswith(")") or len(text) < 40
    if OF_PERIOD.match(text) and len(text) < 50 and not text.endswith((".", ":")):
        return True
    return len(text) < 70 and line.x1 - line.x0 < 0.5 * width and line.x1 > values_from and bool(_PERIOD.search(text))
