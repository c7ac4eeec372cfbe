"""Pictures that are placed on pages, each as a file of its own."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

from recollect.documents.pdf import _library

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
