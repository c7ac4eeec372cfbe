"""The embedding models of conversations: each session keeps the one that it began with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from recollect.embedding.base import EmbeddingProvider
    from recollect.retrieval.relevance import RelevanceMeters


class SessionEmbedders(Protocol):
    """Gives embedding models. Safe to share between threads."""

    @property
    def configured(self) -> EmbeddingProvider:
        """The model of new sessions."""
        ...

    @property
    def meters(self) -> RelevanceMeters:
        """Their scales of similarities."""
        ...

    def of_session(self, model: str) -> EmbeddingProvider:
        """The model of sessions that there are, by its name.

        Raises:
            UsageError: It cannot be made here.
        """
        ...
