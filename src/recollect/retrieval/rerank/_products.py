"""Inner products of a few hundred vectors, computed on the caller's thread alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

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
