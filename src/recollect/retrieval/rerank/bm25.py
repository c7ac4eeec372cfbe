"""Reranking by words: one BM25 scale for passages of whatever origin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.rerank.base import Candidate


class Bm25Reranker:
    """Scores passages by BM25 computed from their texts, so that passages of several sources compare.

    BM25 scores of two collections, or of a store and a web search, are on different scales: each has its own document
    frequencies and average length. Here all candidates are counted by the same ones.

    With few candidates that the first stage all chose for the same words, the candidates' own document frequencies
    say little, and a collection's are better. The ranking function is that of `recollect.retrieval.bm25`.

    Args:
        language: Of the texts, ISO 639-1.
        document_frequencies: In how many chunks of a collection each term stands, terms as
            `recollect.retrieval.analysis.Analyzer` gives them; a term that is missing counts as 0. None: counted
            over the candidates.
        chunks: How many chunks that collection has.
        average_length: Their average length in terms; None: the candidates'.

    Raises:
        UsageError: ``language`` is no language code.
    """

    name = "bm25"

    def __init__(
        self,
        language: str = "en",
        *,
        document_frequencies: Mapping[str, int] | None = None,
        chunks: int = 0,
        average_length: float | None = None,
    ) -> None:
        self._analyzer = Analyzer(language)
        self._document_frequencies = document_frequencies
        self._chunks = chunks
        self._average_length = average_length

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        """See `Reranker`; 0 for a passage that shares no word with the query."""
        wanted = Counter(self._analyzer.query_terms(query))
        if not wanted or not candidates:
            return [0.0] * len(candidates)
        counted = [Counter(self._analyzer.terms(candidate.text)) for candidate in candidates]
        lengths = [terms.total() for terms in counted]
        average = self._average_length or max(1.0, sum(lengths) / len(lengths))
        weights = self._query_weights(wanted, counted)
        return [
            math.fsum(
                weights[term] * terms[term] * bm25.MAX_WEIGHT / (terms[term] + _saturation(length, average))
                for term in weights.keys() & terms.keys()
            )
            for terms, length in zip(counted, lengths, strict=True)
        ]

    def _query_weights(self, wanted: Mapping[str, int], counted: Sequence[Mapping[str, int]]) -> dict[str, float]:
        if self._document_frequencies is None:
            frequencies = {term: sum(term in terms for terms in counted) for term in wanted}
            chunks = len(counted)
        else:
            frequencies = {term: self._document_frequencies.get(term, 0) for term in wanted}
            chunks = max(self._chunks, 1)
        return {term: count * bm25.idf(frequencies[term], chunks) for term, count in wanted.items()}


def _saturation(length: int, average: float) -> float:
    return bm25.K1 * (1 - bm25.B + bm25.B * length / average)
