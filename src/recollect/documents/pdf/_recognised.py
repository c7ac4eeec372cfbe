"""Lines that were recognised on a page, as the segments that everything else is made of."""

from __future__ import annotations

import re

from recollect.documents.ocr.readings import PageReading
from recollect.documents.pdf._lines import is_value
from recollect.documents.pdf._words import HYPHEN, RIGHT_TO_LEFT, UNORDERED, Segment

_FAR_SIGN = 90.0
_SMALLER, _LARGER = 0.8, 1.25
_ENDS_SPLIT = re.compile(r"(?<=[^\W\d_]{2})-$")


def segments_of_reading(reading: PageReading) -> list[Segment]:
    """A segment a line; heights grow upwards, and which column comes first is for the layout to find out."""
    segments = [
        Segment(
            _ENDS_SPLIT.sub(HYPHEN, one.text),
            one.x0,
            one.x1,
            reading.height - one.y1,
            reading.height - one.y0,
            bold=False,
            order=UNORDERED,
            rtl=RIGHT_TO_LEFT.search(one.text) is not None,
        )
        for one in reading.lines
        if one.text
    ]
    _level_sizes(segments)
    for one in segments:
        if one.text == "S" and any(_is_its_value(one, other) for other in segments):
            one.text = "$"
    return segments


def _level_sizes(segments: list[Segment]) -> None:
    """Gives most lines one size: how high a recognised box is depends on the letters that stick out of it."""
    if not segments:
        return
    sizes = sorted((one.size, len(one.text)) for one in segments)
    behind, half = 0, sum(length for _, length in sizes) / 2
    usual = sizes[-1][0]
    for size, length in sizes:
        behind += length
        if behind >= half:
            usual = size
            break
    for one in segments:
        if _SMALLER * usual <= one.size <= _LARGER * usual:
            middle = (one.y0 + one.y1) / 2
            one.y0, one.y1 = middle - usual / 2, middle + usual / 2


def _is_its_value(sign: Segment, other: Segment) -> bool:
    """Whether a value stands behind what may be its sign of a currency."""
    level = abs(sign.y0 + sign.y1 - other.y0 - other.y1) < sign.size
    return level and 0 <= other.x0 - sign.x0 < _FAR_SIGN and is_value(other.text)
