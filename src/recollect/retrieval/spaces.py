"""Collections of several embedding models searched as one.

A cosine of one model says nothing beside a cosine of another: what is nearest to one model at 0.4 is far away to the
next. So the question is embedded by each model once, and similarities are told apart from what is unrelated and what
answers by the model's own scale (`recollect.retrieval.relevance.SimilarityScale`) before candidates get one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from recollect.retrieval.pooled_statistics import merged
from recollect.retrieval.relevance import SimilarityScale

if TYPE_CHECKING:
    from recollect.embedding.base import Vectors
    from recollect.model.collection import Collection
    from recollect.retrieval.candidates import Candidates


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
