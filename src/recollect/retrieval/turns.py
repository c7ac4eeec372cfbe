"""Words of conversations: counted, weighed and scored where a turn's terms count in part for the turns behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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

    def question_weights(
        self, counts: Mapping[int, int], *, frequencies: Mapping[int, int], turns: int
    ) -> dict[int, float]:
        """The weights of a question's lexemes; those that no turn holds have none.

        Args:
            counts: From `question`.
            frequencies: In how many turns each stands.
            turns: How many there are.
        """
        return bm25.query_weights(counts, document_frequencies=frequencies, chunks=turns)

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

    def scores(
        self,
        question: Mapping[int, float],
        *,
        lengths: Floats,
        counts: Ints,
        lexemes: Ints,
        stored: npt.NDArray[np.float32],
        average_length: float,
    ) -> Floats:
        """BM25 scores of n turns under today's average length.

        The number of occurrences is recovered from the stored weight. It may be a fraction, which is why
        `bm25.rescore`, that rounds it, does not serve here.

        Args:
            question: Weight by lexeme, from `question_weights`.
            lengths: Shape (n,).
            counts: Shape (n,): how many of the elements below are each turn's.
            lexemes: Shape (counts.sum(),): the first turn's, then the second's, …
            stored: Parallel to ``lexemes``: stored weights.
            average_length: Of the turns that are searched.
        """
        scores = np.zeros(len(counts))
        wanted = np.array(sorted(question), dtype=np.int64)
        if not len(wanted):
            return scores
        weights = np.array([question[lexeme] for lexeme in wanted.tolist()])
        places = np.minimum(np.searchsorted(wanted, lexemes), len(wanted) - 1)
        hits = np.flatnonzero(wanted[places] == lexemes)
        owners = np.repeat(np.arange(len(counts)), counts)[hits]
        kept, own_lengths = stored[hits].astype(np.float64), lengths[owners]
        room = np.maximum(bm25.MAX_WEIGHT - kept, np.finfo(np.float32).eps)
        occurrences = kept * _saturation(own_lengths, REFERENCE_LENGTH) / room
        parts = occurrences * bm25.MAX_WEIGHT / (occurrences + _saturation(own_lengths, average_length))
        np.add.at(scores, owners, weights[places[hits]] * parts)
        return scores


def _saturation(lengths: Floats, average_length: float) -> Floats:
    return bm25.K1 * (1 - bm25.B + bm25.B * lengths / max(average_length, 1e-9))
