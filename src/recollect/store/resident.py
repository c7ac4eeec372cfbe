"""What a copy of a collection in memory is made of, read many rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
import numpy.typing as npt
from psycopg import sql

from recollect.store.changes import Changes, changes_since
from recollect.store.database import Repository, rows
from recollect.store.sql import queries
from recollect.store.wire import COPY_HEADER, sparsevec_batch

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.store.database import Connection

_SQL = queries("resident")

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

# Bytes that are taken apart at once.
_AT_ONCE = 16_000_000

# A row of the binary COPY: how many fields, and before each its length in bytes.
_HEAD = Struct(">hiqiqiiiii")  # fields; chunk, version, access list, length; how long the sparse vector is


@dataclass(frozen=True, slots=True, eq=False)
class WordRows:
    """The current lexical rows of a collection, or of some of its versions, in no order.

    Attributes:
        chunk_ids: Of n chunks.
        version_ids: Of these.
        access_ids: Of these.
        lengths: In terms.
        counts: How many distinct lexemes each has.
        lexemes: The first chunk's, then the second's, …
        weights: As stored, parallel to ``lexemes``.
    """

    chunk_ids: Longs
    version_ids: Longs
    access_ids: Ints
    lengths: Ints
    counts: Ints
    lexemes: Ints
    weights: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class VectorRows:
    """The current vectors of a space, or of some of its versions, in no order.

    Attributes:
        chunk_ids: Of n chunks.
        version_ids: Of these.
        access_ids: Of these.
        vectors: Shape (some of n, dimension) each, one behind the other: whoever takes them over lets each go at once.
    """

    chunk_ids: Longs
    version_ids: Longs
    access_ids: Ints
    vectors: list[npt.NDArray[np.float16]]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceRows:
    """Where current chunks stand in their documents.

    Attributes:
        chunk_ids: Of n chunks.
        positions: From 0.
    """

    chunk_ids: Longs
    positions: Ints


@dataclass(frozen=True, slots=True)
class State:
    """A collection at a moment.

    Attributes:
        collection_id: Which.
        revision: Grows with every change.
        revision_id: Of that revision, and of no other.
        space_id: The vector space that searches use.
        dimension: Of its vectors.
        reference_length: The average length that stored weights were computed with.
        chunks: Of current versions.
    """

    collection_id: int
    revision: int
    revision_id: str
    space_id: int
    dimension: int
    reference_length: float
    chunks: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a collection holds for searches, or what some of its versions do.

    Attributes:
        words: By words.
        vectors: By meaning.
        places: In their documents.
    """

    words: WordRows
    vectors: VectorRows
    places: PlaceRows


@dataclass(frozen=True, slots=True, eq=False)
class TermCounts:
    """In how many chunks words stand, by the last refresh.

    Attributes:
        lexemes: Ascending.
        frequencies: Parallel to these.
    """

    lexemes: Ints
    frequencies: Ints

    def of(self, wanted: Sequence[int]) -> dict[int, int]:
        """The frequencies of lexemes; those never seen are absent."""
        if not len(self.lexemes):
            return {}
        asked = np.array(wanted, dtype=np.int32)
        places = np.minimum(self.lexemes.searchsorted(asked), len(self.lexemes) - 1)
        known = self.lexemes[places] == asked
        return dict(zip(asked[known].tolist(), self.frequencies[places[known]].tolist(), strict=True))


class ResidentRepository(Repository):
    """Reads collections whole, and what changed in them."""

    @contextmanager
    def snapshot(self, scope: Scope, *, aside: bool = False) -> Iterator[Snapshot]:
        """Reads of one moment, under the row-level security of the scope's tenant.

        ``aside``: over a connection of their own, so that nobody waits for one while much is read.
        """
        database = self._database.separate(max_connections=1) if aside else self._database
        try:
            with database.transaction(scope, snapshot=True) as connection:
                yield Snapshot(connection, scope.tenant_id)
        finally:
            if aside:
                database.close()


class Snapshot:
    """One moment of a store.

    Args:
        connection: In a transaction that sees one moment.
        tenant_id: Whose rows are read.
    """

    def __init__(self, connection: Connection, tenant_id: int) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def state(self, collection_id: int) -> State | None:
        """A collection as it is; None: it is gone, or a session's."""
        params = {"tenant_id": self._tenant_id, "collection_id": collection_id}
        found = rows(self._connection, _SQL["state"], params)
        return State(collection_id, *found[0]) if found else None

    def changes(self, collection_id: int, revision: int, revision_id: str) -> Changes | None:
        """What changed in a collection since a revision; see `recollect.store.changes.ChangeRepository.since`."""
        return changes_since(self._connection, self._tenant_id, collection_id, revision, revision_id)

    def term_counts(self, collection_id: int) -> TermCounts:
        """In how many chunks each word of a collection stands."""
        layout = _layout(lexeme="i4", frequency="i4")
        numbers = _joined(self._copied("term_counts", {"collection_id": collection_id}), layout)
        order = np.argsort(numbers["lexeme"], kind="stable")
        return TermCounts(_native(numbers["lexeme"][order], np.int32), _native(numbers["frequency"][order], np.int32))

    def contents(self, state: State, version_ids: Sequence[int] | None = None) -> Contents:
        """The current chunks of a collection, or of some of its versions."""
        some: sql.Composable = sql.SQL("")
        if version_ids is not None:
            some = sql.SQL("AND version_id = ANY ({})").format(sql.Literal(list(version_ids)))
        params = {"collection_id": state.collection_id, "space_id": state.space_id, "some": some}
        places = _joined(self._copied("places", params), _layout(chunk="i8", position="i4"))
        return Contents(
            words=_word_rows(self._copied("words", params)),
            vectors=_vector_rows(self._copied("vectors", params), state.dimension),
            places=PlaceRows(_native(places["chunk"], np.int64), _native(places["position"], np.int32)),
        )

    def still_there(self, version_ids: Sequence[int]) -> set[int]:
        """Those of the versions that were not erased."""
        params = {"tenant_id": self._tenant_id, "version_ids": list(version_ids)}
        return {row[0] for row in rows(self._connection, _SQL["still_there"], params)}

    def _copied(self, query: str, params: dict[str, Any]) -> Iterator[bytes]:
        """The rows of a query in the binary form of COPY, many at a time, without what that begins and ends with."""
        literals = {name: one if isinstance(one, sql.Composable) else sql.Literal(one) for name, one in params.items()}
        statement: LiteralString = _SQL[query]
        filled = sql.SQL(statement).format(**literals, tenant_id=sql.Literal(self._tenant_id))
        with self._connection.cursor().copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(filled)) as copy:
            pieces: list[bytes | bytearray | memoryview] = []
            size, begins = 0, len(COPY_HEADER)
            for piece in copy:  # a row, and the end by itself
                pieces.append(piece)
                size += len(piece)
                if size >= _AT_ONCE:
                    yield b"".join(pieces)[begins:]
                    pieces, size, begins = [], 0, 0
            yield b"".join(pieces)[begins:-2]


def _joined(pieces: Iterator[bytes], layout: np.dtype[np.void]) -> npt.NDArray[np.void]:
    return np.frombuffer(b"".join(pieces), dtype=layout)


def _layout(**fields: str) -> np.dtype[np.void]:
    """Rows of the binary COPY whose fields all have a size."""
    parts: list[tuple[str, str]] = [("fields", ">i2")]
    for name, kind in fields.items():
        parts += [(f"{name}_bytes", ">i4"), (name, f">{kind}")]
    return np.dtype(parts)


def _native(values: npt.NDArray[Any], kind: type[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(values, dtype=kind)


def _vector_rows(pieces: Iterator[bytes], dimension: int) -> VectorRows:
    head = _layout(chunk="i8", version="i8", access="i4").descr
    layout = np.dtype(
        [*head, ("bytes", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f2", (dimension,))]
    )
    numbers: list[tuple[Longs, Longs, Ints]] = []
    vectors: list[npt.NDArray[np.float16]] = []
    for piece in pieces:
        found = np.frombuffer(piece, dtype=layout)
        of_each = _native(found["version"], np.int64), _native(found["access"], np.int32)
        numbers.append((_native(found["chunk"], np.int64), *of_each))
        vectors.append(_native(found["vector"], np.float16))
    chunk_ids, version_ids, access_ids = map(np.concatenate, zip(*numbers, strict=True))
    return VectorRows(chunk_ids, version_ids, access_ids, vectors)


def _word_rows(pieces: Iterator[bytes]) -> WordRows:
    parts = [_words_of(piece) for piece in pieces]
    return WordRows(*map(np.concatenate, zip(*parts, strict=True)))


def _words_of(sent: bytes) -> tuple[npt.NDArray[Any], ...]:
    """The fields of `WordRows`, of some of its rows."""
    view = memoryview(sent)
    heads: list[tuple[int, int, int, int]] = []
    vectors: list[memoryview] = []
    at = 0
    while at < len(sent):
        _, _, chunk, _, version, _, access, _, length, size = _HEAD.unpack_from(view, at)
        at += _HEAD.size
        heads.append((chunk, version, access, length))
        vectors.append(view[at : at + size])
        at += size
    numbers = np.array(heads, dtype=np.int64).reshape(-1, 4)
    counts, indices, weights = sparsevec_batch(vectors)  # type: ignore[arg-type]
    small = numbers[:, 2].astype(np.int32), numbers[:, 3].astype(np.int32)
    return numbers[:, 0].copy(), numbers[:, 1].copy(), *small, counts, indices + 1, weights
