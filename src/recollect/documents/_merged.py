"""Cells of an XLSX sheet that reach over several rows: their text in each of those, before the file is read.

Kept in the upper left cell alone, the name of a group of rows would be missing before all but the first.
"""

from __future__ import annotations

import re

_MERGED = re.compile(rb'<(?:x:)?mergeCell\b[^<>]*\bref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"')
_ROW_END = re.compile(rb"(?=</(?:x:)?row>)")
_ROW = re.compile(rb"<(?:x:)?row\b[^<>]*\sr=\"(\d{1,7})\"[^<>]*(?<!/)>")
# What stands in a cell holds no other, so that the time grows with the text alone.
_CELL = re.compile(rb"<(?:x:)?c\b([^<>]*)(?:(?<=/)>|>(?:[^<]|<(?!/?(?:x:)?c\b))*</(?:x:)?c>)")
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
    found = {place[1] + place[2]: one[0] for one in _CELL.finditer(row) if (place := _PLACE.search(one[1]))}
    return found if sum(map(len, found.values())) == len(row.strip()) else {}


def _column(place: bytes) -> bytes:
    return place.rstrip(b"0123456789")
