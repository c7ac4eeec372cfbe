"""Cells of XLSX files put in place as they are shown, before the file is read.

kreuzberg gives the numbers that are stored: a share of 12.5 % is ``0.125``, and two million euro are ``2000000``.
Nobody asks for them so. Errors (``#DIV/0!``) have names of its own, and formulas that no program has calculated yet are
nothing at all; here they are the formulas themselves.
"""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from recollect.documents._number_formats import BUILT_IN, shown
from recollect.documents._packed import with_parts
from recollect.documents._xml import parse_tree

if TYPE_CHECKING:
    from collections.abc import Sequence


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
