"""Texts as arrays of word hashes: what their likeness is measured on. Pure, and the same in every process."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Words of a shingle (Broder 1997).
SHINGLE_WORDS = 3

Hashes = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_IGNORED, _LETTER, _DIGIT, _SINGLE = range(4)
# Punctuation and markup that two copies of a text may differ in. What is not listed carries meaning: "a < b", "5 %".
_ASCII_PUNCTUATION = "!\"'(),.:;?[]_{|}*#`-/\\"
_IGNORED_RANGES = ((0, 0x21), (0x7F, 0xA2), (0xAB, 0xAC), (0xB7, 0xB8), (0xBB, 0xBC), (0xBF, 0xC0), (0x2000, 0x2070))
_IGNORED_SIGNS = "\u0589\u058a\u05be\u05c3\u05f3\u05f4\u060c\u061b\u061f\u06d4\u0964\u0965\u1362\u104a\u104b"
_MORE_IGNORED_RANGES = ((0x3000, 0x3004), (0x3008, 0x3020), (0xFE00, 0xFE10), (0xFEFF, 0xFF00))
# Symbols, and scripts written without spaces: every character counts as a word.
_SINGLE_RANGES = ((0xA2, 0xAA), (0xE00, 0xF00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x20A0, 0x20D0), (0x2190, 0x2C00))
_MORE_SINGLE_RANGES = ((0x3040, 0x3100), (0x3400, 0xA000), (0xD800, 0xFE00), (0xFFFF, 0x10000))
_DIGIT_ZEROS = (0x30, 0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50)

_BASE = np.uint64(0x9E3779B97F4A7C15)
_BASE_INVERSE = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
_FACTORS = (np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9), np.uint64(0xD6E8FEB86659FD93))


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of several texts, one after the other.

    Attributes:
        words: A hash per word; case, whitespace and punctuation make no difference.
        numeric: Which words hold a digit, parallel to ``words``.
        bounds: Text ``i`` has the words ``bounds[i]`` to ``bounds[i + 1]``.
    """

    words: Hashes
    numeric: npt.NDArray[np.bool_]
    bounds: Ints

    def key(self, index: int) -> bytes:
        """Equal for texts of the same words in the same order."""
        return self.words[self.bounds[index] : self.bounds[index + 1]].tobytes()

    def numbers(self, index: int) -> frozenset[int]:
        """The words of a text that hold a digit."""
        part = slice(self.bounds[index], self.bounds[index + 1])
        return frozenset(self.words[part][self.numeric[part]].tolist())

    def shingles(self) -> tuple[Hashes, Ints]:
        """A hash for every run of ``SHINGLE_WORDS`` words within a text, and the text that each stands in."""
        owners = np.repeat(np.arange(len(self.bounds) - 1, dtype=np.int64), np.diff(self.bounds))
        count = max(0, len(self.words) - SHINGLE_WORDS + 1)
        mixed = np.zeros(count, np.uint64)
        for offset, factor in enumerate(_FACTORS):
            mixed += self.words[offset : offset + count] * factor
        within = owners[:count] == owners[SHINGLE_WORDS - 1 :][:count]
        return mixed[within], owners[:count][within]


def read_words(texts: Sequence[str]) -> Wording:
    """The words of texts in any script.

    Args:
        texts: Any number, of any length; the time is linear in their characters.
    """
    folded = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    # A line break at either end spares every look at a neighbour the question whether there is one.
    joined = "\n".join(["", *folded, ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    classes = np.take(_classes(), codes, mode="clip")
    alphanumeric = (classes == _LETTER) | (classes == _DIGIT)
    # A minus belongs to its number; a hyphen or a list's dash does not.
    minus = np.flatnonzero(codes[1:-1] == ord("-")) + 1
    single = classes == _SINGLE
    single[minus[~alphanumeric[minus - 1] & (classes[minus + 1] == _DIGIT)]] = True
    begins = single.copy()
    begins[1:] |= alphanumeric[1:] & ~alphanumeric[:-1]
    starts = np.flatnonzero(begins)
    text_starts = np.cumsum([1, *(len(text) + 1 for text in folded)])
    bounds = np.searchsorted(starts, text_starts).astype(np.int64)
    if not len(starts):
        return Wording(np.zeros(0, np.uint64), np.zeros(0, np.bool_), bounds)
    numeric = np.logical_or.reduceat(classes == _DIGIT, starts)
    return Wording(_word_hashes(codes * (alphanumeric | single), starts), numeric, bounds)


def _word_hashes(codes: npt.NDArray[np.uint32], starts: Ints) -> Hashes:
    """Polynomial hashes of the characters between starts, where what belongs to no word is 0."""
    hashes: Hashes = np.add.reduceat(codes * _powers(_BASE, len(codes)), starts)
    # One row of powers serves every word: dividing by the power at its start makes its place indifferent.
    hashes *= _powers(_BASE_INVERSE, len(codes))[starts]
    # Sums of powers are linear; shingles add words up, so what they add must not be.
    hashes ^= hashes >> np.uint64(31)
    hashes *= _FACTORS[0]
    hashes ^= hashes >> np.uint64(29)
    return hashes


def _powers(base: np.uint64, count: int) -> Hashes:
    """The powers 1 to ``count`` modulo 2 ** 64; a table of short and long steps is faster than one long product."""
    short = np.cumprod(np.full(1024, base))
    long = np.cumprod(np.full(count // 1024 + 1, short[-1])) * np.uint64(pow(int(short[-1]), -1, 2**64))
    powers: Hashes = np.multiply.outer(long, short).ravel()[:count]
    return powers


@cache
def _classes() -> npt.NDArray[np.uint8]:
    """What each character below U+10000 is; its last entry stands for all beyond."""
    table = np.full(0x10000, _LETTER, np.uint8)
    table[0x21:0x7F] = [_LETTER if chr(code).isalpha() else _SINGLE for code in range(0x21, 0x7F)]
    for first, last in (*_SINGLE_RANGES, *_MORE_SINGLE_RANGES):
        table[first:last] = _SINGLE
    for first, last in (*_IGNORED_RANGES, *_MORE_IGNORED_RANGES):
        table[first:last] = _IGNORED
    table[[ord(sign) for sign in _ASCII_PUNCTUATION + _IGNORED_SIGNS]] = _IGNORED
    for zero in _DIGIT_ZEROS:
        table[zero : zero + 10] = _DIGIT
    return table
