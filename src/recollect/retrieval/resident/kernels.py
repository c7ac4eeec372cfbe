"""The loops of searches in memory: in C where the extension was built, otherwise in numpy, with the same results.

The C code (``_kernels.c``) is optional: an installation without a compiler works, several times slower. It gives the
interpreter's lock free, so that searches of several threads use several processors.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int32]
Counts = npt.NDArray[np.uint16]
Ranges = npt.NDArray[np.int64]
Halfs = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]


class _Compiled(Protocol):
    nearest_codes: Any
    products: Any
    best_by_words: Any
    held: Any


def _compiled() -> _Compiled | None:
    try:
        from recollect.retrieval.resident import _kernels  # type: ignore[attr-defined]
    except ImportError:
        return None
    made: _Compiled = _kernels
    return made


compiled = _compiled()

# So many rows more are taken where several are equally good.
_ROOM = 2


def nearest_codes(codes: Codes, query: Codes, ranges: Ranges, *, mask: Mask | None, limit: int) -> Rows:
    """The places whose codes differ from a query's in the fewest bits, in the order of the ranges.

    Args:
        codes: Shape (words, places), contiguous.
        query: Shape (words,).
        ranges: Shape (n, 2): which places are looked at, from and up to; none twice.
        mask: Shape (places,): 0 where a place is not looked at; None: all are.
        limit: How many places; of those as far as the last one so many more that there are ``2 * limit`` at most.
    """
    room = _ROOM * limit
    if compiled is not None:
        found = np.empty(room, dtype=np.int32)
        return found[: compiled.nearest_codes(codes, query, ranges, mask, limit, found)]
    places = np.concatenate([np.arange(*one, dtype=np.int32) for one in ranges.tolist()])
    distances = np.zeros(len(places), dtype=np.uint16)
    for own, asked in zip(codes, query, strict=True):
        distances += np.bitwise_count(own[places] ^ asked)
    if mask is not None:
        distances[mask[places] == 0] = np.iinfo(np.uint16).max
    counted = np.cumsum(np.bincount(distances, minlength=1)[: 64 * len(codes) + 1])
    furthest = int(np.searchsorted(counted, limit))
    nearer = np.flatnonzero(distances < furthest)
    tied = np.flatnonzero(distances == furthest)[: room - len(nearer)]
    nearest: Rows = places[np.sort(np.concatenate([nearer, tied]))]
    return nearest


def products(vectors: Halfs, query: Floats, rows: Rows) -> Floats:
    """Inner products of a query with some of the rows of ``vectors``, which is contiguous, in single precision."""
    if compiled is not None:
        found = np.empty(len(rows), dtype=np.float32)
        compiled.products(vectors, query, rows, found)
        return found
    result: Floats = vectors[rows].astype(np.float32) @ query
    return result


def best_by_words(
    holders: Rows,
    counts: Counts,
    ranges: Ranges,
    weights: Floats,
    lengths: Rows,
    saturation: tuple[float, float],
    *,
    scores: Floats,
    mask: Mask | None,
    limit: int,
) -> Rows:
    """The rows that score most by the words that they hold, in ascending order.

    A word adds ``weight * count / (count + constant + slope * length)``. None that adds nothing is found.

    Args:
        holders: The rows that hold words, word after word, ascending within each.
        counts: How often, parallel to ``holders``.
        ranges: Shape (words, 2): where each word's part of ``holders`` begins and ends.
        weights: Shape (2, words): of each word, and what it and those behind it add at most.
        lengths: Shape (rows,).
        saturation: The constant and the slope.
        scores: Shape (rows,): zeros, and zeros again afterwards.
        mask: Shape (rows,): 0 where a row is not looked at; None: all are.
        limit: How many; with those that are less by rounding alone, ``2 * limit`` at most.
    """
    room = _ROOM * limit
    if compiled is not None:
        found = np.empty(room, dtype=np.int32)
        given = holders, counts, ranges, weights, lengths, *saturation
        return found[: compiled.best_by_words(*given, mask, scores, limit, found)]
    constant, slope = np.float32(saturation[0]), np.float32(saturation[1])
    own = np.zeros_like(scores)
    for (start, end), weight in zip(ranges.tolist(), weights[0], strict=True):
        rows, often = holders[start:end], counts[start:end].astype(np.float32)
        own[rows] += weight * often / (often + constant + slope * lengths[rows])
    eligible = np.flatnonzero(own > 0 if mask is None else (own > 0) & (mask != 0))
    if len(eligible) > limit:
        found_scores = own[eligible]
        worst = np.partition(found_scores, len(eligible) - limit)[len(eligible) - limit]
        rounding = worst * np.float32(1e-5)
        better = eligible[found_scores > worst + rounding]
        tied = eligible[np.abs(found_scores - worst) <= rounding]
        eligible = np.sort(np.concatenate([better, tied[: room - len(better)]]))
    return eligible.astype(np.int32)


def held(holders: Rows, counts: Counts, ranges: Ranges, rows: Rows) -> Counts:
    """How often each row holds each word, as shape (words, rows); -1 is a row that holds none.

    Args:
        holders: As in `best_by_words`.
        counts: As in `best_by_words`.
        ranges: As in `best_by_words`.
        rows: In any order.
    """
    found = np.zeros((len(ranges), len(rows)), dtype=np.uint16)
    if compiled is not None:
        compiled.held(holders, counts, ranges, rows, found)
        return found
    for word, (start, end) in enumerate(ranges.tolist()):
        if start < end:
            places = np.minimum(holders[start:end].searchsorted(rows), end - start - 1) + start
            found[word] = np.where(holders[places] == rows, counts[places], 0)
    return found
