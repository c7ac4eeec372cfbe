"""Voyage AI: embeddings and reranking. Its fourth family shares one space: a large model indexes, a small one asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.providers.connection import Connection, mask_in_logs
from recollect.providers.embedder import EmbeddingReply, Purpose, RerankReply
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.providers.registry import ModelRequest

# What requests need of the SDK.
_SDK = ("voyageai",)

# Of one request, by the API's reference: 1,000 texts, and fewer tokens the larger the model.
_TOKENS = {"voyage-4-lite": 1_000_000, "voyage-3.5-lite": 1_000_000, "voyage-4": 320_000, "voyage-3.5": 320_000}
_LEAST_TOKENS = 120_000


def _options(connection: Connection) -> dict[str, Any]:
    return {
        # A key must be named, or the SDK would take one from the environment and send it to whatever server this is.
        "api_key": connection.key or "none",
        "base_url": connection.base_url,
        "request_timeout": connection.timeout_seconds,
    }


class Embeddings:
    """Embeddings of documents by one model, and of questions by it or another of its family."""

    sdk = _SDK

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self.limits = BatchLimits(texts=1000, tokens=_TOKENS.get(request.model, _LEAST_TOKENS))
        shared = request.model.startswith("voyage-4")
        self.space = "voyage/voyage-4" if shared else f"voyage/{request.model}"
        mask_in_logs("voyage", request.connection)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        """See `EmbeddingBackend`."""
        import voyageai

        # Not the SDK's client: that drops the indexes, by which vectors find their texts.
        reply: Any = voyageai.Embedding.create(
            input=list(texts),
            model=self._request.model if purpose == "document" else self._request.query_model or self._request.model,
            input_type=purpose,
            truncation=True,
            output_dimension=None
            if self._request.dimensions == self._request.default_dimensions
            else self._request.dimensions,
            **_options(self._request.connection),
        )
        return EmbeddingReply(
            vectors=[one.embedding for one in reply.data],
            indexes=[one.index for one in reply.data],
            tokens=reply.usage.total_tokens,
        )


class Reranking:
    """Reranking by a cross-encoder."""

    sdk = _SDK
    # Of one request, by the API's reference.
    limits = BatchLimits(texts=1000, tokens=600_000)

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        mask_in_logs("voyage", request.connection)

    def rerank(self, query: str, passages: Sequence[str]) -> RerankReply:
        """See `RerankBackend`."""
        import voyageai

        reply: Any = voyageai.Reranking.create(
            query=query,
            documents=list(passages),
            model=self._request.model,
            truncation=True,
            **_options(self._request.connection),
        )
        return RerankReply(
            scores=[(one.index, one.relevance_score) for one in reply.data], tokens=reply.usage.total_tokens
        )
