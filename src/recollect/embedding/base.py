"""The protocol of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # whoever only names the protocol needs no numbers
    import numpy as np
    import numpy.typing as npt

Vectors: TypeAlias = "npt.NDArray[np.float32]"


class EmbeddingProvider(Protocol):
    """Turns texts into vectors of unit length, so that an inner product is the cosine similarity.

    Implementations are safe to share between threads.
    """

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        ...

    @property
    def model_name(self) -> str:
        """Names the weights and the numeric format: equal names mean comparable vectors."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed texts to be found.

        Args:
            texts: Any number of texts of any length, the empty string included.

        Returns:
            float32 array of shape (len(texts), dimension), in the order of ``texts``.

        Raises:
            ProviderError: The model failed.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a question.

        Returns:
            float32 array of shape (dimension,).

        Raises:
            ProviderError: The model failed.
        """
        ...
