"""A deterministic embedder without a model: for tests, and for trying things without a download."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from recollect.embedding.base import Vectors
from recollect.errors import UsageError

_WORD = re.compile(r"\w+")
_CHARACTERS_PER_GRAM = 3
_WORD_WEIGHT = 1.0
_GRAM_WEIGHT = 0.3


class HashingEmbedder:
    """Words and the three-character pieces of words, hashed into a vector of unit length.

    Texts that share words, or words of one stem, are similar; nothing else is. The method is feature hashing with
    signed features (Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning"). Equal on every
    machine and in every process.

    Args:
        dimension: The length of a vector, at least 2. More means fewer accidental collisions.

    Raises:
        UsageError: ``dimension`` is too small.

    Example:
        >>> embedder = HashingEmbedder(dimension=64)
        >>> embedder.embed_query("annual leave").shape
        (64,)
    """

    def __init__(self, dimension: int = 64) -> None:
        if dimension < 2:
            raise UsageError(f"dimension must be at least 2, not {dimension!r}")
        self._dimension = dimension

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._dimension

    @property
    def model_name(self) -> str:
        """``"hashing:<dimension>"``."""
        return f"hashing:{self._dimension}"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; see `EmbeddingProvider`. Never fails."""
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            self._fill(vectors[row], text)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Embed a question, as a document of the same text; see `EmbeddingProvider`. Never fails."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector

    def _fill(self, row: Vectors, text: str) -> None:
        for feature, weight in _features(text):
            code = crc32(feature.encode("utf-8", "surrogatepass"))
            # The lowest bit is the sign, the rest the place, so that the two are independent.
            row[(code >> 1) % self._dimension] += weight if code & 1 else -weight
        length = np.linalg.norm(row)
        if length > 0:
            row /= length
        else:
            row[0] = 1.0


def _features(text: str) -> Iterator[tuple[str, float]]:
    for match in _WORD.finditer(text.casefold()):
        word = match.group()
        yield word, _WORD_WEIGHT
        padded = f"<{word}>"
        for start in range(len(padded) - _CHARACTERS_PER_GRAM + 1):
            yield f"#{padded[start : start + _CHARACTERS_PER_GRAM]}", _GRAM_WEIGHT
