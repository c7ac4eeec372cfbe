"""What the lexical retriever stores of a chunk: its terms, counted and weighed, many chunks at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
import numpy.typing as npt

from recollect.model.terms import TermCounts
from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer, lexeme
from recollect.retrieval.enhance.acronyms import definitions
from recollect.store.search import LexicalRow

# Texts counted in one go: their tokens are in memory as numbers.
_SLICE = 256

_MAX_KNOWN_TOKENS = 200_000
# Longer ones are seldom words: a sentence in a script without spaces is one token.
_MAX_KNOWN_CHARACTERS = 40

# Above every lexeme, so that a text's number and a lexeme make one number.
_TEXT_STEP = 1 << 32


class _Numbers(dict[str, tuple[int, ...]]):
    """The lexemes of each token, looked up without a step of Python for those that were met before."""

    def __init__(self, analyzer: Analyzer, salt: int) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._salt = salt

    def __missing__(self, token: str) -> tuple[int, ...]:
        numbers = tuple(lexeme(term, self._salt) for term in self._analyzer.token_terms(token))
        if len(token) <= _MAX_KNOWN_CHARACTERS:
            if len(self) >= _MAX_KNOWN_TOKENS:
                self.clear()
            self[token] = numbers
        return numbers


class TermIndexer:
    """Counts and weighs the terms of one collection's chunks. Safe to share between threads.

    Args:
        language: The collection's, ISO 639-1.
        salt: The collection's id, which its lexemes are salted with.
    """

    def __init__(self, language: str, *, salt: int) -> None:
        self._analyzer = Analyzer(language)
        self._numbers = _Numbers(self._analyzer, salt)

    def count(self, texts: Sequence[str]) -> list[TermCounts]:
        """The terms of each text, counted."""
        return [
            counts for start in range(0, len(texts), _SLICE) for counts in self._count(texts[start : start + _SLICE])
        ]

    def weigh(self, terms: Sequence[TermCounts], *, reference_length: float) -> list[LexicalRow]:
        """The BM25 document weights of each chunk's terms under the collection's reference length."""
        if not terms:
            return []
        sizes = [len(one.lexemes) for one in terms]
        lengths = np.repeat(np.array([one.length for one in terms], dtype=np.float64), sizes)
        counts = np.concatenate([one.counts for one in terms])
        weights = bm25.weights(counts, lengths, average_length=reference_length)
        return [_row(one, own) for one, own in zip(terms, _split(weights, sizes), strict=True)]

    def acronyms(self, content: str) -> list[tuple[str, str, int]]:
        """The acronyms that a document explains: each with its long form, and how often."""
        return [(*found, occurrences) for found, occurrences in Counter(definitions(content)).items()]

    def _count(self, texts: Sequence[str]) -> Iterator[TermCounts]:
        number = self._numbers.__getitem__
        found = [list(chain.from_iterable(map(number, self._analyzer.tokens(text)))) for text in texts]
        lengths = [len(own) for own in found]
        flat = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=sum(lengths))
        flat += np.repeat(np.arange(len(texts)), lengths) * _TEXT_STEP
        keys, counts = np.unique(flat, return_counts=True)
        borders = np.searchsorted(keys, np.arange(len(texts) + 1) * _TEXT_STEP).tolist()
        lexemes, occurrences = (keys % _TEXT_STEP).astype(np.int32), counts.astype(np.int32)
        for length, (start, end) in zip(lengths, pairwise(borders), strict=True):
            yield TermCounts(length, lexemes[start:end], occurrences[start:end])


def _row(terms: TermCounts, weights: npt.NDArray[np.float32]) -> LexicalRow:
    lexemes = terms.lexemes
    if len(lexemes) > bm25.MAX_ELEMENTS:
        kept = bm25.heaviest(lexemes, weights)
        lexemes, weights = lexemes[kept], weights[kept]
    return LexicalRow(terms.length, lexemes, weights)


def _split(values: npt.NDArray[np.float32], sizes: Sequence[int]) -> list[npt.NDArray[np.float32]]:
    return [values[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
