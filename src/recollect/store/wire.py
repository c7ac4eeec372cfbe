"""pgvector's binary form, many rows at a time: decoding them one by one would cost more than searching them.

The layouts are those of pgvector's ``halfvec_send`` and ``sparsevec_send``, big-endian as everything PostgreSQL sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

# halfvec: dimension, unused (int16 each), then float16 values.
_HALFVEC_HEADER = 4
# sparsevec: dimension, elements, unused (int32 each), then int32 indices from 0, then float32 values.
_SPARSEVEC_HEADER = 12


def halfvecs(sent: Sequence[bytes]) -> Floats:
    """Vectors of one dimension as a float32 array of shape (vectors, dimension)."""
    if not sent:
        return np.zeros((0, 0), dtype=np.float32)
    joined = b"".join([vector[_HALFVEC_HEADER:] for vector in sent])
    return np.frombuffer(joined, dtype=">f2").reshape(len(sent), -1).astype(np.float32)


def sparsevec_batch(sent: Sequence[bytes]) -> tuple[Ints, Ints, Floats]:
    """How many elements each sparse vector has, then the indices (from 0) and the values of all of them in turn."""
    counts = [(len(vector) - _SPARSEVEC_HEADER) // 8 for vector in sent]
    middles = [_SPARSEVEC_HEADER + 4 * count for count in counts]
    indices = b"".join([vector[_SPARSEVEC_HEADER:middle] for vector, middle in zip(sent, middles, strict=True)])
    values = b"".join([vector[middle:] for vector, middle in zip(sent, middles, strict=True)])
    return (
        np.array(counts, dtype=np.int32),
        np.frombuffer(indices, dtype=">i4").astype(np.int32),
        np.frombuffer(values, dtype=">f4").astype(np.float32),
    )


def sparsevecs(sent: Sequence[bytes]) -> list[tuple[Ints, Floats]]:
    """For each sparse vector its indices (int32, from 0) and its values (float32), in parallel."""
    counts, indices, values = sparsevec_batch(sent)
    borders = pairwise(accumulate(counts.tolist(), initial=0))
    return [(indices[start:end], values[start:end]) for start, end in borders]
