"""Tables with pipes, as Markdown writes them: where they stand, and what a piece of one must say to be understood."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# No repeated group holds what follows it, so that the time grows with the text alone.
_HEAD = re.compile(r"^(\|[^\n]*)\n\|[ \t]*:?-[-:| \t]*$", re.MULTILINE)
_LONGEST_CAPTION = 150
_LONGEST_HEADER = 600


@dataclass(frozen=True, slots=True)
class TableSpan:
    """A table's place in a text.

    Attributes:
        start: Of its header.
        body: Of its first row.
        end: Behind its last row.
        header: The line that names its columns.
        caption: The line above it, where that is short; empty: none.
    """

    start: int
    body: int
    end: int
    header: str
    caption: str


class Tables:
    """The tables of a text.

    Args:
        content: The text.
    """

    def __init__(self, content: str) -> None:
        self._spans = _spans(content)
        self._bodies = [table.body for table in self._spans]
        self.rows = [row for table in self._spans for row in _rows(content, table)]
        self.glued = frozenset(
            position for table in self._spans for position in (_second_line(content, table), table.body)
        )

    def __bool__(self) -> bool:
        return bool(self._spans)

    def containing(self, start: int) -> TableSpan | None:
        """The table that a piece beginning at ``start`` goes on with, without its header."""
        at = bisect_right(self._bodies, start) - 1
        return self._spans[at] if at >= 0 and start < self._spans[at].end else None

    def between_rows(self, start: int, limit: int) -> int | None:
        """Where to end a piece that would end at ``limit``, inside a table: at its last row that fits, or None."""
        if self.containing(limit) is None or limit == self._bodies[bisect_right(self._bodies, limit) - 1]:
            return None
        at = bisect_right(self.rows, limit) - 1
        return self.rows[at] if at >= 0 and self.rows[at] > start else None


def _spans(content: str) -> Sequence[TableSpan]:
    spans: list[TableSpan] = []
    if "\n|" not in content:
        return spans
    for match in _HEAD.finditer(content):
        if spans and match.start() < spans[-1].end:
            continue
        end = body = min(match.end() + 1, len(content))
        while content.startswith("|", end):
            line_end = content.find("\n", end)
            end = len(content) if line_end < 0 else line_end + 1
        if end > body:
            header = match[1][:_LONGEST_HEADER]
            spans.append(TableSpan(match.start(), body, end, header, _caption(content, match.start())))
    return spans


def _caption(content: str, start: int) -> str:
    above = content[max(0, start - 2 * _LONGEST_CAPTION) : start].rstrip()
    line = above[above.rfind("\n") + 1 :].strip()
    return line if 0 < len(line) <= _LONGEST_CAPTION and not line.startswith("|") else ""


def _second_line(content: str, table: TableSpan) -> int:
    return content.index("\n", table.start) + 1


def _rows(content: str, table: TableSpan) -> list[int]:
    """Where the rows begin, but the first, which stays with its header; and where the text behind the table does."""
    rows: list[int] = []
    position = content.find("\n", table.body, table.end)
    while position >= 0 and position + 1 < len(content):
        rows.append(position + 1)
        position = content.find("\n", position + 1, table.end)
    return rows
