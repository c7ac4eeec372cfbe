"""What every chunking strategy promises, how its parameters are checked, and the default tokeniser."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, Protocol, get_args

from recollect.errors import UsageError
from recollect.model import Chunk, Document

Span = tuple[int, int]

#: Splits a text into tokens and returns their character spans, in order.
Tokenize = Callable[[str], Sequence[Span]]

#: Returns one similarity per pair of neighbouring texts: n texts give n - 1 numbers in -1..1.
NeighbourSimilarity = Callable[[Sequence[str]], Sequence[float]]

Unit = Literal["characters", "tokens"]


class ChunkingStrategy(Protocol):
    """Cuts a document into chunks.

    For every document: ``content[c.start_offset:c.end_offset] == c.text`` for each chunk; every character that is
    not whitespace lies in at least one chunk; positions are 0…n-1 in order of start offsets; no chunk is longer
    than the strategy's limit; no chunk is empty or whitespace alone. A document of whitespace alone has no chunks.
    """

    def chunk(self, document: Document) -> list[Chunk]:
        """The document's chunks, in order."""
        ...


# Checks of a strategy's parameters, in words for the person who set them.


def require_whole_number(name: str, value: object, *, at_least: int) -> None:
    """Raise unless ``value`` is an int of at least ``at_least``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    if value < at_least:
        raise UsageError(f"{name} ({value}) must be at least {at_least}")


def require_strings(name: str, value: object) -> None:
    """Raise unless ``value`` is a list or tuple that holds a string which is not empty, and nothing but strings."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value) or not any(value):
        raise UsageError(f"{name} must be a list of strings, not {value!r}")


def require_smaller(name: str, value: int, limit_name: str, limit: int) -> None:
    """Raise unless ``value < limit``."""
    if value >= limit:
        raise UsageError(f"{name} ({value}) must be smaller than {limit_name} ({limit})")


def require_unit(unit: object) -> None:
    """Raise unless ``unit`` is one of the units."""
    if unit not in get_args(Unit):
        raise UsageError(f"unit must be one of {', '.join(get_args(Unit))}, not {unit!r}")


def require_number(name: str, value: object, *, low: float, high: float) -> None:
    """Raise unless ``value`` is a number in ``low … high``."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise UsageError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")


# The default tokeniser: words, punctuation marks and single CJK characters, in any script.


#: A longer run of letters counts as several tokens, so that a token limit bounds the characters as well.
LONGEST_TOKEN = 32

# Faster, and the same on ASCII text: \x1c-\x1f are whitespace to str.isspace, though not to re.ASCII.
_ASCII = re.compile(rf"\w{{1,{LONGEST_TOKEN}}}|[^\w\s\x1c-\x1f]", re.ASCII)
# Scripts that are written without spaces and whose characters carry about a word each.
_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Beyond U+FFFF the expression engine tries range after range, so a few wide ones stand for some hundred exact ones:
# historic and lesser-used scripts, mathematical letters, scripts again.
_OTHER_PLANES = "\U00010000-\U0001afff\U0001d400-\U0001d7ff\U0001e000-\U0001eeff"
_VARIATION_SELECTORS = "\U000e0100-\U000e01ef"


def tokenize(text: str) -> list[Span]:
    """Split a text into words, punctuation marks and single CJK characters.

    Combining marks belong to the letter before them. A run of letters and digits longer than
    ``LONGEST_TOKEN`` counts as several tokens.

    Args:
        text: Any text.

    Returns:
        The tokens' character spans, in order; whitespace lies in none of them.

    Example:
        >>> tokenize("It works.")
        [(0, 2), (3, 8), (8, 9)]
    """
    return [match.span() for match in _pattern(text).finditer(text)]


def count_tokens(text: str) -> int:
    """The number of tokens that ``tokenize`` would return, without building them.

    Args:
        text: Any text.
    """
    return len(_pattern(text).findall(text))


def _pattern(text: str) -> re.Pattern[str]:
    return _ASCII if text.isascii() else _unicode_pattern()


@cache
def _unicode_pattern() -> re.Pattern[str]:
    marks = _character_class(_is_mark) + _VARIATION_SELECTORS
    # One character class for whole words: an alternation inside the repeat is ten times slower.
    words = _character_class(lambda character: character.isalnum() or character == "_" or _is_mark(character))
    return re.compile(rf"[{words}{_OTHER_PLANES}{_VARIATION_SELECTORS}]{{1,{LONGEST_TOKEN}}}|[{_CJK}][{marks}]*|\S")


def _is_mark(character: str) -> bool:
    """Whether a character combines with what stands before it; the zero-width joiners do as well."""
    return unicodedata.category(character)[0] == "M" or character in "\u200c\u200d"


def _character_class(belongs: Callable[[str], bool]) -> str:
    """The characters below U+10000 with a property, without ``_CJK``, as the inside of a bracket expression."""
    cjk = re.compile(f"[{_CJK}]")
    ranges: list[tuple[int, int]] = []
    for code in range(0x30, 0x10000):
        if not belongs(chr(code)) or cjk.match(chr(code)):
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)
