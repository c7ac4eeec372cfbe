"""The default tokeniser: words, punctuation marks and single CJK characters, in any script."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.chunking.base import Span

#: A longer run of letters counts as several tokens, so that a token limit bounds the characters as well.
LONGEST_TOKEN = 32

# Faster, and the same on ASCII text: \x1c-\x1f are whitespace to str.isspace, though not to re.ASCII.
_ASCII = re.compile(rf"\w{{1,{LONGEST_TOKEN}}}|[^\w\s\x1c-\x1f]", re.ASCII)
# Scripts that are written without spaces and whose characters carry about a word each.
_CJK = (
    "\u3005-\u3007\u3021-\u3029\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)


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
    marks = "".join(f"{chr(first)}-{chr(last)}" for first, last in _mark_ranges())
    word = rf"(?:[^\W{_CJK}]|[{marks}])"
    return re.compile(rf"[{_CJK}][{marks}]*|{word}{{1,{LONGEST_TOKEN}}}|[^\w\s]")


def _mark_ranges() -> list[tuple[int, int]]:
    """Ranges of code points that combine with what stands before them, the zero-width joiners included."""
    ranges: list[tuple[int, int]] = []
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if not unicodedata.category(chr(code)).startswith("M") and code not in {0x200C, 0x200D}:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges
