"""What searches read of chunks, and which rows they look through: the forms that retrieval works with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pgvector import SparseVector
from psycopg.rows import TupleRow

from recollect.model import Outline, Scope
from recollect.model.collection import Collection
from recollect.store.past import PastParts
from recollect.store.wire import halfvecs, sparsevec_batch

#: pgvector's sparse vectors have at most this many dimensions; lexemes are numbers from 1 to it.
LEXEME_SPACE = 1_000_000_000

#: A version of a document, and offsets in its content: from, and up to.
Span = tuple[int, int, int]

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class LexicalRow:
    """What searches by words read of a chunk.

    Attributes:
        length: The chunk's length in terms.
        lexemes: int32 array, ascending.
        weights: float32 array of BM25 document weights, parallel to ``lexemes``.
    """

    length: int
    lexemes: Ints
    weights: Floats


@dataclass(frozen=True, slots=True)
class LexicalRows:
    """What searches by words read of many chunks, laid out for scoring them at once.

    Attributes:
        chunk_ids: Of n chunks.
        lengths: float64 array of shape (n,): each chunk's length in terms.
        counts: int32 array of shape (n,): how many distinct lexemes each chunk has.
        lexemes: int32 array of shape (counts.sum(),): the first chunk's, then the second's, …
        weights: float32 array parallel to ``lexemes``: BM25 document weights.
    """

    chunk_ids: list[int]
    lengths: npt.NDArray[np.float64]
    counts: Ints
    lexemes: Ints
    weights: Floats

    @classmethod
    def read(cls, found: Sequence[TupleRow]) -> LexicalRows:
        """From rows of (chunk_id, length, weights as sent)."""
        counts, indices, weights = sparsevec_batch([row[2] for row in found])
        lengths = np.array([row[1] for row in found], dtype=np.float64)
        return cls([row[0] for row in found], lengths, counts, indices + 1, weights)

    def __len__(self) -> int:
        return len(self.chunk_ids)

    def joined(self, more: LexicalRows) -> LexicalRows:
        """These, and then those; a chunk that is in both is there twice."""
        return LexicalRows(
            [*self.chunk_ids, *more.chunk_ids],
            np.concatenate([self.lengths, more.lengths]),
            np.concatenate([self.counts, more.counts]),
            np.concatenate([self.lexemes, more.lexemes]),
            np.concatenate([self.weights, more.weights]),
        )


@dataclass(frozen=True, slots=True)
class RowSelection:
    """Which rows of a collection are looked through, of those that the scope's moment and the caller's rights leave.

    Attributes:
        version_ids: Only chunks of these document versions; None: of all.
        past: Part by part, each through its own indexes; None: all as one.
    """

    version_ids: list[int] | None = None
    past: PastParts | None = None

    def params(self, scope: Scope, collection: Collection) -> dict[str, Any]:
        """The parameters of a ``row_selection``."""
        past = self.past
        starts = None if past is None else [*(["infinity"] if past.current else []), *past.starts]
        return {
            **collection_params(scope, collection),
            "as_of": scope.as_of,
            "starts": starts,
            "ends": None if past is None else [*(["infinity"] if past.current else []), *past.ends],
            "beside": None if past is None else past.version_ids,
            "version_ids": self.version_ids,
        }


EVERY_ROW = RowSelection()


@dataclass(frozen=True, slots=True)
class CandidateRows:
    """The chunks that one way of searching found, with what the other way stores of each.

    Attributes:
        chunk_ids: Best first.
        similarities: Cosine similarities of these chunks, where a vector was given.
        lexical: Their lexical rows, where they were asked for.
        vectors: Their stored vectors, where they were asked for.
    """

    chunk_ids: list[int]
    similarities: dict[int, float]
    lexical: LexicalRows
    vectors: dict[int, Floats]


@dataclass(frozen=True, slots=True)
class BothRows:
    """The chunks that both ways of searching found, and the rows of those beside them.

    Attributes:
        nearest: By meaning.
        worded: By words.
        beside: As `SearchRepository.beside` gives them for all of these; none where no context is wanted.
    """

    nearest: CandidateRows
    worded: CandidateRows
    beside: LexicalRows


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRow:
    """What is shown of a chunk (its parent's span where it has one)."""

    chunk_id: int
    document_id: int
    title: str
    source: str
    section: tuple[str, ...]
    page: int | None
    start_offset: int
    end_offset: int
    content: str
    metadata: Mapping[str, Any]
    department: str | None
    tags: tuple[str, ...]
    version_id: int
    event_time: datetime | None = None
    has_namesake: bool = False
    id: str | None = None
    outline: Outline | None = None


@dataclass(frozen=True, slots=True)
class StretchRow:
    """A chunk with its neighbours: one span of its document, and where its first chunk stands."""

    start_offset: int
    end_offset: int
    content: str
    section: tuple[str, ...]
    page: int | None


def to_sparse(lexemes: Sequence[int] | Ints, weights: Sequence[float] | Floats) -> SparseVector:
    """A pgvector sparse vector from lexemes (1-based) and their weights."""
    return SparseVector(
        {int(lexeme) - 1: float(weight) for lexeme, weight in zip(lexemes, weights, strict=True)}, LEXEME_SPACE
    )


def candidate_rows(found: Sequence[TupleRow]) -> CandidateRows:
    """From rows of (chunk_id, length, weights as sent, similarity, vector as sent), the last four of which may be None.

    A chunk that lacks its row in the other way's table has no score there.
    """
    return CandidateRows(
        chunk_ids=[row[0] for row in found],
        similarities={row[0]: row[3] for row in found if row[3] is not None},
        lexical=LexicalRows.read([row for row in found if row[1] is not None]),
        vectors=stored_vectors([(row[0], row[4]) for row in found if row[4]]),
    )


def stored_vectors(found: Sequence[TupleRow]) -> dict[int, Floats]:
    """From rows of (chunk_id, vector as sent): float32 arrays by chunk."""
    return dict(zip([row[0] for row in found], halfvecs([row[1] for row in found]), strict=True))


def collection_params(scope: Scope, collection: Collection) -> dict[str, Any]:
    """The parameters of whatever is searched in a collection with its caller's rights."""
    allowed = None if collection.access_ids is None else list(collection.access_ids)
    return {
        "tenant_id": scope.tenant_id,
        "collection_id": collection.collection_id,
        "space_id": collection.space_id,
        "access_ids": allowed,
    }
