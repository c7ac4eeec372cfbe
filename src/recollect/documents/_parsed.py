"""What every parser gives: text with its outline, tables, a title and dates; and how that travels between processes."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.documents._text import clean
from recollect.model import Heading, PageSpan
from recollect.model.stated import StatedFields

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


# What documents say of themselves beside their text: their titles and dates.


# A document's title: what its author called it, not what a program did.

_PROGRAM = re.compile(r"^microsoft (?:office )?(?:word|excel|powerpoint)\s*-\s*", re.IGNORECASE)
_EXTENSION = re.compile(
    r"\.(?:pdf|docx?|docm|dotx?|pptx?|xlsx?|odt|ods|odp|rtf|txt|html?|tex|dvi|md|indd|qxd|pages|wpd|ps|tmp)$",
    re.IGNORECASE,
)
_MEANINGLESS = re.compile(
    r"(?:untitled|document|dokument|doc|unbenannt|sans titre|sin título|no title|title|titel|new|presentation|"
    r"powerpoint[ -]?\w*|slide|folie|book|mappe|workbook|sheet|home|index|microsoft word|print|layout)[\s\W\d]*$"
    r"|[\W\d_]*$|[0-9a-f-]{16,}$",
    re.IGNORECASE,
)
_LONGEST = 200
# A line alone at the top of a text with headings: a title whose style the format has lost.
_OPENING = re.compile(r"(?=.{5,100}$)[^\W\d_][^\n|]*\s[^\n|]*[^\W_)]\)?")


def choose_title(parsed: Parsed, stem: str) -> str:
    """The title from the file's metadata where it is sensible, else the first heading, else the file's name.

    Args:
        parsed: The parsed file.
        stem: The file's name without its extension.
    """
    stated = sensible_title(parsed.title)
    if stated is not None:
        return stated
    if parsed.pages:
        return readable(stem)
    opening = parsed.content.lstrip()[:1000].split("\n\n", 1)[0].strip()
    if parsed.headings and _OPENING.fullmatch(opening):
        return opening
    first = next((one_line(heading.title) for heading in parsed.headings), "")
    if first and not _MEANINGLESS.fullmatch(first):
        return first[:_LONGEST]
    return readable(stem)


def sensible_title(stated: str | None) -> str | None:
    """A title without the name of the program that made it; None where it is a file's name or says nothing."""
    title = _PROGRAM.sub("", one_line(stated or ""))
    if not title or len(title) > _LONGEST or _EXTENSION.search(title) or _MEANINGLESS.fullmatch(title):
        return None
    return title


def readable(stem: str) -> str:
    """``leave_policy-2024`` as ``Leave policy 2024``."""
    words = one_line(re.sub(r"[_\-+.]+|%20", " ", stem))
    if not words:
        return one_line(stem) or "Untitled"
    return words[0].upper() + words[1:]


# Titles of reports to the United States' Securities and Exchange Commission, as their covers say them.
#
# The largest type on such a cover names the commission, and titles in files hold the day of filing, a year too late.
# The
# cover itself says what people call a report by, in an order that the commission prescribes: form, period, company.

# Within so many characters a cover names the commission, and has said what it is about.
_FIRST = 1_500
_COVER = 8_000
_COMMISSION = "SECURITIES AND EXCHANGE COMMISSION"
_FORM = re.compile(r"form (\d{1,2}-[a-z]{1,2}(?:/a)?)", re.IGNORECASE)
_PERIOD = re.compile(
    r"for the (fiscal year|year|quarterly period|quarter) ended:? ([a-z]+) (\d{1,2}), ?(\d{4})\b", re.IGNORECASE
)
_REGISTRANT = re.compile(r"\W?exact name of registrant", re.IGNORECASE)
_FILE_NUMBER = re.compile(r".{0,20}commission file (?:number|no)", re.IGNORECASE)
_COMMON = re.compile(r"\W?(?:class [a-z] )?(?:common|ordinary) (?:stock|shares)", re.IGNORECASE)
_EXCHANGE = re.compile(r"exchange|nasdaq", re.IGNORECASE)
_SYMBOL = re.compile(r"(?:  |\| ?)([A-Z]{1,5})(?=  | ?\|)")
_LONGEST_NAME = 100
_EDGES = " *|#"


def filing_title(content: str) -> str | None:
    """The title of a report whose cover begins a text; None where there is no such cover.

    Args:
        content: Of the document.

    Returns:
        As ``"CVS HEALTH CORPORATION (CVS), Form 10-K, fiscal year ended December 31, 2022"``; the symbol only where
        the cover has it. A fiscal year that ends in January is named too: it is that of the year before.
    """
    if _COMMISSION not in " ".join(content[:_FIRST].upper().split()):
        return None
    cover = [line for line in content[:_COVER].split("\n") if line.strip(_EDGES)]
    lines = [" ".join(line.split()).strip(_EDGES) for line in cover]
    form = next((match for line in lines if (match := _FORM.fullmatch(line))), None)
    period = _PERIOD.search(" ".join(lines))
    company = _company(lines)
    if form is None or period is None or company is None:
        return None
    symbol = _symbol(cover)
    return f"{company}{f' ({symbol})' if symbol else ''}, Form {form[1].upper()}, {_period(*period.groups())}"


def _company(lines: Sequence[str]) -> str | None:
    """What stands above "exact name of registrant", or where that is missing, below the commission's file number."""
    above = next((at - 1 for at, line in enumerate(lines) if at and _REGISTRANT.match(line)), None)
    below = next((at + 1 for at, line in enumerate(lines[:-1]) if _FILE_NUMBER.match(line)), None)
    at = below if above is None else above
    return lines[at] if at is not None and len(lines[at]) <= _LONGEST_NAME else None


def _symbol(cover: Sequence[str]) -> str | None:
    """What the company's shares are traded as: a column of its own, between their name and the exchange's."""
    for line in cover:
        if _COMMON.match(line) and _EXCHANGE.search(line):
            match = _SYMBOL.search(line)
            return match[1] if match else None
    return None


def _period(kind: str, month: str, day: str, year: str) -> str:
    ended = f"ended {month.capitalize()} {day}, {year}"
    yearly = kind.lower().endswith("year")
    return (
        f"fiscal year {int(year) - 1}, {ended}" if yearly and month.lower() == "january" else f"{kind.lower()} {ended}"
    )


# Dates as documents write them.

_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)


def parse_time(text: str | None) -> datetime | None:
    """A time-zone aware time from ISO 8601 text, or None.

    A date without a time is taken as its midnight in UTC. A time without a zone, a date before 1980 (the clocks of
    ZIP archives begin there) or in the future says nothing reliable and gives None.
    """
    if not text:
        return None
    text = text.strip()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) <= 10:
        time = time.replace(tzinfo=UTC)
    return plausible(time)


def plausible(time: datetime | None) -> datetime | None:
    """``time`` where it has a zone and can be when a document was written."""
    if time is None or time.tzinfo is None:
        return None
    try:
        return time if _EARLIEST < time < datetime.now(UTC) + timedelta(days=1) else None
    except OverflowError:
        return None


# What travels between a parent and its parsers: a JSON object and bytes, each with its length before it.


#: Lengths of a message's two parts.
LENGTHS = struct.Struct(">IQ")


def as_message(parsed: Parsed) -> tuple[dict[str, Any], bytes]:
    """What was parsed, as what travels: no pickle, because a parser that was taken over may write anything."""
    return {
        "headings": [[one.level, one.title, one.start_offset, one.end_offset] for one in parsed.headings],
        "pages": [page.as_list() for page in parsed.pages],
        "title": parsed.title,
        "event_time": parsed.event_time.isoformat() if parsed.event_time else None,
        "metadata": dict(parsed.metadata),
        "permissions": parsed.permissions,
        "mime_type": parsed.mime_type,
        "unread": list(parsed.unread),
        "attached": [[one.name, one.own_name, one.mime_type, len(one.data)] for one in parsed.attached],
    }, b"".join([parsed.content.encode("utf-8", "surrogatepass"), *(one.data for one in parsed.attached)])


def from_message(message: dict[str, Any], data: bytes) -> Parsed:
    """The other way round.

    Raises:
        ValueError: It is not what `as_message` writes. (So are KeyError, TypeError and OverflowError.)
    """
    lengths = [int(length) for *_, length in message["attached"]]
    if min(lengths, default=0) < 0 or sum(lengths) > len(data):
        raise ValueError("attached files of impossible lengths")
    end = len(data) - sum(lengths)
    content = data[:end].decode("utf-8", "surrogatepass")
    time, permissions = message["event_time"], message["permissions"]
    parsed = Parsed(
        content=content,
        headings=[Heading(level, title, start, end) for level, title, start, end in message["headings"]],
        pages=[PageSpan.of_list(page) for page in message["pages"]],
        title=message["title"],
        event_time=None if time is None else datetime.fromisoformat(time),
        metadata=message["metadata"],
        permissions=None if permissions is None else tuple(permissions),
        mime_type=message["mime_type"],
        unread=[int(number) for number in message["unread"]],
        attached=list(_attached(message["attached"], data[end:])),
    )
    spans = [(heading.start_offset, heading.end_offset) for heading in parsed.headings]
    spans += [(line.start_offset, line.end_offset) for page in parsed.pages for line in page.lines]
    spans += [(page.start_offset, page.end_offset) for page in parsed.pages]
    if not all(0 <= start <= end <= len(content) for start, end in spans):
        raise ValueError("offsets outside the content")
    return parsed


def _attached(told: list[list[Any]], data: bytes) -> Iterator[AttachedFile]:
    at = 0
    for name, own_name, mime_type, length in told:
        yield AttachedFile(
            name=str(name), own_name=str(own_name), mime_type=str(mime_type), data=data[at : at + length]
        )
        at += length


def send(descriptor: int, message: dict[str, Any], data: bytes = b"") -> None:
    """Write a message."""
    for part in (packed(message, len(data)), data):
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view) :]


def packed(message: Mapping[str, object], data_length: int) -> bytes:
    """A message as far as its bytes."""
    head = json.dumps(message).encode()
    return LENGTHS.pack(len(head), data_length) + head


def receive(descriptor: int) -> tuple[dict[str, Any], bytes] | None:
    """Read a message; None where there is no more."""
    lengths = _exactly(descriptor, LENGTHS.size)
    if lengths is None:
        return None
    head_length, data_length = LENGTHS.unpack(lengths)
    head, data = _exactly(descriptor, head_length), _exactly(descriptor, data_length)
    return None if head is None or data is None else (json.loads(head), bytes(data))


def _exactly(descriptor: int, length: int) -> bytearray | None:
    found = bytearray(length)
    view = memoryview(found)
    while view:
        count = os.readv(descriptor, [view])
        if not count:
            return None
        view = view[count:]
    return found
