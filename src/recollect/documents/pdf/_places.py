"""Where something stands on a page as it is shown: cropped, turned and from its upper left corner."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

from recollect.documents.ocr.readings import Box, PageReading
from recollect.documents.pdf._lines import Line
from recollect.documents.pdf._words import Turn

#: Where lines stand together, as shares of their page's width and height.
Places = Callable[[Iterable[Line]], Box]
# pdfium tells places on a screen in whole dots: on one of so many, errors are far smaller than a line.
_DOTS, _FAR = 1_000_000, 1_000.0


def places_of_page(page: Any) -> Places | None:  # noqa: ANN401 - a handle of pdfium
    """Tells places on a page; None: it has no size."""
    corner, across, up = (_shown(page, *point) for point in ((0.0, 0.0), (_FAR, 0.0), (0.0, _FAR)))
    if corner is None or across is None or up is None:
        return None
    xs = (across[0] - corner[0]) / _FAR, (up[0] - corner[0]) / _FAR
    ys = (across[1] - corner[1]) / _FAR, (up[1] - corner[1]) / _FAR
    if not (any(xs) and any(ys)):
        return None

    def place(lines: Iterable[Line]) -> Box:
        x0, y0, x1, y1 = _around(lines)
        # Pages are turned by quarters: opposite corners stay opposite.
        left, right = corner[0] + x0 * xs[0] + y0 * xs[1], corner[0] + x1 * xs[0] + y1 * xs[1]
        top, bottom = corner[1] + x0 * ys[0] + y0 * ys[1], corner[1] + x1 * ys[0] + y1 * ys[1]
        if left > right:
            left, right = right, left
        if top > bottom:
            top, bottom = bottom, top
        return _inside(left), _inside(top), _inside(right), _inside(bottom)

    return place


def places_of_reading(reading: PageReading) -> Places:
    """Tells places on a page that was recognised."""

    def place(lines: Iterable[Line]) -> Box:
        x0, y0, x1, y1 = _around(lines)
        return reading.box(x0, reading.height - y1, x1, reading.height - y0)

    return place


def _around(lines: Iterable[Line]) -> Box:
    """The box around lines on the page before it is turned; heights grow upwards."""
    boxes = [
        (cell.x0, cell.y0, cell.x1, cell.y1) if not line.turn else _level(line.turn, cell.x0, cell.y0, cell.x1, cell.y1)
        for line in lines
        for cell in line.cells
    ]
    if len(boxes) == 1:
        return boxes[0]
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return min(x0s), min(y0s), max(x1s), max(y1s)


def _level(turn: Turn, x0: float, y0: float, x1: float, y1: float) -> Box:
    """A box of text that was turned to run to the right, where it is on the page."""
    match turn:
        case 90:
            return -y1, x0, -y0, x1
        case 180:
            return -x1, -y1, -x0, -y0
        case 270:
            return y0, -x1, y1, -x0
        case _:
            return x0, y0, x1, y1


def _shown(page: Any, x: float, y: float) -> tuple[float, float] | None:  # noqa: ANN401
    import pypdfium2.raw as pdfium

    across, down = ctypes.c_int(), ctypes.c_int()
    if not pdfium.FPDF_PageToDevice(page, 0, 0, _DOTS, _DOTS, 0, x, y, across, down):
        return None
    return across.value / _DOTS, down.value / _DOTS


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
