"""Sketches of texts, by which nearly equal ones are found without comparing all with all (MinHash, Broder 1997).

A text is the set of its runs of five words. The smallest hash of the set under one function is equal for two texts as
often as their sets overlap; five such in a row make a band, and a text has sixteen bands. Of two texts that share 80 %
of their runs, 99.8 % have a band in common; of two that share 30 %, one in twenty-five. What is found is compared word
by word afterwards.

(`datasketch` has this too, and brings scipy: a quarter of an installation for forty lines.)
"""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np

#: What is called nearly the same: the share of runs of words that two texts have in common.
NEARLY_THE_SAME = 0.8

_RUN_WORDS = 5
#: Shorter texts are alike by chance.
_FEWEST_RUNS = 16
_BANDS, _ROWS = 16, 5
_WORD = re.compile(r"\w+")

# Functions that are the same for ever: bands are stored.
_RANDOM = np.random.Generator(np.random.PCG64(20_261_122))
_FACTORS = _RANDOM.integers(0, 1 << 63, _BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
# Texts of which a function is computed at a time.
_SLICE = 4_096


def runs(text: str) -> set[int]:
    """Hashes of the runs of words of a text, case and punctuation aside."""
    words = _WORD.findall(text.casefold())
    joined = (" ".join(words[at : at + _RUN_WORDS]) for at in range(len(words) - _RUN_WORDS + 1))
    return {zlib.crc32(run.encode("utf-8", "replace")) for run in joined}


def bands(text: str) -> tuple[int, ...]:
    """The bands of a text, as 32-bit numbers; none of a text that is too short to be like another one."""
    hashes = np.fromiter(runs(text), np.uint64)
    hashes *= _MIX
    hashes ^= hashes >> _HALF
    if len(hashes) < _FEWEST_RUNS:
        return ()
    least = np.full(_BANDS * _ROWS, np.iinfo(np.uint64).max, np.uint64)
    for start in range(0, len(hashes), _SLICE):
        part = hashes[start : start + _SLICE, np.newaxis]
        least = np.minimum(least, ((part * _FACTORS) >> _HALF).min(axis=0))
    return tuple(_number(band, least[band * _ROWS : (band + 1) * _ROWS]) for band in range(_BANDS))


def _number(band: int, rows: np.ndarray[Any, np.dtype[np.uint64]]) -> int:
    unsigned = zlib.crc32(rows.tobytes(), band)
    return unsigned - (1 << 32) if unsigned >= 1 << 31 else unsigned


def likeness(one: str, other: str) -> float:
    """The share of runs of words that two texts have in common, of those that either has."""
    first, second = runs(one), runs(other)
    return len(first & second) / len(first | second) if first or second else 1.0
