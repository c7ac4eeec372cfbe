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
    add_words: Any
    best: Any
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


def nearest_codes(codes: Codes, query: Codes, *, mask: Mask | None, limit: int) -> Rows:
    """The rows whose codes differ from a query's in the fewest bits, in ascending order.

    Args:
        codes: Shape (words, rows), contiguous.
        query: Shape (words,).
        mask: Shape (rows,): 0 where a row is not looked at; None: all are.
        limit: How many rows; of those as far as the last one so many more that there are ``2 * limit`` at most.
    """
    room = _ROOM * limit
    if compiled is not None:
        found = np.empty(room, dtype=np.int32)
        return found[: compiled.nearest_codes(codes, query, mask, limit, found)]
    distances = np.zeros(codes.shape[1], dtype=np.uint16)
    for own, asked in zip(codes, query, strict=True):
        distances += np.bitwise_count(own ^ asked)
    if mask is not None:
        distances[mask == 0] = np.iinfo(np.uint16).max
    counted = np.cumsum(np.bincount(distances, minlength=1)[: 64 * len(codes) + 1])
    furthest = int(np.searchsorted(counted, limit))
    nearer = np.flatnonzero(distances < furthest)
    tied = np.flatnonzero(distances == furthest)[: room - len(nearer)]
    return np.sort(np.concatenate([nearer, tied])).astype(np.int32)


def products(vectors: Halfs, query: Floats, rows: Rows) -> Floats:
    """Inner products of a query with some of the rows of ``vectors``, which is contiguous, in single precision."""
    if compiled is not None:
        found = np.empty(len(rows), dtype=np.float32)
        compiled.products(vectors, query, rows, found)
        return found
    result: Floats = vectors[rows].astype(np.float32) @ query
    return result


def add_words(
    holders: Rows, counts: Counts, ranges: Ranges, weights: Floats, saturation: Floats, scores: Floats
) -> None:
    """Score rows by the words that they hold: ``weight * count / (count + saturation)``, added up into ``scores``.

    Args:
        holders: The rows that hold words, word after word, ascending within each.
        counts: How often, parallel to ``holders``.
        ranges: Shape (words, 2): where each word's part of ``holders`` begins and ends.
        weights: Shape (words,).
        saturation: Shape (rows,).
        scores: Shape (rows,): what they held before is lost.
    """
    if compiled is not None:
        compiled.add_words(holders, counts, ranges, weights, saturation, scores)
        return
    scores.fill(0)
    for (start, end), weight in zip(ranges.tolist(), weights, strict=True):
        rows, often = holders[start:end], counts[start:end].astype(np.float32)
        scores[rows] += weight * often / (often + saturation[rows])


def best(scores: Floats, *, mask: Mask | None, limit: int) -> Rows:
    """The rows of the greatest scores above 0, in ascending order.

    Args:
        scores: Shape (rows,).
        mask: As in `nearest_codes`.
        limit: How many; with those that are less by rounding alone, ``2 * limit`` at most.
    """
    room = _ROOM * limit
    if compiled is not None:
        found = np.empty(room, dtype=np.int32)
        return found[: compiled.best(scores, mask, limit, found)]
    eligible = np.flatnonzero(scores > 0 if mask is None else (scores > 0) & (mask != 0))
    if len(eligible) > limit:
        own = scores[eligible]
        least = np.partition(own, len(own) - limit)[len(own) - limit]
        eligible = eligible[own >= least - least * np.float32(1e-5)][:room]
    return eligible.astype(np.int32)


def held(holders: Rows, counts: Counts, ranges: Ranges, rows: Rows) -> Counts:
    """How often each row holds each word, as shape (words, rows); -1 is a row that holds none.

    Args:
        holders: As in `add_words`.
        counts: As in `add_words`.
        ranges: As in `add_words`.
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
