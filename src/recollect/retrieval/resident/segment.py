"""Chunks in memory, laid out for searches: vectors with their binary codes, and the postings of their words.

Codes have one bit a dimension, its sign. The chunks whose codes differ least from a query's are compared by their
stored vectors. Words are scored over postings, one term after the other. A posting holds how often the word stands in
the chunk, not a weight, so that scores go by today's average length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.retrieval.lexical import occurrences
from recollect.retrieval.resident.kernels import Codes, Counts, Halfs, Mask, Ranges, Rows
from recollect.store.resident import Contents

Longs = npt.NDArray[np.int64]

_NONE = -1
_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The chunks of a collection, or of a part of it, by id; rows are numbered by that order.

    Attributes:
        chunk_ids: Shape (rows,), ascending.
        version_ids: Shape (rows,).
        access_ids: Shape (rows,).
        before: Shape (rows,): the row of the chunk before it in its document, -1 where there is none.
        after: The same of the chunk behind it.
        lengths: Shape (rows,): in terms; -1 of a chunk that words are not known of.
        embedded: Shape (rows,): whether there is a vector.
        vectors: Shape (rows, dimension); zeros where there is none.
        codes: Shape (words of 64 bits, rows).
        lexemes: Ascending: every word that a chunk holds.
        starts: Shape (lexemes + 1,): where the part of each begins in the postings.
        holders: Shape (postings,): the rows that hold each word, ascending.
        counts: Shape (postings,): how often.
    """

    chunk_ids: Longs
    version_ids: Longs
    access_ids: Rows
    before: Rows
    after: Rows
    lengths: Rows
    embedded: Mask
    vectors: Halfs
    codes: Codes
    lexemes: Rows
    starts: Longs
    holders: Rows
    counts: Counts

    @classmethod
    def of(cls, contents: Contents, *, dimension: int, reference_length: float) -> Segment:
        """From what was read of a store.

        Args:
            contents: Read.
            dimension: Of the vectors.
            reference_length: The average length that the stored weights were computed with.
        """
        words, vectors, places = contents.words, contents.vectors, contents.places
        chunk_ids = np.union1d(words.chunk_ids, vectors.chunk_ids)
        worded, embedded = chunk_ids.searchsorted(words.chunk_ids), chunk_ids.searchsorted(vectors.chunk_ids)
        version_ids = np.zeros(len(chunk_ids), dtype=np.int64)
        access_ids, lengths = np.zeros(len(chunk_ids), dtype=np.int32), np.full(len(chunk_ids), _NONE, dtype=np.int32)
        halfs = np.zeros((len(chunk_ids), dimension), dtype=np.float16)
        there = np.zeros(len(chunk_ids), dtype=np.uint8)
        for rows, part in ((embedded, vectors), (worded, words)):
            version_ids[rows], access_ids[rows] = part.version_ids, part.access_ids
        lengths[worded], there[embedded] = words.lengths, 1
        start = 0
        while vectors.vectors:
            piece = vectors.vectors.pop(0)
            halfs[embedded[start : start + len(piece)]] = piece
            start += len(piece)
        own = worded.astype(np.int32).repeat(words.counts)
        often = np.empty(len(own), dtype=np.uint16)
        for start in range(0, len(own), _AT_ONCE):  # in double precision they take many times the memory
            some = slice(start, start + _AT_ONCE)
            often[some] = occurrences(words.weights[some], lengths[own[some]], average_length=reference_length)
        positions = np.full(len(chunk_ids), _NONE, dtype=np.int32)
        standing = chunk_ids.searchsorted(places.chunk_ids)
        known = standing < len(chunk_ids)
        known[known] = chunk_ids[standing[known]] == places.chunk_ids[known]
        positions[standing[known]] = places.positions[known]
        before, after = _neighbours(version_ids, positions, lengths)
        return cls(
            chunk_ids,
            version_ids,
            access_ids,
            before,
            after,
            lengths,
            there,
            halfs,
            codes_of(halfs),
            *_postings(words.lexemes, own, often),
        )

    def __len__(self) -> int:
        return len(self.chunk_ids)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(getattr(self, one.name).nbytes for one in fields(self))

    def ranges(self, lexemes: Sequence[int]) -> Ranges:
        """Shape (lexemes, 2): where the part of each word begins and ends in the postings."""
        if not len(self.lexemes):
            return np.zeros((len(lexemes), 2), dtype=np.int64)
        asked = np.array(lexemes, dtype=np.int32)
        places = np.minimum(self.lexemes.searchsorted(asked), len(self.lexemes) - 1)
        found = np.stack([self.starts[places], self.starts[places + 1]], axis=1)
        found[self.lexemes[places] != asked] = 0
        return found

    def rows_of(self, version_ids: Longs) -> npt.NDArray[np.intp]:
        """The rows of the chunks of versions."""
        return np.flatnonzero(np.isin(self.version_ids, version_ids))


def joined(parts: Sequence[tuple[Segment, npt.NDArray[np.bool_]]]) -> Segment:
    """One segment of the rows of several that are kept.

    Args:
        parts: Segments without a chunk in common, and which of their rows are kept. Versions are whole, in one of them.
    """
    chunk_ids = np.concatenate([one.chunk_ids[kept] for one, kept in parts])
    order = np.argsort(chunk_ids, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    own: dict[str, Any] = {}
    for name in ("version_ids", "access_ids", "lengths", "embedded", "vectors"):
        own[name] = np.concatenate([getattr(one, name)[kept] for one, kept in parts])[order]
    codes = np.concatenate([one.codes[:, kept] for one, kept in parts], axis=1)
    moved: list[Rows] = []
    start = 0
    for one, kept in parts:
        # Where each of its rows has gone; the last entry is for neighbours that are not there.
        rows = np.full(len(one) + 1, _NONE, dtype=np.int32)
        count = int(kept.sum())
        rows[:-1][kept] = place[start : start + count]
        moved.append(rows)
        start += count
    postings = [_moved(one, rows) for (one, _), rows in zip(parts, moved, strict=True)]
    beside = {
        name: np.concatenate([rows[getattr(one, name)[kept]] for (one, kept), rows in zip(parts, moved, strict=True)])[
            order
        ]
        for name in ("before", "after")
    }
    return Segment(
        chunk_ids[order],
        own["version_ids"],
        own["access_ids"],
        beside["before"],
        beside["after"],
        own["lengths"],
        own["embedded"],
        own["vectors"],
        np.ascontiguousarray(codes[:, order]),
        *_postings(*(np.concatenate(column) for column in zip(*postings, strict=True))),
    )


def codes_of(vectors: npt.NDArray[Any]) -> Codes:
    """Shape (words, rows): a bit a dimension, padded to whole words."""
    bits = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 64), dtype=np.bool_)
    np.greater(vectors, 0, out=bits[:, : vectors.shape[1]])
    return np.ascontiguousarray(np.packbits(bits, axis=1).view(np.uint64).T)


def _neighbours(version_ids: Longs, positions: Rows, lengths: Rows) -> tuple[Rows, Rows]:
    """The rows before and behind each in its document, of those that words are known of."""
    before, after = np.full((2, len(positions)), _NONE, dtype=np.int32)
    order = np.lexsort((positions, version_ids))
    first, second = order[:-1], order[1:]
    beside = (version_ids[first] == version_ids[second]) & (positions[first] + 1 == positions[second])
    beside &= positions[first] != _NONE
    reads_back, reads_on = beside & (lengths[first] >= 0), beside & (lengths[second] >= 0)
    before[second[reads_back]] = first[reads_back]
    after[first[reads_on]] = second[reads_on]
    return before, after


def _moved(segment: Segment, rows: Rows) -> tuple[Rows, Rows, Counts]:
    """The word, the new row and the count of each posting whose row is kept."""
    holders = rows[segment.holders]
    kept = holders != _NONE
    lexemes = segment.lexemes.repeat(np.diff(segment.starts))
    return lexemes[kept], holders[kept], segment.counts[kept]


def _postings(lexemes: Rows, rows: Rows, counts: Counts) -> tuple[Rows, Longs, Rows, Counts]:
    """Distinct words, where the part of each begins, rows and counts, from postings in any order."""
    order = np.argsort(lexemes.astype(np.int64) << 32 | rows)
    sorted_lexemes = lexemes[order]
    distinct, starts = np.unique(sorted_lexemes, return_index=True)
    return distinct, np.append(starts, len(order)).astype(np.int64), rows[order], counts[order]
