"""Arrays kept in this process by what they were computed from, the least recently used dropped first."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

Array = npt.NDArray[Any]


class BoundedMemory:
    """A cache of arrays with a bound on their bytes. Safe to share between threads.

    Args:
        max_bytes: What the arrays may take together; one that is larger alone is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._arrays: LRUCache[bytes, Array] = LRUCache(max_bytes, getsizeof=lambda array: array.nbytes)
        self._lock = threading.Lock()

    @property
    def size_bytes(self) -> int:
        """What the arrays take now."""
        return int(self._arrays.currsize)

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, Array]:
        """The arrays that are kept; they must not be written to."""
        with self._lock:
            return {key: self._arrays[key] for key in keys if key in self._arrays}

    def put_many(self, arrays: Mapping[bytes, Array]) -> None:
        """Keep arrays, dropping what was used least recently."""
        with self._lock:
            for key, array in arrays.items():
                if array.nbytes <= self._arrays.maxsize and key not in self._arrays:
                    # A copy: a view would hold the whole array that it was cut from.
                    self._arrays[key] = np.array(array)


def text_key(text: str) -> bytes:
    """The key of what was computed from a text: the SHA-256 of its UTF-8, lone surrogates allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
