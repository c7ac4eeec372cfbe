"""Rerankers that need no model of their own: by agreement, and by words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.interruption import check
from recollect.retrieval import bm25
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.rerank.base import Candidate

#: How many of the most similar candidates have a say about one.
NEIGHBOURS = 10

# Similarities that are computed at a time: a few hundred candidates at once, many in blocks of a few megabytes.
_BLOCK = 1 << 18

Floats = npt.NDArray[np.float64]


class ConsensusReranker:
    """Scores a candidate by the first-stage scores of the candidates most like it.

    This is one step of score regularisation (Diaz 2005, "Regularizing Ad Hoc Retrieval Scores"), which rests on the
    cluster hypothesis: texts that are close to each other tend to answer the same questions. Of each candidate, the
    ``neighbours`` most similar other candidates by their stored vectors are taken, and their scores are averaged,
    weighted by the similarity. No model runs and no text is read: a hundred candidates take well under a
    millisecond.

    Args:
        neighbours: How many candidates have a say about one; 5 to 20 measured alike.

    Raises:
        UsageError: ``neighbours`` is less than 1.
    """

    name = "consensus"

    def __init__(self, *, neighbours: int = NEIGHBOURS) -> None:
        if neighbours < 1:
            raise UsageError(f"neighbours must be at least 1, not {neighbours!r}")
        self._neighbours = neighbours

    def rerank(self, query: str, candidates: Sequence[Candidate]) -> list[float]:  # noqa: ARG002
        """See `Reranker`. A candidate without an embedding keeps its own score, and has no say about others.

        Of several embedding models, those of one have a say about one another.
        """
        scores = np.array([candidate.score for candidate in candidates], dtype=np.float64)
        of_model: dict[str, list[int]] = {}
        for index, candidate in enumerate(candidates):
            if candidate.embedding is not None:
                of_model.setdefault(candidate.model, []).append(index)
        for known in of_model.values():
            if len(known) > 1:
                vectors = np.array([candidates[index].embedding for index in known], dtype=np.float32)
                scores[known] = self._averaged(vectors, scores[known])
        return [float(score) for score in scores]

    def _averaged(self, vectors: npt.NDArray[np.float32], scores: Floats) -> Floats:
        averaged: Floats = np.empty_like(scores)
        step = max(1, _BLOCK // len(scores))
        for start in range(0, len(scores), step):
            check()
            part = slice(start, start + step)
            similarities = np.clip(inner_products(vectors[part], vectors), 0.0, None).astype(np.float64)
            np.fill_diagonal(similarities[:, start:], 0.0)
            if len(scores) > self._neighbours:
                least = np.partition(similarities, -self._neighbours, axis=1)[:, -self._neighbours]
                similarities[similarities < least[:, None]] = 0.0
            totals = similarities.sum(axis=1)
            lonely = totals <= np.finfo(np.float32).eps
            averaged[part] = (similarities @ scores) / np.where(lonely, 1.0, totals)
            averaged[part][lonely] = scores[part][lonely]
        return averaged


# Reranking by words: one BM25 scale for passages of whatever origin.

_Term = TypeVar("_Term", str, int)


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
        return scores_of_texts(
            wanted,
            counted,
            document_frequencies=self._document_frequencies,
            chunks=self._chunks,
            average_length=self._average_length,
        )


def scores_of_texts(
    wanted: Mapping[_Term, int],
    counted: Sequence[Mapping[_Term, int]],
    *,
    document_frequencies: Mapping[_Term, int] | None = None,
    chunks: int = 0,
    average_length: float | None = None,
) -> list[float]:
    """BM25 of texts, by how often each holds a term.

    Args:
        wanted: How often the query has each term.
        counted: How often each text has it; at least one text.
        document_frequencies: As of `Bm25Reranker`, like the others.
        chunks: How many chunks that collection has.
        average_length: Their average length in terms.
    """
    lengths = [sum(terms.values()) for terms in counted]
    average = average_length or max(1.0, sum(lengths) / len(lengths))
    if document_frequencies is None:
        document_frequencies = {term: sum(term in terms for terms in counted) for term in wanted}
        chunks = len(counted)
    weights = {
        term: count * bm25.idf(document_frequencies.get(term, 0), max(chunks, 1)) for term, count in wanted.items()
    }
    saturations = [bm25.K1 * (1 - bm25.B + bm25.B * length / average) for length in lengths]
    return [
        math.fsum(
            weights[term] * terms[term] * bm25.MAX_WEIGHT / (terms[term] + saturation)
            for term in weights.keys() & terms.keys()
        )
        for terms, saturation in zip(counted, saturations, strict=True)
    ]


# Inner products of a few hundred vectors are computed on the caller's thread alone: OpenBLAS starts its threads for
# products of more multiplications than this, and on a busy machine, waiting for a thread that is not running was
# measured at 20 ms for a product that takes 0.1 ms.
_MULTIPLICATIONS = 262_144


def inner_products(rows: npt.NDArray[np.float32], columns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """``rows @ columns.T``, block by block.

    Args:
        rows: Shape (n, dimension).
        columns: Shape (m, dimension).

    Returns:
        Shape (n, m).
    """
    step = max(1, _MULTIPLICATIONS // max(1, columns.size))
    products = np.empty((len(rows), len(columns)), np.float32)
    turned = columns.T
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], turned, out=products[start : start + step])
    return products
