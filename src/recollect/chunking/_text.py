"""Whitespace, words, and cuts that do not tear a character apart."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.chunking.base import Span

_SPACE = re.compile(r"\s*")
_GAP = re.compile(r"\s+")
_JOINER = "\u200d"
_LONGEST_CLUSTER = 16


def skip_space(text: str, position: int) -> int:
    """The first position from ``position`` on that holds no whitespace, or the text's length."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def trim(text: str, start: int, end: int) -> Span:
    """The span without whitespace at its ends; an empty span where it holds nothing else."""
    start = min(skip_space(text, start), end)
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def whole_character_cut(text: str, position: int, floor: int) -> int:
    """The last position in ``floor + 1 … position`` that separates no mark from its base.

    Where there is none nearby, ``position`` itself: a limit is kept in any case.
    """
    for cut in range(position, max(floor, position - _LONGEST_CLUSTER), -1):
        if cut >= len(text) or not _joins(text, cut):
            return cut
    return position


def last_word(text: str, floor: int, limit: int) -> int | None:
    """The last position in ``floor + 1 … limit`` that begins a word, or None.

    ``text[limit]`` must not be whitespace.
    """
    if limit > floor and text[limit - 1].isspace():
        return limit
    head = text[floor:limit].rsplit(None, 1)
    begin = limit - len(head[-1]) if head else floor
    return begin if begin > floor else None


def first_word(text: str, start: int, end: int) -> int:
    """The first position in ``start … end`` that begins a word; ``end`` where there is none."""
    if start == 0 or text[start - 1].isspace():
        return min(skip_space(text, start), end)
    gap = _GAP.search(text, start, end)
    return min(skip_space(text, gap.start()), end) if gap else end


def _joins(text: str, cut: int) -> bool:
    after, before = text[cut], text[cut - 1]
    return (
        unicodedata.category(after).startswith("M")
        or after == _JOINER
        or before == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or (before, after) == ("\r", "\n")
    )
