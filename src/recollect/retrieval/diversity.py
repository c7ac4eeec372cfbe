"""Variety among results: maximal marginal relevance, and duplicates collapsed. Pure: no I/O, no clock, no chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.interruption import check
from recollect.retrieval._wording import SHINGLE_WORDS, read_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.retrieval._wording import Hashes, Ints, Wording

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
    if not 0 < threshold <= 1:
        message = f"The duplicate threshold must be above 0 and at most 1, not {threshold!r}"
        raise UsageError(message)
    wording = read_words(texts)
    kept_texts = _KeptTexts(wording, threshold)
    keys = [wording.key(index) for index in range(len(texts))]
    if len(set(keys)) == len(keys) and not kept_texts.any_repeats:
        return [Distinct(index, ()) for index in range(len(texts))]
    stands_for: dict[int, list[int]] = {}
    same_words: dict[bytes, int] = {}
    for index, key in enumerate(keys):
        check()
        kept = same_words.get(key)
        if kept is None:
            kept = kept_texts.containing(index)
        if kept is None:
            stands_for[index] = []
            kept_texts.add(index)
        else:
            stands_for[kept].append(index)
        same_words.setdefault(key, index if kept is None else kept)
    return [Distinct(index, tuple(duplicates)) for index, duplicates in stands_for.items()]


class _KeptTexts:
    """The texts that stay so far, found by what they contain; few pairs are ever compared."""

    def __init__(self, wording: Wording, threshold: float) -> None:
        hashes, owners = wording.shingles()
        count = len(wording.bounds) - 1
        self._wording = wording
        self._threshold = threshold
        self._hashes = hashes
        self._bounds = np.searchsorted(owners, np.arange(count + 1)).tolist()
        self._repeated = _repeated(hashes, owners, count).tolist()
        self._holders: dict[int, list[int]] = {}
        self._sets: dict[int, frozenset[int]] = {}

    @property
    def any_repeats(self) -> bool:
        """Whether any text shares enough with others to be left out: seldom, and then the rest is needless."""
        return any(self._may_repeat(index) for index in range(len(self._repeated)))

    def _may_repeat(self, index: int) -> bool:
        size = self._bounds[index + 1] - self._bounds[index]
        return bool(size and self._repeated[index] >= self._threshold * size)

    def add(self, index: int) -> None:
        """Keep a text; one that shares no shingle with any other needs no place among the holders."""
        if self._repeated[index]:
            for part in self._shingles(index) | self._wording.numbers(index):
                self._holders.setdefault(part, []).append(index)

    def containing(self, index: int) -> int | None:
        """The best kept text that holds nearly all shingles of a text, and all its numbers."""
        size = self._bounds[index + 1] - self._bounds[index]
        if not self._may_repeat(index):
            return None
        shingles = self._shingles(index)
        few_words = size + SHINGLE_WORDS - 1 < MIN_NEAR_WORDS
        needed = len(shingles) if few_words else math.ceil(self._threshold * len(shingles) - 1e-9)
        for other in self._candidates(index, shingles, needed):
            if len(shingles & self._shingles(other)) >= needed:
                return other
        return None

    def _candidates(self, index: int, shingles: frozenset[int], needed: int) -> Iterable[int]:
        """Ascending; among them every kept text with all the numbers and ``needed`` of the shingles."""
        holders = [found for shingle in shingles if (found := self._holders.get(shingle))]
        if len(holders) < needed:
            return ()
        # Prefix filter: who holds all but m of some shingles holds one of any m + 1; the shortest lists cost least.
        holders.sort(key=len)
        candidates = set().union(*holders[: len(holders) - needed + 1])
        for number in self._wording.numbers(index):
            candidates.intersection_update(self._holders.get(number, ()))
        return sorted(candidates)

    def _shingles(self, index: int) -> frozenset[int]:
        if index not in self._sets:
            self._sets[index] = frozenset(self._hashes[self._bounds[index] : self._bounds[index + 1]].tolist())
        return self._sets[index]


def _repeated(hashes: Hashes, owners: Ints, count: int) -> Ints:
    """How many shingles of each text occur more than once among all."""
    ordered = np.sort(hashes)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return np.zeros(count, np.int64)
    places = np.minimum(np.searchsorted(repeated, hashes), len(repeated) - 1)
    return np.bincount(owners[repeated[places] == hashes], minlength=count)
