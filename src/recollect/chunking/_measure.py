"""Lengths in characters or tokens, how far a limit reaches, and where neither words nor characters are torn."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Protocol

from recollect.chunking.tokens import count_tokens
from recollect.chunking.tokens import tokenize as default_tokenize

if TYPE_CHECKING:
    from recollect.chunking.base import Span, Tokenize, Unit


# Whitespace, words, and cuts that do not tear a character apart.


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


class Ruler(Protocol):
    """Measures spans of one text in one unit."""

    def length(self, start: int, end: int) -> int:
        """The span's length."""
        ...

    def furthest_end(self, start: int, limit: int) -> int:
        """The largest end of a span from ``start`` of at most ``limit`` units, at least one character away."""
        ...

    def earliest_start(self, end: int, limit: int) -> int:
        """The smallest start of a span up to ``end`` of at most ``limit`` units."""
        ...

    def token_count(self, start: int, end: int) -> int:
        """The span's length in tokens, whatever the unit."""
        ...


class CharacterRuler:
    """Measures in code points."""

    def __init__(self, text: str, tokenize: Tokenize | None) -> None:
        self._text = text
        self._tokenize = tokenize

    def length(self, start: int, end: int) -> int:
        return end - start

    def furthest_end(self, start: int, limit: int) -> int:
        return min(start + limit, len(self._text))

    def earliest_start(self, end: int, limit: int) -> int:
        return max(end - limit, 0)

    def token_count(self, start: int, end: int) -> int:
        piece = self._text[start:end]
        return count_tokens(piece) if self._tokenize is None else len(self._tokenize(piece))


class TokenRuler:
    """Measures in the tokens of the whole text that a span touches."""

    def __init__(self, text: str, tokenize: Tokenize | None) -> None:
        self._end_of_text = len(text)
        self._starts = array("q")
        self._ends = array("q")
        # Tokenisers may report empty spans and several tokens for one character; ascending arrays allow bisection.
        for start, end in (tokenize or default_tokenize)(text):
            if start < end:
                self._starts.append(max(start, self._starts[-1] if self._starts else 0))
                self._ends.append(max(end, self._ends[-1] if self._ends else 0))

    def length(self, start: int, end: int) -> int:
        return max(bisect_left(self._starts, end) - bisect_right(self._ends, start), 0)

    def furthest_end(self, start: int, limit: int) -> int:
        beyond = bisect_right(self._ends, start) + limit
        if beyond >= len(self._starts):
            return self._end_of_text
        return max(self._starts[beyond], start + 1)

    def earliest_start(self, end: int, limit: int) -> int:
        before = bisect_left(self._starts, end) - limit
        return min(self._ends[before - 1], end) if before > 0 else 0

    def token_count(self, start: int, end: int) -> int:
        return self.length(start, end)


def ruler_for(text: str, *, unit: Unit, tokenize: Tokenize | None) -> Ruler:
    """The ruler of a text in a unit; ``tokenize`` None means the default tokeniser."""
    return CharacterRuler(text, tokenize) if unit == "characters" else TokenRuler(text, tokenize)
