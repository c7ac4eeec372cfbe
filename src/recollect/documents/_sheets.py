"""Numbers of XLSX and ODS files put in place as they are shown, before the file is read.

kreuzberg gives the numbers that are stored: a share of 12.5 % is ``0.125``, and two million euro are ``2000000``.
Nobody asks for them so.
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

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
# No group repeats what another can match, so that the time grows with the text alone.
_CELL = re.compile(
    rb"<(c|x:c)((?:\s[^<>]*)?)>((?:<(?:x:)?f\b[^<>]*/>|<(?:x:)?f\b[^<>]*>[^<]*</(?:x:)?f>)?)<(?:x:)?v>([^<]{1,40})</(?:x:)?v></\1>"
)
# Of sheets that are larger, numbers stay as they are stored: several copies of one stand in the memory meanwhile.
_MOST_BYTES = 32 << 20
_STYLE = re.compile(rb'\ss="(\d{1,6})"')
_TYPE = re.compile(rb'\st="([a-zA-Z]+)"')
_ODS_CELL = re.compile(
    rb"(<table:table-cell\b[^<>]*?)\soffice:value-type=\"(?:float|percentage|currency)\"([^<>]*>)"
    rb"(?=<text:p\b[^<>]*>[^<]*\S[^<]*</text:p></table:table-cell>)"
)
_ODS_VALUE = re.compile(rb'\s(?:office:value|calcext:value-type|office:currency)="[^"]*"')


def numbers_of_xlsx(data: bytes) -> bytes:
    """The file with its formatted numbers as texts.

    Raises:
        UnreadableError: A packed part is damaged.
    """
    return with_parts(data, _xlsx_parts)


def numbers_of_ods(data: bytes) -> bytes:
    """The same of an OpenDocument spreadsheet, which holds what its cells show.

    Raises:
        UnreadableError: A packed part is damaged.
    """

    def changed(archive: zipfile.ZipFile) -> dict[str, bytes]:
        known = "content.xml" in archive.namelist() and archive.getinfo("content.xml").file_size <= _MOST_BYTES
        content = archive.read("content.xml") if known else b""
        shown_ = _ODS_CELL.sub(_as_string, content)
        return {"content.xml": shown_} if shown_ != content else {}

    return with_parts(data, changed)


def _as_string(match: re.Match[bytes]) -> bytes:
    return _ODS_VALUE.sub(b"", match[1]) + b' office:value-type="string"' + _ODS_VALUE.sub(b"", match[2])


def _xlsx_parts(archive: zipfile.ZipFile) -> dict[str, bytes]:
    names = set(archive.namelist())
    codes = _codes(archive.read("xl/styles.xml")) if "xl/styles.xml" in names else []
    if not any(codes):
        return {}
    book = archive.read("xl/workbook.xml") if "xl/workbook.xml" in names else b""
    since_1904 = re.search(rb'\bdate1904="(?:1|true)"', book) is not None

    def cell(match: re.Match[bytes]) -> bytes:
        attributes, formula, value = match[2], match[3], match[4]
        style, kind = _STYLE.search(attributes), _TYPE.search(attributes)
        if style is None or (kind is not None and kind[1] != b"n") or int(style[1]) >= len(codes):
            return match[0]
        code = codes[int(style[1])]
        text = shown(value.decode("ascii", "replace"), code, since_1904=since_1904) if code else None
        if text is None:
            return match[0]
        kept = _TYPE.sub(b"", attributes) + b' t="str"'
        tag = match[1]
        prefix = b"x:" if tag == b"x:c" else b""
        written = escape(text).encode()
        return b"<%s%s>%s<%sv>%s</%sv></%s>" % (tag, kept, formula, prefix, written, prefix, tag)

    changed: dict[str, bytes] = {}
    left = _MOST_BYTES
    for name in sorted(names):
        if _SHEET.fullmatch(name) and archive.getinfo(name).file_size <= left:
            left -= archive.getinfo(name).file_size
            part = archive.read(name)
            written = _CELL.sub(cell, part)
            if written != part:
                changed[name] = written
    return changed


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
