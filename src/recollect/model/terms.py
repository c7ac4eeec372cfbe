"""The terms of a chunk, counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often each lexeme occurs in a chunk.

    Attributes:
        length: Number of terms, repetitions included.
        lexemes: int32 array, ascending.
        counts: int32 array, parallel to ``lexemes``.
    """

    length: int
    lexemes: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
