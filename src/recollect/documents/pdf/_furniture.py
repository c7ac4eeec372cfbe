"""Running headers, footers and page numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from recollect.documents.pdf._lines import Line
from recollect.documents.pdf._ruled import MARK

_PAGE_NUMBER = re.compile(
    r"(?<=page )\d{1,6}|(?<=seite )\d{1,6}|^\d{1,6}(?=\s|$)|(?<=\s)\d{1,6}$|(?<=[-–|]\s)\d{1,6}|(?<=\b[a-z]-)\d{1,4}$"
)
_LONE_NUMBER = re.compile(r"[-–|\s]*(?:page\s+|[a-z]-)?(?:\d{1,5}|[ivxlc]{1,9})[-–|\s]*", re.IGNORECASE)
_ROMAN = re.compile(r"[-–|\s]*(?:page\s+)?(?=[ivxlc])(c{0,3}(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3}))[-–|\s]*")
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_EDGE_LINES = 2
_OFTEN = 3
_KEPT_CHARACTERS = 300


def drop_furniture(pages: list[list[Line]]) -> list[str]:
    """Takes the lines out of the pages that run through the document, and returns their texts, each once.

    Such a line stands at the upper or lower edge of at least three pages, in the same size of type, and differs
    between them only in a number that grows with the page.

    Args:
        pages: The lines of each page; the list's place tells the page.
    """
    places: list[tuple[int, Line, tuple[str, int]]] = []
    for number, lines in enumerate(pages):
        ordered = sorted(lines, key=lambda line: -line.y1)
        edges = {id(line): line for line in (*ordered[:_EDGE_LINES], *ordered[-_EDGE_LINES:])}
        places += [(number, line, _shape(line, number)) for line in edges.values()]
    often = Counter(shape for _, shape in {(number, shape) for number, _, shape in places})
    dropped: set[int] = set()
    texts: dict[str, None] = {}
    for _, line, shape in places:
        if often[shape] >= (_OFTEN if _LONE_NUMBER.fullmatch(line.text) else max(_OFTEN, len(pages) // 40)):
            dropped.add(id(line))
            if not _LONE_NUMBER.fullmatch(line.text):
                texts.setdefault(_PAGE_NUMBER.sub("", line.text.removeprefix(MARK)).strip(" |-–"))
    if all(id(line) in dropped for lines in pages for line in lines):
        return []  # pages that say the same and nothing else
    for lines in pages:
        lines[:] = [line for line in lines if id(line) not in dropped]
    return _shortened([text for text in texts if text])


def _shortened(texts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for text in dict.fromkeys(texts):
        if sum(map(len, kept)) + len(text) > _KEPT_CHARACTERS:
            break
        kept.append(text)
    return kept


def _shape(line: Line, page: int) -> tuple[str, int]:
    """A line with its page number replaced by the distance to ``page``, the same on every page; and its size."""
    text = line.text.casefold()
    roman = _ROMAN.fullmatch(text)
    if roman is not None:
        return f"roman #{_value(roman[1]) - page}", round(line.size / 2)
    text = _PAGE_NUMBER.sub(lambda match: f"#{int(match[0]) - page}", text, count=1)
    return text, round(line.size / 2)


def _value(roman: str) -> int:
    values = [_ROMAN_DIGITS[digit] for digit in roman]
    return sum(-one if one < max(values[at:]) else one for at, one in enumerate(values))
