"""What the lexical arm stores of a chunk: its terms, counted and weighed."""

from __future__ import annotations

import numpy as np

from recollect.model.terms import TermCounts
from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer, term_frequencies
from recollect.store.search import LexicalRow


class TermIndexer:
    """Counts and weighs the terms of one collection's chunks. Safe to share between threads.

    Args:
        language: The collection's, ISO 639-1.
        salt: The collection's id, which its lexemes are salted with.
    """

    def __init__(self, language: str, *, salt: int) -> None:
        self._analyzer = Analyzer(language)
        self._salt = salt

    def count(self, text: str) -> TermCounts:
        """The text's terms, counted."""
        frequencies = term_frequencies(self._analyzer.terms(text), salt=self._salt)
        lexemes = np.fromiter(frequencies.keys(), dtype=np.int32, count=len(frequencies))
        counts = np.fromiter(frequencies.values(), dtype=np.int32, count=len(frequencies))
        order = np.argsort(lexemes)
        return TermCounts(int(counts.sum()), lexemes[order], counts[order])

    def weigh(self, terms: TermCounts, *, reference_length: float) -> LexicalRow:
        """The terms' BM25 document weights under the collection's reference length."""
        frequencies = dict(zip(terms.lexemes.tolist(), terms.counts.tolist(), strict=True))
        weights = bm25.document_weights(frequencies, length=terms.length, average_length=reference_length)
        return LexicalRow(
            terms.length,
            np.fromiter(weights.keys(), dtype=np.int32, count=len(weights)),
            np.fromiter(weights.values(), dtype=np.float32, count=len(weights)),
        )
