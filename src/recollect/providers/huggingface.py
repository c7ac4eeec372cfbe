"""Hugging Face: embeddings of its Inference API, embeddings and reranking of Text Embeddings Inference (TEI)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from recollect.errors import ConfigurationError
from recollect.providers.embedder import EmbeddingReply, Purpose, RerankReply
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from huggingface_hub import InferenceClient

    from recollect.providers.connection import Connection
    from recollect.providers.registry import ModelRequest

# What requests need of the SDK.
_SDK = ("huggingface_hub.inference._client", "huggingface_hub.utils")

# As many as TEI takes unless it is started with another --max-client-batch-size.
_LIMITS = BatchLimits(texts=32)


def _token(connection: Connection) -> str:
    # One must be named, or the SDK would take that of `hf auth login` and send it to whatever server this is.
    return connection.key or "none"


class Embeddings:
    """Embeddings by the feature-extraction task: of a model on the hub, or of the server at ``base_url``."""

    sdk = _SDK
    limits = _LIMITS

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self.space = f"huggingface/{request.model}"

    @cached_property
    def _client(self) -> InferenceClient:
        from huggingface_hub import InferenceClient

        connection = self._request.connection
        return InferenceClient(
            model=connection.base_url or self._request.model,
            provider="hf-inference",
            token=_token(connection),
            timeout=connection.timeout_seconds,
        )

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:  # noqa: ARG002 - one for both
        """See `EmbeddingBackend`."""
        return EmbeddingReply(vectors=self._client.feature_extraction(list(texts), truncate=True))


class Reranking:
    """Reranking by TEI's ``/rerank``, which the SDK has no method for: its session sends the request."""

    sdk = _SDK
    limits = _LIMITS

    def __init__(self, request: ModelRequest) -> None:
        if request.connection.base_url is None:
            raise ConfigurationError(
                "Reranking by huggingface needs the address of a Text Embeddings Inference server: set "
                "rag.reranking.base_url."
            )
        self._connection = request.connection
        self._url = request.connection.base_url.rstrip("/").removesuffix("/rerank") + "/rerank"

    def rerank(self, query: str, passages: Sequence[str]) -> RerankReply:
        """See `RerankBackend`."""
        from huggingface_hub import get_session
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

        reply = get_session().post(
            self._url,
            json={"query": query, "texts": list(passages), "truncate": True, "raw_scores": True},
            headers=build_hf_headers(token=_token(self._connection)),
            timeout=self._connection.timeout_seconds,
        )
        hf_raise_for_status(reply)
        return RerankReply(scores=[(one["index"], one["score"]) for one in reply.json()])
