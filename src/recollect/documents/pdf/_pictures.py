"""Pages as pictures, and the pictures that are placed on pages."""

from __future__ import annotations

import ctypes
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from recollect.documents.formats import UnreadableError
from recollect.documents.pdf import _library

# A page as a picture, for those who recognise its text.


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


# Pictures that are placed on pages, each as a file of its own.


_MOST_PAGES = 2_000
_MOST_PIXELS = 40_000_000
_LONGEST_SIDE = 1_600
# Less of a page is a mark; more is the page itself, scanned, or its background.
_LEAST_SHARE, _MOST_SHARE = 0.01, 0.9

Box = tuple[float, float, float, float]


def figures_of_pdf(data: bytes) -> Iterator[tuple[bytes, int, Box | None]]:
    """The pictures on pages, in order: JPEG files as they are, others as PNG of 1,600 pixels a side at most.

    Figures that are drawn of lines are none. With each its page, from 1, and its place there, as shares of width and
    height from the upper left corner; None where the page is turned.

    Raises:
        UnreadableError: The file is damaged or protected.
    """
    import pypdfium2
    import pypdfium2.raw as pdfium

    with _library.opened(data) as document:
        for number in range(min(len(document), _MOST_PAGES)):
            try:
                page = document[number]
                for one in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=4):
                    box = _place(page, one.get_bounds())
                    if box is None or not _LEAST_SHARE <= (box[2] - box[0]) * (box[3] - box[1]) <= _MOST_SHARE:
                        continue
                    content = _file(one)
                    if content is not None:
                        yield content, number + 1, box if page.get_rotation() == 0 else None
            except (pypdfium2.PdfiumError, ValueError, TypeError):
                continue  # a page that cannot be drawn costs its pictures alone


def _place(page: Any, bounds: tuple[float, float, float, float]) -> Box | None:  # noqa: ANN401 - pypdfium2 has no types
    left, bottom, right, top = page.get_cropbox()
    width, height = right - left, top - bottom
    if width <= 0 or height <= 0:
        return None
    x0, y0, x1, y1 = bounds
    edges = ((x0 - left) / width, (top - y1) / height, (x1 - left) / width, (top - y0) / height)
    across, above, beyond, below = (round(min(max(edge, 0.0), 1.0), 4) for edge in edges)
    return across, above, beyond, below


def _file(picture: Any) -> bytes | None:  # noqa: ANN401 - as above
    width, height = picture.get_px_size()
    if not 0 < width * height <= _MOST_PIXELS:
        return None
    if list(picture.get_filters()) == ["DCTDecode"]:
        return bytes(picture.get_data())
    pixels = picture.get_bitmap(render=False).to_numpy()
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    step = -(-max(pixels.shape[:2]) // _LONGEST_SIDE)
    pixels = pixels[::step, ::step]
    # Blue comes first there, and what lies behind the colours is left out.
    return _png(pixels[:, :, :1] if pixels.shape[2] < 3 else pixels[:, :, 2::-1])


def _png(pixels: Any) -> bytes:  # noqa: ANN401 - an array of numpy, of shape (height, width, 1 or 3)
    import numpy as np

    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # before each row its filter: none
    rows[:, 1:] = np.ascontiguousarray(pixels).reshape(height, width * channels)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )
