"""Lists of similar vectors, so that a search of many looks at those near its query only (inverted file, IVF).

The centres are found by k-means over a sample, by angles (Sivic and Zisserman 2003; Jégou, Douze and Schmid 2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.retrieval.resident import kernels
from recollect.retrieval.resident.kernels import Floats, Halfs, Mask, Ranges, Rows

#: Up to so many vectors all of their codes are compared: it takes no longer than looking for the nearest lists.
FLAT = 50_000

# Of each list so many vectors are looked at to find the centres, so often.
_SAMPLED, _ROUNDS = 50, 8

# There are so many times the square root of the number of vectors: more are smaller, and take longer to compare with.
_LISTS = 2.0

# A search looks into so many times the square root of the number of lists. Chosen on 64,000 sentences of real
# documents, of whose ten nearest to a question 98 in 100 are to be found.
_PROBED = 6.0

_AT_ONCE = 8_192


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Which rows lie together.

    Attributes:
        rows: Shape (rows,): the first list's, then the second's, …; None: there is one list, in the order of the rows.
        starts: Shape (lists + 1,): where each begins.
        centres: Shape (lists, dimension), of length 1, as far as half precision goes.
    """

    rows: Rows | None
    starts: npt.NDArray[np.int64]
    centres: Halfs

    @classmethod
    def of(cls, vectors: Halfs, embedded: Mask, known: Lists | None = None) -> Lists:
        """Vectors in lists, where there are many.

        Args:
            vectors: Shape (rows, dimension).
            embedded: Shape (rows,): 0 where there is no vector.
            known: Lists of most of them already; others go into these.
        """
        count = int(embedded.sum())
        if count <= FLAT:
            return cls(None, np.array([0, len(vectors)]), np.zeros((0, vectors.shape[1]), dtype=np.float16))
        number = round(_LISTS * count**0.5)
        # Where there are many more than there were, lists have become too long.
        keeps = known is not None and number // 2 <= len(known.centres)
        centres = known.centres if known is not None and keeps else _centres(vectors, np.flatnonzero(embedded), number)
        own = _nearest(vectors, centres)
        starts = np.append(0, np.bincount(own, minlength=len(centres)).cumsum())
        return cls(np.argsort(own, kind="stable").astype(np.int32), starts, centres)

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.starts.nbytes + self.centres.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def probed(self, query: Floats, share: float) -> Ranges:
        """Shape (n, 2): where the lists that a query looks into begin and end.

        Args:
            query: Shape (dimension,).
            share: Of all rows, those that may be found: of fewer, the nearest lie in more lists.
        """
        if self.rows is None:
            return self.starts[None]
        number = min(len(self.centres), round(_PROBED * (len(self.centres) / max(share, 1e-9)) ** 0.5))
        # Not by BLAS, whose threads wait for one another where several search.
        near = kernels.products(self.centres, query, np.arange(len(self.centres), dtype=np.int32))
        chosen = np.argpartition(near, len(near) - number)[len(near) - number :]
        return between(self.starts, chosen)

    def in_order(self, of_rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What is said of each row, in the order of the lists."""
        return of_rows if self.rows is None else of_rows[self.rows]

    def rows_at(self, places: Rows) -> Rows:
        """The rows at places, ascending."""
        return places if self.rows is None else np.sort(self.rows[places])


def between(starts: npt.NDArray[np.int64], chosen: npt.NDArray[np.intp]) -> Ranges:
    """Shape (n, 2): where some of the stretches begin and end that lie one behind the other."""
    found = np.empty((len(chosen), 2), dtype=np.int64)  # np.stack takes many times as long
    found[:, 0], found[:, 1] = starts[chosen], starts[chosen + 1]
    return found


def _centres(vectors: Halfs, embedded: npt.NDArray[np.intp], number: int) -> Halfs:
    random = np.random.default_rng(number)
    sample = vectors[np.sort(random.choice(embedded, min(len(embedded), _SAMPLED * number), replace=False))]
    centres = _of_length_1(sample[random.choice(len(sample), number, replace=False)].astype(np.float32))
    for _ in range(_ROUNDS):
        own = _nearest(sample, centres)
        order = np.argsort(own, kind="stable")
        distinct, begins = np.unique(own[order], return_index=True)
        # A list that nobody is nearest to keeps its centre.
        centres[distinct] = np.add.reduceat(_of_length_1(sample[order].astype(np.float32)), begins, axis=0)
        centres = _of_length_1(centres)
    return centres.astype(np.float16)


def _nearest(vectors: Halfs, centres: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """The centre that each vector is nearest to."""
    found, centres = np.empty(len(vectors), dtype=np.int32), centres.astype(np.float32)
    for start in range(0, len(vectors), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        found[some] = np.argmax(vectors[some].astype(np.float32) @ centres.T, axis=1)
    return found


def _of_length_1(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Floats = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return result
