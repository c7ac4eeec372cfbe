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

from recollect.documents._merged import with_merged_cells
from recollect.documents._number_formats import BUILT_IN, shown
from recollect.documents._packed import with_parts
from recollect.documents._xml import parse_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

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
