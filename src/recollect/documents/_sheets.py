"""Spreadsheets: of Excel what kreuzberg leaves out, OpenDocument's, formats of numbers, and charts.

kreuzberg gives the numbers that are stored: a share of 12.5 % is ``0.125``, and two million euro are ``2000000``.
Nobody asks for them so. Errors (``#DIV/0!``) have names of its own, and formulas that no program has calculated yet are
nothing at all; here they are the formulas themselves.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any
from xml.sax.saxutils import escape

from recollect.documents._packed import parse_tree, with_parts
from recollect.documents._parsed import Parsed, TextBuilder, one_line, parse_time, tables_of_sheet
from recollect.documents.formats import UnreadableError

# Cells of an XLSX sheet that reach over several rows: their text in each of those, before the file is read.
#
# Kept in the upper left cell alone, the name of a group of rows would be missing before all but the first.

_MERGED = re.compile(rb'<(?:x:)?mergeCell\b[^<>]*\bref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_ROW_END = re.compile(rb"(?=</(?:x:)?row>)")
_ROW = re.compile(rb"<(?:x:)?row\b[^<>]*\sr=\"(\d{1,7})\"[^<>]*(?<!/)>")
# What stands in a cell holds no other, so that the time grows with the text alone.
_ANY_CELL = re.compile(rb"<(?:x:)?c\b([^<>]*)(?:(?<=/)>|>(?:[^<]|<(?!/?(?:x:)?c\b))*</(?:x:)?c>)")
_PLACE = re.compile(rb'\sr="([A-Z]{1,3})(\d{1,7})"')
# Of more rows, or a longer text, a merged cell is a frame for a text rather than the name of a group.
_MOST_ROWS, _MOST_FILLED, _LONGEST = 2_000, 50_000, 1_000


def with_merged_cells(sheet: bytes) -> bytes:
    """A sheet whose merged cells have their text in each row (in their first column) that has something else."""
    wanted = _wanted(sheet)
    if not wanted:
        return sheet
    firsts = {source for row in wanted.values() for _, source in row.values()}
    sources: dict[bytes, bytes] = {}
    written: list[bytes] = []
    for piece in _ROW_END.split(sheet):
        start = max(piece.rfind(b"<row"), piece.rfind(b"<x:row"))
        begun = _ROW.match(piece, start) if start >= 0 else None
        if begun is None:
            written.append(piece)
            continue
        cells = _cells(piece[begun.end() :])
        sources.update({place: cell for place, cell in cells.items() if place in firsts and len(cell) <= _LONGEST})
        missing = wanted.get(int(begun[1]), {})
        # What has nothing beside it is a frame.
        if not any(b"</" in cell for place, cell in cells.items() if _column(place) not in missing):
            missing = {}
        for place, source in missing.values():
            if source in sources:
                cells[place] = _PLACE.sub(b' r="%s"' % place, sources[source], count=1)
        inside = b"".join(cell for _, cell in sorted(cells.items(), key=lambda one: (len(_column(one[0])), one[0])))
        written.append(piece[: begun.end()] + inside if missing else piece)
    return b"".join(written)


def _wanted(sheet: bytes) -> dict[int, dict[bytes, tuple[bytes, bytes]]]:
    """By row and column, the cell to fill and the cell that it is filled from."""
    wanted: dict[int, dict[bytes, tuple[bytes, bytes]]] = {}
    filled = 0
    for left, first, _, last in _MERGED.findall(sheet):
        top, bottom = int(first), int(last)
        filled += max(0, bottom - top)
        if bottom - top > _MOST_ROWS or filled > _MOST_FILLED:
            continue
        for number in range(top + 1, bottom + 1):
            wanted.setdefault(number, {})[left] = (b"%s%d" % (left, number), left + first)
    return wanted


def _cells(row: bytes) -> dict[bytes, bytes]:
    """The cells of a row by their places; none where something else is in it, which would be lost."""
    found = {place[1] + place[2]: one[0] for one in _ANY_CELL.finditer(row) if (place := _PLACE.search(one[1]))}
    return found if sum(map(len, found.values())) == len(row.strip()) else {}


def _column(place: bytes) -> bytes:
    return place.rstrip(b"0123456789")


_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
# No group repeats what another can match, so that the time grows with the text alone.
_CELL = re.compile(
    rb"<(c|x:c)((?:\s[^<>]*)?)>((?:<(?:x:)?f\b[^<>]*/>|<(?:x:)?f\b[^<>]*>[^<]*</(?:x:)?f>)?)<(?:x:)?v>([^<]{1,40})</(?:x:)?v></\1>"
)
# Of sheets that are larger, numbers stay as they are stored: several copies of one stand in the memory meanwhile.
_MOST_BYTES = 32 << 20
_STYLE = re.compile(rb'\ss="(\d{1,6})"')
_TYPE = re.compile(rb'\st="([a-zA-Z]+)"')
_ERROR = re.compile(rb'(<(?:x:)?c\b[^<>]*\st=")e("[^<>]*>)')
_NOT_CALCULATED = re.compile(
    rb"<(c|x:c)((?:\s[^<>]*)?)><(?:x:)?f\b[^<>]*>([^<]{1,500})</(?:x:)?f>(?:<(?:x:)?v\s*/>|<(?:x:)?v></(?:x:)?v>)?</\1>"
)


def cells_as_shown(data: bytes) -> bytes:
    """The file with its formatted numbers as texts, and merged cells in each of their rows.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    return with_parts(data, _parts)


def _parts(archive: zipfile.ZipFile) -> dict[str, bytes]:
    names = set(archive.namelist())
    codes = _codes(archive.read("xl/styles.xml")) if "xl/styles.xml" in names else []
    book = archive.read("xl/workbook.xml") if "xl/workbook.xml" in names else b""
    since_1904 = re.search(rb'\bdate1904="(?:1|true)"', book) is not None

    def number(match: re.Match[bytes]) -> bytes:
        tag, attributes, formula, value = match.groups()
        style, kind = _STYLE.search(attributes), _TYPE.search(attributes)
        if style is None or (kind is not None and kind[1] != b"n") or int(style[1]) >= len(codes):
            return match[0]
        code = codes[int(style[1])]
        text = shown(value.decode("ascii", "replace"), code, since_1904=since_1904) if code else None
        return match[0] if text is None else _text_cell(tag, attributes, formula, escape(text).encode())

    changed: dict[str, bytes] = {}
    left = _MOST_BYTES
    for name in sorted(names):
        if _SHEET.fullmatch(name) and archive.getinfo(name).file_size <= left:
            left -= archive.getinfo(name).file_size
            part = archive.read(name)
            written = _CELL.sub(number, part) if any(codes) else part
            written = _NOT_CALCULATED.sub(_formula, _ERROR.sub(rb"\1str\2", written))
            written = with_merged_cells(written)
            if written != part:
                changed[name] = written
    return changed


def _formula(match: re.Match[bytes]) -> bytes:
    """A cell whose formula has no value; one whose value is an empty text stays."""
    tag, attributes, formula = match.groups()
    kind = _TYPE.search(attributes)
    return match[0] if kind is not None and kind[1] == b"str" else _text_cell(tag, attributes, b"", b"=" + formula)


def _text_cell(tag: bytes, attributes: bytes, formula: bytes, text: bytes) -> bytes:
    prefix = tag[:-1]
    kept = _TYPE.sub(b"", attributes)
    return b'<%s%s t="str">%s<%sv>%s</%sv></%s>' % (tag, kept, formula, prefix, text, prefix, tag)


def _codes(styles: bytes) -> Sequence[str]:
    """The format of each cell style; empty: none that changes how a number is written."""
    root = parse_tree(styles)
    if root is None:
        return []
    own = {_number(one.get("numFmtId")): one.get("formatCode") or "" for one in _all(root, "numFmts", "numFmt")}
    return [
        own.get(number, BUILT_IN.get(number, ""))
        for number in (_number(one.get("numFmtId")) for one in _all(root, "cellXfs", "xf"))
    ]


def _all(root: Any, group: str, name: str) -> list[Any]:  # noqa: ANN401 - elements of lxml, which has no types
    return list(root.xpath(f"./*[local-name() = '{group}']/*[local-name() = '{name}']"))


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 10 else 0


# Numbers as a spreadsheet shows them (ECMA-376, 18.8.31): percentages, currencies, thousands, months, hours.


#: The formats that have a number and no text in a file.
BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0;-"$"#,##0',
    6: '"$"#,##0;-"$"#,##0',
    7: '"$"#,##0.00;-"$"#,##0.00',
    8: '"$"#,##0.00;-"$"#,##0.00',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    41: "#,##0;(#,##0);-",
    42: '"$"#,##0;("$"#,##0);-',
    43: "#,##0.00;(#,##0.00);-",
    44: '"$"#,##0.00;("$"#,##0.00);-',
}
_LONGEST_FORMAT = 200
_MOST_DIGITS = 30
_TOKEN = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|E[+-]|AM/PM|A/P|General|.', re.IGNORECASE | re.DOTALL)
_PLACES = frozenset("0#?")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def shown(value: str, code: str, *, since_1904: bool = False) -> str | None:
    """A number as a cell of that format shows it, or None where it is better left as it is stored.

    A date with a day stays what readers of the file make of it (``2024-03-05``): how it is shown says in what country
    the sheet was made, and not which day it is.

    Args:
        value: As the file has it.
        code: The format.
        since_1904: Whether days are counted from 1904 on.
    """
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS or len(code) > _LONGEST_FORMAT:
        return None
    sections = _sections(code)
    negative = number < 0
    if len(sections) == 1 or (number == 0 and len(sections) < 3):
        section, sign = sections[0], "-" if negative else ""
    else:
        section, sign = sections[2 if number == 0 else 1 if negative else 0], ""
    if _is_time(section):
        return _moment(number, section, since_1904=since_1904)
    text = _written(abs(number), section)
    if text is None:
        return None
    # What rounds to nothing has no sign either.
    return text if not any(map(str.isdigit, text)) or not text.strip("0.,% ") else sign + text


@lru_cache(maxsize=500)
def _sections(code: str) -> tuple[tuple[str, ...], ...]:
    sections: list[list[str]] = [[]]
    for token in _TOKEN.findall(code):
        if token == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    return tuple(map(tuple, sections[:4]))


def _is_time(section: tuple[str, ...]) -> bool:
    return any(token in set("ymdhsYMDHS") or re.fullmatch(r"\[[hms]+\]", token, re.IGNORECASE) for token in section)


def _literal(token: str) -> str:
    """What a token writes that stands for no digit."""
    if token.startswith('"'):
        return token[1:-1]
    if token.startswith("\\"):
        return token[1:]
    if token.startswith("[$"):
        return token[2:-1].partition("-")[0]
    # Spaces as wide as another character, and what fills the cell.
    return "" if token.startswith(("_", "*", "[")) else token


def _written(number: Decimal, section: tuple[str, ...]) -> str | None:
    if any(
        token.lower() == "general" or token.startswith(("E", "e", "[<", "[>", "[=")) or token in "/@"
        for token in section
    ):
        return None
    at = [index for index, token in enumerate(section) if token in _PLACES]
    if not at:
        text = "".join(map(_literal, section)).strip()
        return text or None
    head, tail = section[: at[0]], section[at[-1] + 1 :]
    body = section[at[0] : at[-1] + 1]
    scaled = number * Decimal(100) ** sum(token == "%" for token in section)
    while tail[:1] == (",",):
        tail, scaled = tail[1:], scaled / 1000
    point = body.index(".") if "." in body else len(body)
    whole, fraction = body[:point], body[point + 1 :]
    between = [token for token in (*whole, *fraction) if token not in _PLACES and token != ","]
    places = sum(token in _PLACES for token in fraction)
    rounded = scaled.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    digits, _, decimals = f"{rounded:f}".partition(".")
    digits = digits.lstrip("0").rjust(whole.count("0"), "0")
    if between:
        return _filled(digits, whole) if not fraction else None
    if "," in whole:
        digits = f"{int(digits or '0'):,}".rjust(len(digits), "0") if digits else ""
    least = sum(token == "0" for token in fraction)
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    text = f"{digits}.{decimals}" if decimals else digits
    return ("".join(map(_literal, head)) + text + "".join(map(_literal, tail))).strip() or None


def _filled(digits: str, whole: tuple[str, ...]) -> str:
    """Digits from the right into places with other characters between them, as telephone numbers have."""
    left = list(digits)
    parts: list[str] = []
    first = True
    for index in range(len(whole) - 1, -1, -1):
        token = whole[index]
        if token in _PLACES:
            parts.append(left.pop() if left else "0" if token == "0" else "")
        elif token != ",":
            parts.append(_literal(token))
        first = first and token in _PLACES
    return "".join(left) + "".join(reversed(parts))


def _moment(number: Decimal, section: tuple[str, ...], *, since_1904: bool) -> str | None:
    """A month without a day, or a time of day or a span of hours without a date; None for everything else."""
    letters = "".join(token.lower() for token in section if re.fullmatch(r"[ymdhs]|\[[hms]+\]", token, re.IGNORECASE))
    if "d" in letters or number < 0 or number > 2_958_465:
        return None
    if "y" in letters and "h" not in letters and "s" not in letters:
        begins = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)
        moment = begins + timedelta(days=int(number))
        if "m" not in letters:
            return str(moment.year)
        return f"{_MONTHS[moment.month - 1]} {moment.year}" if "mmm" in letters else f"{moment.year}-{moment.month:02}"
    if "y" in letters or not ("h" in letters or "s" in letters):
        return None
    seconds = int((number * 86_400).to_integral_value(rounding=ROUND_HALF_UP))
    if "[" not in letters and seconds >= 86_400:
        return None
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}"
    return f"{text}:{seconds % 60:02}" if "s" in letters else text


# OpenDocument spreadsheets, which hold what their cells show.
#
# kreuzberg 4.10 gives stored values in its own form, leaves out cells without a type, and finds no text at all where
# rows are repeated to the edges of a sheet before the last that says something.


_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
# Programs repeat what is empty to the edges of a sheet; what says something is repeated by people.
_MOST_REPEATS = 1_000
_WIDEST = 16_384
_VALUES = ("string-value", "date-value", "time-value", "boolean-value", "value")

Element = Any  # of lxml, which has no types


def parse_ods(data: bytes) -> Parsed:
    """A spreadsheet's tables, sheet by sheet.

    Raises:
        UnreadableError: It is damaged.
    """
    builder = TextBuilder()
    names: list[str] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            facts = _facts(archive)
            with archive.open("content.xml") as content:
                for name, rows in _sheets(content):
                    names.append(name)
                    builder.heading(2, name)
                    for table in tables_of_sheet(rows):
                        builder.table(table)
    except MemoryError:
        raise
    except Exception as error:  # zlib.error, struct.error and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: its packed parts cannot be read") from error
    text, headings = builder.result()
    modified = facts.pop("date", None) or facts.pop("creation-date", None)
    return Parsed(
        content=text if len(text) > sum(len(one.title) + len("## \n\n") for one in headings) else "",
        headings=headings,
        title=facts.get("title"),
        event_time=parse_time(modified) if modified else None,
        metadata={"sheets": len(names), **({"author": facts["creator"]} if "creator" in facts else {})},
    )


def _facts(archive: zipfile.ZipFile) -> dict[str, str]:
    root = parse_tree(archive.read("meta.xml")) if "meta.xml" in archive.namelist() else None
    if root is None:
        return {}
    found = {name: root.findtext(f".//{{*}}{name}") for name in ("title", "creator", "date", "creation-date")}
    return {name: one_line(text)[:500] for name, text in found.items() if text and text.strip()}


def _sheets(content: Any) -> Iterator[tuple[str, list[list[str]]]]:  # noqa: ANN401 - an open part of an archive
    """The sheets, by name, with the texts of their cells."""
    from lxml import etree

    rows: list[list[str]] = []
    reaching: dict[int, tuple[str, int]] = {}
    tags = (f"{_TABLE}table", f"{_TABLE}table-row")
    # Not mended: what it would leave out of a damaged sheet, nobody would miss.
    parser = {"resolve_entities": False, "load_dtd": False, "no_network": True, "huge_tree": False}
    for event, one in etree.iterparse(content, events=("start", "end"), tag=tags, **parser):
        if event == "start":
            if one.tag == tags[0]:
                rows, reaching = [], {}
        elif one.tag == tags[1]:
            row = _row(one, reaching)
            rows += [row] * (_repeats(one, "rows") if row else 1)
            one.clear()
        else:
            yield one_line(one.get(f"{_TABLE}name") or ""), rows
            one.clear()


def _row(row: Element, reaching: dict[int, tuple[str, int]]) -> list[str]:
    """The texts of a row, to the last that is not empty.

    Args:
        row: Of cells.
        reaching: What cells of rows above say that reach down here, and over how many rows still, by their columns.
    """
    texts: list[str] = []
    covered: dict[int, str] = {}
    for cell in row:
        if cell.tag not in {f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"} or len(texts) > _WIDEST:
            continue
        at, text = len(texts), _text(cell)
        if cell.tag.endswith("}covered-table-cell"):
            text = ""
            if at in reaching:
                covered[at], left = reaching.pop(at)
                if left > 1:
                    reaching[at] = (covered[at], left - 1)
        elif text and (below := _count(cell, "number-rows-spanned") - 1) > 0:
            reaching[at] = (text, below)
        texts += [text] * (_repeats(cell, "columns") if text else min(_count(cell, "number-columns-repeated"), _WIDEST))
    if any(texts):
        # What has nothing beside it is a frame.
        for at, text in covered.items():
            texts[at] = text
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _text(cell: Element) -> str:
    """What a cell shows; without a text of its own, its value."""
    shown = one_line(" ".join(_words(paragraph) for paragraph in cell.iterchildren(f"{_TEXT}p", f"{_TEXT}h")))
    if shown or cell.get(f"{_OFFICE}value-type") is None:
        return shown
    return next((one_line(value) for name in _VALUES if (value := cell.get(f"{_OFFICE}{name}"))), "")


def _words(paragraph: Element) -> str:
    spaces = {f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"}
    parts: list[str] = []
    for one in paragraph.iter():
        if isinstance(one.tag, str):
            parts.append(" " if one.tag in spaces else one.text or "")
            parts.append(one.tail or "" if one is not paragraph else "")
    return "".join(parts)


def _repeats(one: Element, what: str) -> int:
    return min(_count(one, f"number-{what}-repeated"), _MOST_REPEATS)


def _count(one: Element, name: str) -> int:
    told = one.get(f"{_TABLE}{name}") or ""
    return max(1, int(told)) if told.isascii() and told.isdigit() and len(told) < 10 else 1


# The numbers that a chart of an office file shows, as the file keeps them beside the drawing.


_MOST_SERIES, _MOST_POINTS = 60, 2_000


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as a table.

    Attributes:
        title: Above it; empty: it has none.
        rows: The names of its series behind an empty cell, then for each category its name and values.
    """

    title: str
    rows: Sequence[Sequence[str]]


def read_chart(part: bytes) -> Chart | None:
    """A chart of DrawingML; None where it keeps no numbers.

    Args:
        part: Such as ``ppt/charts/chart1.xml``.
    """
    root = parse_tree(part)
    series = [] if root is None else list(root.iter("{*}ser"))[:_MOST_SERIES]
    if not series:
        return None
    names = [one_line(" ".join(_points(one.find("{*}tx")).values())) for one in series]
    labels: dict[int, str] = {}
    for one in series:
        for at, label in _points(_first(one, "cat", "xVal")).items():
            labels.setdefault(at, label)
    values = [_points(_first(one, "val", "yVal")) for one in series]
    held = sorted({at for one in values for at in one})
    if not held:
        return None
    rows = [[labels.get(at, ""), *(one.get(at, "") for one in values)] for at in held]
    title = next(root.iter("{*}title"), None)
    own = title is not None and title.getparent().tag.endswith("}chart")
    return Chart(_words_of(title) if own else "", [["", *names], *rows])


def _first(series: Element, *names: str) -> Element:
    return next((found for name in names if (found := series.find(f"{{*}}{name}")) is not None), None)


def _points(part: Element) -> dict[int, str]:
    """The texts of a reference's points by their numbers; of names on several levels those of the lowest."""
    if part is None:
        return {}
    held = next(part.iter("{*}strCache", "{*}numCache", "{*}lvl", "{*}strLit", "{*}numLit"), None)
    if held is None:
        said = next(part.iter("{*}v"), None)
        return {} if said is None or not said.text else {0: said.text}
    code = held.findtext("{*}formatCode") or ""
    return dict(_values(held, code))


def _values(held: Element, code: str) -> Iterator[tuple[int, str]]:
    for one in list(held.iterchildren("{*}pt"))[:_MOST_POINTS]:
        number, text = one.get("idx") or "", one.findtext("{*}v") or ""
        if number.isascii() and number.isdigit() and len(number) < 10 and text.strip():
            yield int(number), _shown(one_line(text), one.get("formatCode") or code) if code else one_line(text)


def _shown(value: str, code: str) -> str:
    """A number as its axis shows it; without the digits that only a computer keeps."""
    text = shown(value, code)
    if text is not None:
        return text
    try:
        return f"{float(value):.12g}" if "e" not in value.lower() else value
    except ValueError:
        return value


def _words_of(title: Element) -> str:
    return one_line(
        " ".join(one.text or "" for one in title.iter("{*}t")) or " ".join(_points(title.find("{*}tx")).values())
    )
