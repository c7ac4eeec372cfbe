"""What every parser returns, and the builder that most of them write their text with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.documents._cells import names_of_columns, without_titles
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
