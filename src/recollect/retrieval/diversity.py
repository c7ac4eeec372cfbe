"""Variety among results: maximal marginal relevance, and duplicates collapsed. Pure: no I/O, no clock, no chance."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.interruption import check

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MMR_LAMBDA = 0.7
DUPLICATE_THRESHOLD = 0.9

#: In a shorter text one word more or less makes a difference: it must be repeated whole to count as a duplicate.
MIN_NEAR_WORDS = 20

Vectors = npt.NDArray[np.float32]


def mmr(
    scores: Sequence[float],
    vectors: Vectors | Sequence[Sequence[float]],
    *,
    lambda_: float = MMR_LAMBDA,
    top_k: int,
    rescale: bool = True,
) -> list[int]:
    """Maximal marginal relevance (Carbonell and Goldstein 1998): relevant, and unlike what was chosen before.

    Each step takes the candidate with the greatest ``lambda_ · score − (1 − lambda_) · similarity``, where the
    similarity is the greatest cosine to any candidate taken before it (none for the first).

    Args:
        scores: One per candidate, the more the better.
        vectors: One row per candidate, of any length but all of the same; a row of zeros resembles nothing.
        lambda_: 1 ranks by score alone, 0 by variety alone.
        top_k: How many to choose at most.
        rescale: Map the scores to 0 … 1 first (the worst candidate 0, the best 1), so that ``lambda_`` means the same
            for scores of any kind; False: they are cosine similarities or on their scale already.

    Returns:
        Indexes of the chosen candidates in the order of choice; of equal ones, the smaller index first.

    Raises:
        UsageError: ``lambda_`` or ``top_k`` is out of range, scores and vectors differ in number, or one is not finite.

    Example:
        >>> mmr([0.9, 0.8, 0.5], [[1, 0], [1, 0], [0, 1]], top_k=2)
        [0, 2]
    """
    relevance = np.asarray(scores, dtype=np.float64)
    rows = np.asarray(vectors, dtype=np.float32)
    _require_usable(relevance, rows, lambda_, top_k)
    if not len(relevance):
        return []
    if rescale:
        spread = float(relevance.max() - relevance.min())
        relevance = (relevance - relevance.min()) / spread if spread > 0 else np.ones_like(relevance)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    nearest = np.full(len(relevance), -np.inf)
    worth = lambda_ * relevance
    chosen: list[int] = []
    for _ in range(min(top_k, len(relevance))):
        check()
        best = int(np.argmax(worth))
        chosen.append(best)
        # Rounded: equal rows give sums that differ in the last bits, by their place in memory.
        nearest = np.maximum(nearest, np.round(rows @ rows[best], 6))
        worth = lambda_ * relevance - (1 - lambda_) * nearest
        worth[chosen] = -np.inf
    return chosen


def _require_usable(relevance: npt.NDArray[np.float64], rows: Vectors, lambda_: float, top_k: int) -> None:
    if not 0 <= lambda_ <= 1:
        message = f"mmr_lambda must lie between 0 and 1, not {lambda_!r}"
        raise UsageError(message)
    if top_k < 1:
        message = f"top_k must be at least 1, not {top_k!r}"
        raise UsageError(message)
    if len(rows) != len(relevance) or (len(rows) and rows.ndim != 2):
        message = f"vectors must have {len(relevance)} rows, one per score, not the shape {rows.shape}"
        raise UsageError(message)
    if not (np.isfinite(relevance).all() and np.isfinite(rows).all()):
        message = "scores and vectors must be finite numbers"
        raise UsageError(message)


def side_by_side(vectors: Sequence[Vectors], models: Sequence[str | None]) -> Vectors:
    """Vectors of several models as rows of one length: those of different models resemble each other in nothing.

    Args:
        vectors: Those of one model are of one length.
        models: The model of each.
    """
    lengths = {model: len(vector) for vector, model in zip(vectors, models, strict=True)}
    starts = dict(zip(lengths, accumulate(lengths.values(), initial=0), strict=False))
    matrix = np.zeros((len(vectors), sum(lengths.values())), np.float32)
    for row, vector, model in zip(matrix, vectors, models, strict=True):
        row[starts[model] : starts[model] + len(vector)] = vector
    return matrix


@dataclass(frozen=True, slots=True)
class Distinct:
    """A text that stays.

    Attributes:
        index: Its place among the texts given.
        duplicates: Places of those that it stands for, ascending; none for a text that is alone.
    """

    index: int
    duplicates: tuple[int, ...]


def collapse_duplicates(texts: Sequence[str], *, threshold: float = DUPLICATE_THRESHOLD) -> list[Distinct]:
    """Leave out texts that repeat a better-ranked one.

    A text is a duplicate if its words are those of a better one (case, whitespace and punctuation aside), or if at
    least ``threshold`` of its shingles of three words stand in a better one (containment, Broder 1997), so that
    leaving it out loses next to nothing. A text with a number that the other lacks is never a duplicate of it: forms
    and yearly editions differ in little else. Below ``MIN_NEAR_WORDS`` words all shingles must be found. A duplicate
    is always compared with the text that stays, so likeness does not drift along a chain.

    Args:
        texts: Best first, in any script.
        threshold: Above 0, up to 1; 1 leaves out only what is repeated whole.

    Returns:
        The texts that stay, best first, each with those that it stands for.

    Raises:
        UsageError: ``threshold`` is out of range.

    Example:
        >>> collapse_duplicates(["Call the desk.", "Ask Ann.", "CALL the desk!"])
        [Distinct(index=0, duplicates=(2,)), Distinct(index=1, duplicates=())]
    """
    stays = duplicates_of(texts, threshold=threshold)
    stands_for: dict[int, list[int]] = {index: [] for index in range(len(texts)) if index not in stays}
    for copy, index in stays.items():
        stands_for[index].append(copy)
    return [Distinct(index, tuple(duplicates)) for index, duplicates in stands_for.items()]


def duplicates_of(texts: Sequence[str], *, threshold: float = DUPLICATE_THRESHOLD) -> dict[int, int]:
    """For each text that `collapse_duplicates` leaves out, the one that stays in its place; arguments as there."""
    if not 0 < threshold <= 1:
        message = f"The duplicate threshold must be above 0 and at most 1, not {threshold!r}"
        raise UsageError(message)
    wording = read_words(texts)
    kept_texts = _KeptTexts(wording, threshold)
    keys = wording.keys()
    stays: dict[int, int] = {}
    if len(set(keys)) == len(keys) and not kept_texts.any_repeats:
        return stays
    same_words: dict[bytes, int] = {}
    for index, key in enumerate(keys):
        check()
        kept = same_words.get(key)
        if kept is None:
            kept = kept_texts.containing(index)
        if kept is None:
            kept_texts.add(index)
        else:
            stays[index] = kept
        same_words.setdefault(key, index if kept is None else kept)
    return stays


class _KeptTexts:
    """The texts that stay so far, found by what they contain; few pairs are ever compared."""

    def __init__(self, wording: Wording, threshold: float) -> None:
        hashes, owners = wording.shingles()
        self._wording = wording
        self._threshold = threshold
        self._hashes = hashes
        bounds, again = owners.searchsorted(np.arange(len(wording.bounds))), _occur_again(hashes)
        sizes, repeated = bounds[1:] - bounds[:-1], np.bincount(owners[again], minlength=len(bounds) - 1)
        may_repeat = (sizes > 0) & (repeated >= threshold * sizes)
        self._bounds, self._may_repeat = bounds.tolist(), may_repeat.tolist()
        # No other shingle is looked for.
        self._sought = frozenset(hashes[again & may_repeat[owners]].tolist()) if self.any_repeats else frozenset()
        self._new: list[int] = []
        self._holders: dict[int, list[int]] = {}
        self._sets: dict[int, frozenset[int]] = {}

    @property
    def any_repeats(self) -> bool:
        """Whether any text shares enough with others to be left out: seldom, and then the rest is needless."""
        return True in self._may_repeat

    def add(self, index: int) -> None:
        """Keep a text."""
        self._new.append(index)

    def containing(self, index: int) -> int | None:
        """The best kept text that holds nearly all shingles of a text, and all its numbers."""
        if not self._may_repeat[index]:
            return None
        self._index_new()
        size = self._bounds[index + 1] - self._bounds[index]
        shingles = self._shingles(index)
        few_words = size + SHINGLE_WORDS - 1 < MIN_NEAR_WORDS
        needed = len(shingles) if few_words else math.ceil(self._threshold * len(shingles) - 1e-9)
        for other in self._candidates(shingles, needed):
            if len(shingles & self._shingles(other)) >= needed and self._has_numbers_of(index, other):
                return other
        return None

    def _index_new(self) -> None:
        """Have what was kept lately found by those of its shingles that are sought."""
        for index in self._new:
            own = self._hashes[self._bounds[index] : self._bounds[index + 1]].tolist()
            for shingle in self._sought.intersection(own):
                self._holders.setdefault(shingle, []).append(index)
        self._new.clear()

    def _candidates(self, shingles: frozenset[int], needed: int) -> Iterable[int]:
        """Ascending; among them every kept text with ``needed`` of the shingles."""
        holders = [found for shingle in shingles if (found := self._holders.get(shingle))]
        if len(holders) < needed:
            return ()
        # Prefix filter: who holds all but m of some shingles holds one of any m + 1; the shortest lists cost least.
        holders.sort(key=len)
        return sorted(set().union(*holders[: len(holders) - needed + 1]))

    def _has_numbers_of(self, index: int, other: int) -> bool:
        return self._wording.numbers(index) <= self._wording.numbers(other)

    def _shingles(self, index: int) -> frozenset[int]:
        if index not in self._sets:
            self._sets[index] = frozenset(self._hashes[self._bounds[index] : self._bounds[index + 1]].tolist())
        return self._sets[index]


def _occur_again(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Which of some hashes occur more than once."""
    order = hashes.argsort()
    ordered = hashes[order]
    equal = ordered[1:] == ordered[:-1]
    again = np.zeros(len(hashes), np.bool_)
    again[order[1:][equal]] = again[order[:-1][equal]] = True
    return again


# Texts as arrays of word hashes: what their likeness is measured on. Pure, and the same in every process.


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
        digits: Which characters are digits.
        starts: The character that each word begins with; up to the next one, what is no digit does not count.
        bounds: Text ``i`` has the words ``bounds[i]`` to ``bounds[i + 1]``.
    """

    words: Hashes
    digits: npt.NDArray[np.bool_]
    starts: Ints
    bounds: Ints

    def keys(self) -> list[bytes]:
        """One for each text: equal for texts of the same words in the same order."""
        words, bounds = self.words, self.bounds.tolist()
        return [words[start:end].tobytes() for start, end in pairwise(bounds)]

    def numbers(self, index: int) -> frozenset[int]:
        """The words of a text that hold a digit."""
        first, end = self.bounds[index], self.bounds[index + 1]
        if first == end:
            return frozenset()
        last = self.starts[end] if end < len(self.starts) else len(self.digits)
        numeric = np.logical_or.reduceat(self.digits[:last], self.starts[first:end])
        return frozenset(self.words[first:end][numeric].tolist())

    def shingles(self) -> tuple[Hashes, Ints]:
        """A hash for every run of ``SHINGLE_WORDS`` words within a text, and the text that each stands in."""
        owners = np.arange(len(self.bounds) - 1).repeat(self.bounds[1:] - self.bounds[:-1])
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
    classes = _classes().take(codes, mode="clip")
    # A minus belongs to its number; a hyphen or a list's dash does not.
    minus = (codes[1:-1] == ord("-")).nonzero()[0] + 1
    if len(minus):
        before = classes[minus - 1]
        classes[minus[(before != _LETTER) & (before != _DIGIT) & (classes[minus + 1] == _DIGIT)]] = _SINGLE
    digits = classes == _DIGIT
    alphanumeric = (classes == _LETTER) | digits
    begins = classes == _SINGLE
    begins[1:] |= alphanumeric[1:] > alphanumeric[:-1]
    starts = begins.nonzero()[0]
    # Behind each text stands a line break.
    text_starts = np.array([1, *map(len, folded)]).cumsum() + np.arange(len(folded) + 1)
    bounds = starts.searchsorted(text_starts)
    words = _word_hashes(codes * (classes != _IGNORED), starts) if len(starts) else np.zeros(0, np.uint64)
    return Wording(words, digits, starts, bounds)


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
    short, step, once_less = _steps(base)
    long = np.multiply.accumulate(np.zeros(count // 1024 + 1, np.uint64) + step) * once_less
    powers: Hashes = np.multiply.outer(long, short).ravel()[:count]
    return powers


@cache
def _steps(base: np.uint64) -> tuple[Hashes, np.uint64, np.uint64]:
    """The powers 1 to 1,024, the last of them, and its inverse."""
    short = np.multiply.accumulate(np.zeros(1024, np.uint64) + base)
    return short, short[-1], np.uint64(pow(int(short[-1]), -1, 2**64))


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
