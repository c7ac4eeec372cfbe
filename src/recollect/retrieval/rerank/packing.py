"""Token vectors in at most 4 KB a chunk, and the MaxSim score computed from them.

A vector keeps the signs of its components, one bit each: 48 bytes for 384 dimensions. Where a chunk has more tokens
than fit, neighbouring ones are averaged first. Keeping every token coarsely measured better than keeping few of them
precisely, see ``docs/how-to/reranking.md``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.errors import StoreCorruptError, UsageError

# Inner products of a few hundred vectors, computed on the caller's thread alone.


# OpenBLAS starts its threads for products of more multiplications than this. On a busy machine, waiting for a thread
# that is not running was measured at 20 ms for a product that takes 0.1 ms.
_MULTIPLICATIONS = 262_144


def inner_products(rows: Floats, columns: Floats) -> Floats:
    """``rows @ columns.T``, block by block.

    Args:
        rows: Shape (n, dimension).
        columns: Shape (m, dimension).

    Returns:
        Shape (n, m).
    """
    step = max(1, _MULTIPLICATIONS // max(1, columns.size))
    products = np.empty((len(rows), len(columns)), np.float32)
    turned = columns.T
    for start in range(0, len(rows), step):
        np.matmul(rows[start : start + step], turned, out=products[start : start + step])
    return products


#: The most bytes that one chunk's vectors take.
MAX_BYTES = 4096


_VERSION = 1


_HEADER = struct.Struct("<BxHH")  # version, dimension, number of vectors


Floats = npt.NDArray[np.float32]


def pack(token_vectors: npt.NDArray[np.floating[Any]]) -> bytes:
    """Pack one text's token vectors.

    Args:
        token_vectors: Shape (tokens, dimension), any number of tokens, none included; rows of unit length.

    Returns:
        At most `MAX_BYTES`.

    Raises:
        UsageError: The array has another shape, or a dimension that does not fit.
    """
    if token_vectors.ndim != 2 or not 0 < token_vectors.shape[1] <= (MAX_BYTES - _HEADER.size) * 8:
        raise UsageError(f"token vectors have the shape (tokens, dimension), not {token_vectors.shape}")
    dimension = token_vectors.shape[1]
    pooled = _pooled(token_vectors.astype(np.float32, copy=False), (MAX_BYTES - _HEADER.size) // (-(-dimension // 8)))
    return _HEADER.pack(_VERSION, dimension, len(pooled)) + np.packbits(pooled > 0, axis=1).tobytes()


def unpack(packed: bytes) -> Floats:
    """The packed vectors, each component of the same size: float32 of shape (vectors, dimension), of unit length.

    Raises:
        StoreCorruptError: The bytes are not what `pack` gave.
    """
    bits, dimension = _bits(packed)
    return _signs(bits, dimension)


def maxsim(query_vectors: Floats, packed: Sequence[bytes]) -> list[float]:
    """How well texts answer a question: for each of its tokens the best cosine with any of a text's, averaged.

    This is the score of Khattab and Zaharia 2020, "ColBERT: Efficient and Effective Passage Search via Contextualized
    Late Interaction over BERT", divided by the number of the question's tokens.

    Args:
        query_vectors: Shape (tokens, dimension), rows of unit length.
        packed: From `pack`, one per text.

    Returns:
        One score per text; 0 for a text without tokens, and for every one where the question has none.

    Raises:
        StoreCorruptError: Bytes are not what `pack` gave, or are of another model's dimension.
    """
    taken = [_bits(one) for one in packed]
    counts = [len(bits) for bits, _ in taken]
    if not sum(counts) or not len(query_vectors):
        return [0.0] * len(packed)
    dimension = query_vectors.shape[1]
    if any(own != dimension for _, own in taken):
        raise StoreCorruptError("Stored token vectors are of another model than the query's: ingest the chunks again.")
    signs = _signs(np.concatenate([bits for bits, _ in taken]), dimension)
    similarities = inner_products(signs, query_vectors)
    return _best_mean(similarities, counts)


def _best_mean(similarities: Floats, counts: Sequence[int]) -> list[float]:
    """The mean over columns of the greatest value in each text's rows; 0 for a text without rows."""
    starts = np.cumsum([0, *counts[:-1]])
    present = [index for index, count in enumerate(counts) if count]
    scores = np.zeros(len(counts))
    if present:
        scores[present] = np.maximum.reduceat(similarities, starts[present], axis=0).mean(axis=1)
    return [float(score) for score in scores]


def _pooled(vectors: Floats, limit: int) -> Floats:
    if len(vectors) <= limit:
        return vectors
    starts = np.linspace(0, len(vectors), limit, endpoint=False).astype(np.int64)
    pooled: Floats = np.add.reduceat(vectors, starts, axis=0)
    return pooled


def _bits(packed: bytes) -> tuple[npt.NDArray[np.uint8], int]:
    if len(packed) >= _HEADER.size:
        version, dimension, count = _HEADER.unpack_from(packed)
        width = -(-dimension // 8)
        if version == _VERSION and dimension and len(packed) == _HEADER.size + count * width:
            bits = np.frombuffer(packed, np.uint8, offset=_HEADER.size).reshape(count, width)
            return bits, dimension
    raise StoreCorruptError(f"{len(packed)} bytes that should be token vectors are not: ingest the chunks again.")


def _signs(bits: npt.NDArray[np.uint8], dimension: int) -> Floats:
    ones = np.unpackbits(bits, axis=1, count=dimension).astype(np.float32)
    size = np.float32(dimension**-0.5)
    ones *= 2 * size
    ones -= size
    return ones
