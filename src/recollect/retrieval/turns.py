"""Words of conversations: counted, weighed and scored where a turn's terms count in part for the turns behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from recollect.model.terms import TermCounts
from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer, term_frequencies
from recollect.retrieval.indexing import TermIndexer

#: Stored weights are computed under this average length, in terms: that of short turns with those before them. Scores
#: are computed again under the true one, so it only decides which turns are candidates.
REFERENCE_LENGTH = 32.0

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


class TurnTerms:
    """Counts, weighs and scores the terms of turns. Safe to share between threads.

    Args:
        language: Of the conversations, ISO 639-1.
        salt: The tenant's id, which the lexemes are salted with.
    """

    def __init__(self, language: str, *, salt: int) -> None:
        self._indexer = TermIndexer(language, salt=salt)
        self._analyzer = Analyzer(language)
        self._salt = salt

    def count(self, texts: Sequence[str]) -> list[TermCounts]:
        """The terms of each text, counted."""
        return self._indexer.count(texts)

    def question(self, text: str) -> dict[int, int]:
        """How often each lexeme occurs in a question."""
        return term_frequencies(self._analyzer.query_terms(text), salt=self._salt)

    def turn_weights(self, lexemes: Ints, counts: Floats, *, length: float) -> tuple[Ints, npt.NDArray[np.float32]]:
        """The lexemes that are stored of a turn (all but of an extremely long one), and their weights.

        Args:
            lexemes: Ascending.
            counts: Parallel to ``lexemes``: how often each occurs, more than 0, fractions allowed.
            length: The turn's number of terms, counted the same way.
        """
        weights = bm25.weights(counts, np.array([length]), average_length=REFERENCE_LENGTH)
        if len(lexemes) > bm25.MAX_ELEMENTS:
            kept = bm25.heaviest(lexemes, weights)
            return lexemes[kept], weights[kept]
        return lexemes, weights
