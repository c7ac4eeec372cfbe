"""A page as a picture, for those who recognise its text."""

from __future__ import annotations

import ctypes
from typing import Any

from recollect.documents.formats import UnreadableError
from recollect.documents.pdf import _library

_POINTS_AN_INCH = 72
_DOTS_AN_INCH = 170
_IMAGE, _PATH, _FORM = 3, 2, 5
# A page that shows no words and is drawn of so many lines has its words drawn as lines.
_MANY_PATHS = 200
#: Characters that a scanned page may have beside its picture: a number, a stamp.
FEW_CHARACTERS = 40
_MOST_OF_PAGE = 0.4
_LARGE = 0.02


def draw_page(data: bytes, number: int, *, longest_side: int) -> tuple[Any, tuple[float, float]]:
    """A page's pixels as it is shown, blue first, and its size in points.

    Args:
        data: The whole file.
        number: The page, from 1.
        longest_side: In pixels, however large the page is.

    Raises:
        UnreadableError: The file is damaged or protected, or has no such page.
    """
    import numpy as np
    import pypdfium2

    with _library.opened(data) as document:
        try:
            page = document[number - 1]
            size = page.get_size()
            if min(size) <= 0:
                raise UnreadableError(f"is damaged: page {number} has no size")
            scale = min(_DOTS_AN_INCH / _POINTS_AN_INCH, longest_side / max(size))
            drawn = page.render(scale=scale, fill_color=(255, 255, 255, 255)).to_numpy()
            pixels = np.ascontiguousarray(np.broadcast_to(drawn[:, :, :3], (*drawn.shape[:2], 3)))
        except (pypdfium2.PdfiumError, IndexError) as error:
            raise UnreadableError(f"is damaged: page {number} cannot be drawn ({error})") from error
    return pixels, size


def is_picture(page: Any, characters: int) -> bool:  # noqa: ANN401 - a handle of pdfium
    """Whether what a page says is in pictures, or in words that are drawn as lines.

    Args:
        page: It.
        characters: How many it has as text.
    """
    import pypdfium2.raw as pdfium

    if characters > FEW_CHARACTERS:
        return False
    whole = max(1.0, pdfium.FPDF_GetPageWidthF(page) * pdfium.FPDF_GetPageHeightF(page))
    covered, paths = 0.0, 0
    edges = [ctypes.c_float() for _ in range(4)]
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        thing = pdfium.FPDFPage_GetObject(page, index)
        kind = pdfium.FPDFPageObj_GetType(thing)
        paths += kind == _PATH
        if kind in {_IMAGE, _FORM} and pdfium.FPDFPageObj_GetBounds(thing, *edges):
            left, bottom, right, top = (edge.value for edge in edges)
            covered += max(0.0, right - left) * max(0.0, top - bottom)
    if characters:
        return bool(covered >= _MOST_OF_PAGE * whole)
    return bool(covered >= _LARGE * whole or paths >= _MANY_PATHS)
