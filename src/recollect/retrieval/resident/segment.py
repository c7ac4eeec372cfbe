"""Chunks in memory, laid out for searches: vectors with their binary codes, and the postings of their words.

Codes have one bit a dimension, its sign. The chunks whose codes differ least from a query's are compared by their
stored vectors. The codes of many chunks lie in lists, those with similar vectors together, and a search looks into the
lists that are nearest to it (`lists.py`). Words are scored over postings, one term after the other. A posting holds how
often the word stands in the chunk, not a weight, so that scores go by today's average length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.retrieval.lexical import MAX_WEIGHT, occurrences, saturation_line
from recollect.retrieval.resident.kernels import Codes, Counts, Floats, Halfs, Mask, Ranges, Rows
from recollect.retrieval.resident.lists import Lists, between
from recollect.store.resident import Contents, WordRows

Longs = npt.NDArray[np.int64]

_NONE = -1

# So many chunks are laid out at a time: all of them at once take several times the memory of the result.
_AT_ONCE = 20_000
_POSTINGS_AT_ONCE = 2_000_000


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
        codes: Shape (words of 64 bits, rows), in the order of the lists.
        lists: Which codes lie together.
        lexemes: Ascending: every word that a chunk holds.
        starts: Shape (lexemes + 1,): where the part of each begins in the postings.
        holders: Shape (postings,): the rows that hold each word, ascending.
        counts: Shape (postings,): how often.
        reference_length: The average length that stored weights were computed with.
        shares: Shape (lexemes,): the greatest share of its weight that each word has in a chunk, by that length.
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
    lists: Lists
    lexemes: Rows
    starts: Longs
    holders: Rows
    counts: Counts
    reference_length: float
    shares: Floats = field(init=False)

    def __post_init__(self) -> None:
        shares = _shares(self.starts, self.holders, self.counts, self.lengths, self.reference_length)
        object.__setattr__(self, "shares", shares)

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
        positions = np.full(len(chunk_ids), _NONE, dtype=np.int32)
        standing = chunk_ids.searchsorted(places.chunk_ids)
        known = standing < len(chunk_ids)
        known[known] = chunk_ids[standing[known]] == places.chunk_ids[known]
        positions[standing[known]] = places.positions[known]
        before, after = _neighbours(version_ids, positions, lengths)
        codes, lists = _in_lists(halfs, there)
        return cls(
            chunk_ids,
            version_ids,
            access_ids,
            before,
            after,
            lengths,
            there,
            halfs,
            codes,
            lists,
            *_laid_out(words, worded.astype(np.int32), reference_length),
            reference_length,
        )

    def __len__(self) -> int:
        return len(self.chunk_ids)

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return sum(getattr(getattr(self, one.name), "nbytes", 0) for one in fields(self))

    def ranges(self, lexemes: Sequence[int]) -> Ranges:
        """Shape (lexemes, 2): where the part of each word begins and ends in the postings."""
        return self._ranges(*self._places(lexemes))

    def query(
        self, weights: Mapping[int, float], average_length: float
    ) -> tuple[Ranges, npt.NDArray[np.float32], tuple[float, float]]:
        """A query's words as `kernels.best_by_words` takes them: ranges, weights and saturation.

        Args:
            weights: By lexeme.
            average_length: Today's.
        """
        places, known = self._places(list(weights))
        own = np.array(list(weights.values()), dtype=np.float64) * MAX_WEIGHT
        # Where chunks have grown by a factor, a word may have a share that much greater.
        slack = max(1.0, average_length / self.reference_length) * (1 + 1e-5)
        shares = np.minimum(self.shares[places] * slack, 1.0) if len(self.shares) else np.ones(len(own))
        most = own * shares * known
        order = np.argsort(-most, kind="stable")
        behind = most[order][::-1].cumsum()[::-1]
        numbers = np.empty((2, len(own)), dtype=np.float32)
        numbers[0], numbers[1] = own[order], behind
        return self._ranges(places[order], known[order]), numbers, saturation_line(average_length)

    def _places(self, lexemes: Sequence[int]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        """Where words stand among the segment's, and whether they do."""
        asked = np.array(lexemes, dtype=np.int32)
        if not len(self.lexemes):
            return np.zeros(len(asked), dtype=np.intp), np.zeros(len(asked), dtype=np.bool_)
        places = np.minimum(self.lexemes.searchsorted(asked), len(self.lexemes) - 1)
        return places, self.lexemes[places] == asked

    def _ranges(self, places: npt.NDArray[np.intp], known: npt.NDArray[np.bool_]) -> Ranges:
        if not len(self.lexemes):
            return np.zeros((len(places), 2), dtype=np.int64)
        return between(self.starts, places) * known[:, None]

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
    moved: list[Rows] = []
    start = 0
    for one, kept in parts:
        # Where each of its rows has gone; the last entry is for neighbours that are not there.
        rows = np.full(len(one) + 1, _NONE, dtype=np.int32)
        count = int(kept.sum())
        rows[:-1][kept] = place[start : start + count]
        moved.append(rows)
        start += count
    beside = {
        name: np.concatenate([rows[getattr(one, name)[kept]] for (one, kept), rows in zip(parts, moved, strict=True)])[
            order
        ]
        for name in ("before", "after")
    }
    codes, lists = _in_lists(own["vectors"], own["embedded"], parts[0][0].lists)
    return Segment(
        chunk_ids[order],
        own["version_ids"],
        own["access_ids"],
        beside["before"],
        beside["after"],
        own["lengths"],
        own["embedded"],
        own["vectors"],
        codes,
        lists,
        *_merged([_moved(one, rows) for (one, _), rows in zip(parts, moved, strict=True)]),
        parts[0][0].reference_length,
    )


def _in_lists(vectors: Halfs, embedded: Mask, known: Lists | None = None) -> tuple[Codes, Lists]:
    lists = Lists.of(vectors, embedded, known)
    return codes_of(vectors, lists.rows), lists


def codes_of(vectors: npt.NDArray[Any], rows: Rows | None = None) -> Codes:
    """Shape (words, rows): a bit a dimension, padded to whole words; ``rows``: in their order."""
    width = -(-vectors.shape[1] // 64)
    codes = np.empty((width, len(vectors)), dtype=np.uint64)
    for start in range(0, len(vectors), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        own = vectors[some] if rows is None else vectors[rows[some]]
        bits = np.zeros((len(own), 64 * width), dtype=np.bool_)
        np.greater(own, 0, out=bits[:, : vectors.shape[1]])
        codes[:, some] = np.packbits(bits, axis=1).view(np.uint64).T
    return codes


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


def _moved(segment: Segment, rows: Rows) -> tuple[Rows, Longs, Rows, Counts]:
    """The postings of the rows that are kept, by their new numbers."""
    holders = rows[segment.holders]
    kept = holders != _NONE
    starts = np.append(0, kept.cumsum(dtype=np.int64))[segment.starts]
    stays = np.diff(starts) > 0
    return segment.lexemes[stays], np.append(starts[:-1][stays], starts[-1]), holders[kept], segment.counts[kept]


def _merged(postings: Sequence[tuple[Rows, Longs, Rows, Counts]]) -> tuple[Rows, Longs, Rows, Counts]:
    """The postings of several segments as one: what the others hold is put between what the first one does."""
    lexemes, starts, holders, counts = postings[0]
    for own_lexemes, own_starts, own_holders, own_counts in postings[1:]:
        distinct = np.union1d(lexemes, own_lexemes)
        sizes, own_places = np.zeros(len(distinct), dtype=np.int64), distinct.searchsorted(own_lexemes)
        sizes[distinct.searchsorted(lexemes)] = np.diff(starts)
        begins = np.append(0, sizes.cumsum())
        behind = np.empty(len(own_holders), dtype=np.int64)
        for place, at, end in zip(own_places.tolist(), own_starts[:-1].tolist(), own_starts[1:].tolist(), strict=True):
            there = holders[begins[place] : begins[place + 1]]
            behind[at:end] = begins[place] + there.searchsorted(own_holders[at:end])
        holders, counts = np.insert(holders, behind, own_holders), np.insert(counts, behind, own_counts)
        sizes[own_places] += np.diff(own_starts)
        lexemes, starts = distinct, np.append(0, sizes.cumsum())
    return lexemes, starts, holders, counts


def _laid_out(words: WordRows, rows: Rows, reference_length: float) -> tuple[Rows, Longs, Rows, Counts]:
    """Distinct words, where the part of each begins, the rows that hold it and how often; ``rows``: of the chunks."""
    begins = np.append(0, words.counts.cumsum(dtype=np.int64))
    order = np.argsort(rows)
    pieces = [order[start : start + _AT_ONCE] for start in range(0, len(order), _AT_ONCE)]
    seen = [np.unique(words.lexemes[_within(begins, piece)], return_counts=True) for piece in pieces]
    lexemes, place = np.unique(_end_to_end([one for one, _ in seen], np.int32), return_inverse=True)
    sizes = np.bincount(place, weights=_end_to_end([often for _, often in seen], np.int64), minlength=len(lexemes))
    starts = np.append(0, sizes.cumsum()).astype(np.int64)
    holders, counts = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.uint16)
    free = starts[:-1].copy()
    for piece in pieces:
        at, of_each = _within(begins, piece), words.counts[piece]
        sorted_ = np.argsort(words.lexemes[at], kind="stable")
        distinct, first, often = np.unique(words.lexemes[at][sorted_], return_index=True, return_counts=True)
        places = lexemes.searchsorted(distinct)
        to = (free[places] - first).repeat(often) + np.arange(len(at))
        free[places] += often
        holders[to] = rows[piece].repeat(of_each)[sorted_]
        lengths = words.lengths[piece].repeat(of_each)
        counts[to] = occurrences(words.weights[at], lengths, average_length=reference_length)[sorted_]
    return lexemes, starts, holders, counts


def _within(begins: Longs, chosen: npt.NDArray[np.intp]) -> Longs:
    """The places of several stretches, one behind the other; ``begins``: of every stretch, and the end."""
    sizes = begins[chosen + 1] - begins[chosen]
    ahead = sizes.cumsum() - sizes
    places: Longs = (begins[chosen] - ahead).repeat(sizes) + np.arange(sizes.sum())
    return places


def _shares(starts: Longs, holders: Rows, counts: Counts, lengths: Rows, reference_length: float) -> Floats:
    """The greatest share of its weight that each word has in a chunk, under an average length."""
    constant, slope = saturation_line(reference_length)
    found = np.empty(len(starts) - 1, dtype=np.float32)
    at = 0
    while at < len(found):
        # As many words as fit, and one at the least.
        until = max(at + 1, int(starts.searchsorted(starts[at] + _POSTINGS_AT_ONCE, side="right")) - 1)
        some = slice(starts[at], starts[until])
        often = counts[some].astype(np.float32)
        often /= often + np.float32(constant) + np.float32(slope) * lengths[holders[some]]
        found[at:until] = np.maximum.reduceat(often, starts[at:until] - starts[at])
        at = until
    return found


def _end_to_end(arrays: Sequence[npt.NDArray[Any]], kind: type[Any]) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
