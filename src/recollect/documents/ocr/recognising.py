"""A page of a file, drawn and recognised; in this process, whatever it costs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.documents._text import clean
from recollect.documents.formats import UnreadableError, detect
from recollect.documents.ocr import _engine, _pictures
from recollect.documents.ocr.readings import PageReading, ReadingCache, ReadLine, picture_hash, turned
from recollect.documents.pdf import draw_page

# Smaller pictures are marks and buttons, and a page of one colour is blank.
_LEAST_CONTRAST = 16
_LEAST_SIDE = 24
_LONG_ENOUGH = 5.0
_LEAST_LONG = 3
_LEAST_SLANT, _MOST_SLANT = 0.002, 0.35


def load() -> None:
    """Loads the engine, so that what it takes is not counted as a file's."""
    _engine.engine()


def recognise_page(
    data: bytes, name: str, mime_type: str | None, number: int, *, cache: Path | None, owner: str = ""
) -> PageReading:
    """What is written on a page.

    Args:
        data: The whole file, a PDF or a picture.
        name: Its name.
        mime_type: As its sender declared it.
        number: The page, from 1.
        cache: The folder where what was recognised is kept; None: nowhere.
        owner: For whom it is kept.

    Raises:
        UnreadableError: The file is damaged, or the page too large.
    """
    pixels, size = _drawn(data, name, mime_type, number)
    kept = None if cache is None else ReadingCache(cache)
    key = picture_hash(_engine.name(), pixels.shape, pixels.tobytes(), owner=owner)
    reading = None if kept is None else kept.get(key)
    if reading is None:
        reading = _reading(pixels, size)
        if kept is not None:
            kept.put(key, reading)
    return reading


def picture_pages(data: bytes) -> int:
    """The pages of a picture.

    Raises:
        UnreadableError: It is damaged.
    """
    with _pictures.opened(data) as picture:
        return _pictures.page_count(picture)


def _drawn(data: bytes, name: str, mime_type: str | None, number: int) -> tuple[Any, tuple[float, float]]:
    match detect(data, name=name, mime_type=mime_type).kind:
        case "pdf":
            return draw_page(data, number, longest_side=_engine.LONGEST_SIDE)
        case "picture":
            with _pictures.opened(data) as picture:
                return _pictures.page(picture, number)
        case _:
            raise UnreadableError("has no pages that can be drawn")


def _reading(pixels: Any, size: tuple[float, float]) -> PageReading:  # noqa: ANN401 - an array of numpy
    height, width = pixels.shape[:2]
    if min(width, height) < _LEAST_SIDE or int(pixels.max()) - int(pixels.min()) < _LEAST_CONTRAST:
        return PageReading(*size, 0, 0.0, ())
    found, quarters = _engine.recognise(pixels)
    scale = size[0] / width
    if quarters % 2:
        size = (size[1], size[0])
    slant = _slant(found)
    lines = tuple(_line(one, scale, slant, size) for one in found)
    return PageReading(round(size[0], 2), round(size[1], 2), quarters, round(slant, 5), lines)


def _slant(found: Sequence[_engine.Found]) -> float:
    """The angle of most long lines."""
    angles = [
        math.atan2(one.corners[1][1] - one.corners[0][1], one.corners[1][0] - one.corners[0][0])
        for one in found
        if one.width > _LONG_ENOUGH * one.height
    ]
    middle = statistics.median(angles) if len(angles) >= _LEAST_LONG else 0.0
    return middle if _LEAST_SLANT < abs(middle) < _MOST_SLANT else 0.0


def _line(found: _engine.Found, scale: float, slant: float, size: tuple[float, float]) -> ReadLine:
    corners = [turned((x * scale, y * scale), slant, *size) for x, y in found.corners]
    across, down = [x for x, _ in corners], [y for _, y in corners]
    box = (min(across), min(down), max(across), max(down))
    return ReadLine(clean(" ".join(found.text.split())), *(round(edge, 1) for edge in box))
