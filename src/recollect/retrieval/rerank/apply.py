"""Rerankers that need no model, and how any reranker is applied: under a time limit, without ever failing a search."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from recollect.errors import UsageError
from recollect.interruption import TimedCalls, check
from recollect.retrieval import lexical
from recollect.retrieval.analysis import Analyzer
from recollect.retrieval.rerank.base import Candidate, Reranker

#: How many of the most similar candidates have a say about one.
NEIGHBOURS = 10


# Similarities that are computed at a time: a few hundred candidates at once, many in blocks of a few megabytes.
_BLOCK = 1 << 18


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
    say little, and a collection's are better. The ranking function is that of `recollect.retrieval.lexical`.

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
        term: count * lexical.idf(document_frequencies.get(term, 0), max(chunks, 1)) for term, count in wanted.items()
    }
    saturations = [lexical.K1 * (1 - lexical.B + lexical.B * length / average) for length in lengths]
    return [
        math.fsum(
            weights[term] * terms[term] * lexical.MAX_WEIGHT / (terms[term] + saturation)
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


logger = logging.getLogger(__name__)


#: How long a search waits for its reranker unless told otherwise.
TIMEOUT_SECONDS = 10.0


#: Calls of rerankers that may be under way at once in this process, those that nobody waits for any more included.
MAX_CALLS = 8


_CALLS = TimedCalls("rerankers", most=MAX_CALLS)


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RerankedCandidate:
    """A candidate in its final place.

    Attributes:
        candidate: As the first stage gave it.
        score: What the order follows: standard scores mixed, or the first stage's score where nothing was reranked.
        rerank_score: The reranker's own; None where nothing was reranked.
    """

    candidate: Candidate
    score: float
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankOutcome:
    """What became of a list of candidates.

    Attributes:
        ranking: Every candidate, best first; in the first stage's order where ``reranked`` is False.
        reranked: Whether the reranker had a say.
        reason: Why not, in words for a person; empty where it had.
        failed: Whether that is because the reranker failed.
        milliseconds: How long the search waited.
    """

    ranking: tuple[RerankedCandidate, ...]
    reranked: bool
    reason: str = ""
    failed: bool = False
    milliseconds: float = 0.0


def apply(
    reranker: Reranker,
    query: str,
    candidates: Sequence[Candidate],
    *,
    weight: float,
    timeout_seconds: float = TIMEOUT_SECONDS,
    own_thread: bool = True,
) -> RerankOutcome:
    """Rerank candidates; whatever goes wrong, there is a ranking.

    The final score is ``weight · reranker + (1 − weight) · first stage``, both as standard scores over the candidates
    (minus their mean, divided by their standard deviation). Mixing measured better than replacing, see
    ``docs/how-to/reranking.md``.

    A reranker that raises, returns something else than one finite number a candidate, or takes too long is logged as
    a warning, and the candidates come back in their first order. One that hangs keeps its thread until it returns;
    with `MAX_CALLS` of them under way, further searches do without reranking rather than start more.

    Args:
        reranker: Scores the candidates.
        query: The question, as asked.
        candidates: In any order.
        weight: The reranker's share, 0 to 1; with 0 it is not asked, with 1 it decides alone.
        timeout_seconds: How long to wait for it.
        own_thread: Whether it runs in a thread of its own, which the time limit needs; without one it is waited for.

    Raises:
        UsageError: ``weight`` or ``timeout_seconds`` is out of range.
    """
    if not 0 <= weight <= 1:
        raise UsageError(f"weight must lie between 0 and 1, not {weight!r}")
    if not timeout_seconds > 0:
        raise UsageError(f"timeout_seconds must be more than 0, not {timeout_seconds!r}")
    started = time.perf_counter()
    if weight == 0 or not candidates:
        reason = "there is nothing to rerank" if weight else "its weight is 0"
        return RerankOutcome(ranking=_first_order(candidates), reranked=False, reason=reason)
    try:
        given = (
            _scores(reranker, query, candidates, timeout_seconds) if own_thread else reranker.rerank(query, candidates)
        )
        scores = _checked(given, len(candidates))
    except Exception as exc:  # noqa: BLE001 - see above
        reason = f"{type(exc).__name__}: {exc}"
        logger.warning("The reranker %s failed, so the results are not reranked. %s", reranker.name, reason)
        return RerankOutcome(
            ranking=_first_order(candidates), reranked=False, reason=reason, failed=True, milliseconds=_since(started)
        )
    return RerankOutcome(ranking=_mixed(candidates, scores, weight), reranked=True, milliseconds=_since(started))


def apply_to_parts(
    parts: Sequence[tuple[Reranker, Sequence[Candidate]]],
    query: str,
    *,
    weight: float,
    timeout_seconds: float = TIMEOUT_SECONDS,
    own_thread: bool = True,
) -> RerankOutcome:
    """Rerank candidates of which each part has a reranker of its own, whose scores say nothing beside another's.

    Each part is mixed within itself, as in `apply`, and keeps the mean and the deviation that its first scores have
    among all of them. Where one reranker fails, nothing is reranked. The arguments are those of `apply`.
    """
    if len(parts) == 1:
        ((reranker, candidates),) = parts
        return apply(reranker, query, candidates, weight=weight, timeout_seconds=timeout_seconds, own_thread=own_thread)
    started = time.perf_counter()
    everything = [candidate for _, candidates in parts for candidate in candidates]
    ranking: list[RerankedCandidate] = []
    scores = standardised([one.score for one in everything]).tolist()
    first = {one.chunk_id: score for one, score in zip(everything, scores, strict=True)}
    for reranker, candidates in parts:
        left = max(timeout_seconds - _since(started) / 1000, timeout_seconds / 100)
        outcome = apply(reranker, query, candidates, weight=weight, timeout_seconds=left, own_thread=own_thread)
        if not outcome.reranked:
            return replace(outcome, ranking=_first_order(everything), milliseconds=_since(started))
        own = np.array([first[one.chunk_id] for one in candidates])
        middle, spread = float(own.mean()), float(own.std())
        ranking += [replace(one, score=middle + spread * one.score) for one in outcome.ranking]
    ranking.sort(key=lambda item: (-item.score, -item.candidate.score, item.candidate.chunk_id))
    return RerankOutcome(ranking=tuple(ranking), reranked=True, milliseconds=_since(started))


def _scores(reranker: Reranker, query: str, candidates: Sequence[Candidate], timeout_seconds: float) -> Sequence[float]:
    call = _CALLS.start(partial(reranker.rerank, query, candidates), name=f"recollect-rerank-{reranker.name}")
    return call.wait(timeout_seconds)


def _checked(given: Sequence[float], count: int) -> list[float]:
    scores = list(given)
    if len(scores) != count:
        raise ValueError(f"it gave {len(scores)} scores for {count} candidates")
    checked = [float(score) for score in scores]
    if not all(map(math.isfinite, checked)):
        raise ValueError("it gave scores that are no finite numbers")
    return checked


def _mixed(candidates: Sequence[Candidate], scores: Sequence[float], weight: float) -> tuple[RerankedCandidate, ...]:
    first = standardised([candidate.score for candidate in candidates])
    second = standardised(scores)
    mixed = (weight * second + (1 - weight) * first).tolist()
    # Where the reranker alone decides, equals keep the first stage's order.
    order = [
        (-total, -candidate.score, candidate.chunk_id, place)
        for place, (candidate, total) in enumerate(zip(candidates, mixed, strict=True))
    ]
    order.sort()
    return tuple([RerankedCandidate(candidates[place], mixed[place], scores[place]) for *_, place in order])


def _first_order(candidates: Sequence[Candidate]) -> tuple[RerankedCandidate, ...]:
    ordered = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.chunk_id))
    return tuple(RerankedCandidate(candidate, candidate.score) for candidate in ordered)


def standardised(values: Sequence[float]) -> Floats:
    """Standard scores: minus the mean, divided by the standard deviation; zeros where all values are equal.

    Args:
        values: Finite numbers.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.size == 0:
        return given
    deviation = float(given.std())
    # Below this, what differs is rounding.
    if deviation <= 1e-9 * max(1.0, float(np.abs(given).max())):
        return np.zeros_like(given)
    result: Floats = (given - given.mean()) / deviation
    return result


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
