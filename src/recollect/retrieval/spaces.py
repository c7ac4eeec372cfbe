"""Collections of several embedding models searched as one.

A cosine of one model says nothing beside a cosine of another: what is nearest to one model at 0.4 is far away to the
next. So the question is embedded by each model once, and similarities are told apart from what is unrelated and what
answers by the model's own scale (`recollect.retrieval.relevance.SimilarityScale`) before candidates get one order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from recollect.retrieval.analysis import lexeme
from recollect.retrieval.candidates import CandidateRequest, Candidates, PooledStatistics
from recollect.retrieval.lexical import usually_beside
from recollect.retrieval.relevance import SimilarityScale

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model.collection import Collection


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """The collections of a search that one model embedded: their vectors can be compared.

    Attributes:
        place: One of them, by which the model is made.
        positions: Which of those searched they are.
    """

    place: Collection
    positions: tuple[int, ...]

    @property
    def model(self) -> str:
        """The model's name."""
        return self.place.embedding_model


def spaces_of(places: Sequence[Collection]) -> tuple[VectorSpace, ...]:
    """The vector spaces of collections, in the order in which they come up."""
    positions: dict[str, list[int]] = {}
    for position, place in enumerate(places):
        positions.setdefault(place.embedding_model, []).append(position)
    return tuple(VectorSpace(places[own[0]], tuple(own)) for own in positions.values())


def joined(
    models: Sequence[str], parts: Sequence[Candidates], scales: Sequence[SimilarityScale | None], *, limit: int
) -> Candidates:
    """What was found in several spaces, as if it were one.

    Args:
        models: The name of each space's model.
        parts: What was found in each; no chunk is in two of them.
        scales: Of each model; None: unknown, so that what was found of it is its own measure.
        limit: Candidates that each way contributes.
    """
    if len(parts) == 1:
        return parts[0]
    comparable: dict[int, float] = {}
    for part, scale in zip(parts, scales, strict=True):
        own = scale or _scale_of(part.similarities.values())
        comparable |= {chunk_id: own.standardised(similarity) for chunk_id, similarity in part.similarities.items()}
    whole = merged(parts, limit=limit, comparable=comparable)
    return replace(
        whole,
        embedding=None,  # there are several
        comparable={chunk_id: comparable[chunk_id] for chunk_id in whole.similarities},
        models={chunk_id: model for model, part in zip(models, parts, strict=True) for chunk_id in part.known},
    )


def on_one_scale(measured: Sequence[tuple[str, float]], scales: Mapping[str, SimilarityScale | None]) -> list[float]:
    """Similarities that several models measured, comparable with one another.

    Args:
        measured: The model, and the similarity.
        scales: Of each model; None, or a model that is not there: unknown, so that what was found of it is its measure.
    """
    own: dict[str, list[float]] = {}
    for model, similarity in measured:
        own.setdefault(model, []).append(similarity)
    known = {model: scales.get(model) or _scale_of(found) for model, found in own.items()}
    return [known[model].standardised(similarity) for model, similarity in measured]


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


def _scale_of(similarities: Iterable[float]) -> SimilarityScale:
    """By what was found alone: the mean is taken for unrelated, the best for an answer."""
    found = list(similarities)
    return SimilarityScale(sum(found) / len(found), max(found)) if found else SimilarityScale(0.0, 1.0)


# Several collections searched as if they were one: their words weighed alike, their candidates in one order.
#
# A word
# that is rare in a small collection may be frequent in all of them together, and the other way round. BM25 of
# different
# collections can be compared only where its document frequencies and average length are those of all; cosine
# similarities of one model can be compared as they are (of several: `recollect.retrieval.spaces`). So the statistics
# are
# added up before candidates are looked for, and what is found is joined before it is fused and reranked.


_Value = TypeVar("_Value")


def pooled(requests: Sequence[CandidateRequest], frequencies: Sequence[Mapping[str, int]]) -> list[CandidateRequest]:
    """The requests with the statistics of all their collections.

    Args:
        requests: One for each collection.
        frequencies: In how many chunks of each collection the words of its request stand. Only words of one language
            are added up: analysed in another one, they are others.
    """
    sizes = [max(request.collection.stats_chunks, request.collection.chunk_count) for request in requests]
    terms = sum(size * request.collection.average_length for size, request in zip(sizes, requests, strict=True))
    chunks = max(1, sum(sizes))
    # Of collections that are all empty, any length will do.
    length = terms / chunks or 1.0
    beside = usually_beside([request.collection for request in requests])
    joined = []
    for request, own in zip(requests, frequencies, strict=True):
        elsewhere = {
            lexeme(word, request.collection.collection_id): sum(
                other.get(word, 0)
                for one, other in zip(requests, frequencies, strict=True)
                if one is not request and one.collection.language == request.collection.language
            )
            for word in own
        }
        joined.append(replace(request, pooled=PooledStatistics(elsewhere, chunks, length, beside)))
    return joined


def merged(results: Sequence[Candidates], *, limit: int, comparable: Mapping[int, float] | None = None) -> Candidates:
    """What was found in several collections, as if they were one.

    Args:
        results: Of each collection; no chunk is in two of them.
        limit: Candidates that each way contributes.
        comparable: The similarities on one scale, where they are of several models.
    """
    if len(results) == 1:
        return results[0]
    dense = _best((item for one in results for item in one.dense), limit, comparable)
    lexical = _best((item for one in results for item in one.lexical), limit)
    kept = {chunk_id for chunk_id, _ in (*dense, *lexical)}

    return Candidates(
        dense=dense,
        lexical=lexical,
        similarities=_of(kept, (one.similarities for one in results)),
        bm25=_of(kept, (one.bm25 for one in results)),
        in_context=_of(kept, (one.in_context for one in results)),
        coverage=_of(kept, (one.coverage for one in results)),
        paths={
            way: " and ".join(sorted({one.paths[way] for one in results if way in one.paths}))
            for way in ("dense", "lexical")
            if any(way in one.paths for one in results)
        },
        embedding=next((one.embedding for one in results if one.embedding is not None), None),
        vectors=_of(kept, (one.vectors for one in results)),
        weights={number: weight for one in results for number, weight in one.weights.items()},
        dense_exact=all(one.dense_exact for one in results),
        lexical_exact=all(one.lexical_exact for one in results),
    )


def _of(chunk_ids: Set[int], maps: Iterable[Mapping[int, _Value]]) -> dict[int, _Value]:
    return {chunk_id: value for known in maps for chunk_id, value in known.items() if chunk_id in chunk_ids}


def _best(
    scored: Iterable[tuple[int, float]], limit: int, comparable: Mapping[int, float] | None = None
) -> list[tuple[int, float]]:
    measured = comparable or {}
    return heapq.nsmallest(limit, scored, key=lambda item: (-measured.get(item[0], item[1]), item[0]))
