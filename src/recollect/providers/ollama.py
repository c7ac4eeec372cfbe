"""Ollama: embeddings and chat by its own API, on this machine or another."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers.chat import ChatItem, StreamEnd
from recollect.providers.connection import Connection, Fault, tls_context
from recollect.providers.embedder import EmbeddingReply, Purpose
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ollama import AsyncClient, Client

    from recollect.providers.registry import ModelRequest


# What requests need of the SDK.
_SDK = ("ollama",)


def _options(connection: Connection) -> dict[str, Any]:
    return {
        # The address of its OpenAI-compatible interface is the same server.
        "host": (connection.base_url or "").rstrip("/").removesuffix("/v1"),
        "timeout": connection.timeout_seconds,
        "verify": tls_context(),
        # A key must be named, or the SDK would take one from the environment and send it to whatever server this is.
        "headers": {"authorization": f"Bearer {connection.key or 'none'}"},
    }


class Embeddings:
    """Embeddings by ``/api/embed``."""

    sdk = _SDK
    # It takes any number; a batch is computed as one, and must end before the time is up. It cuts long texts itself.
    limits = BatchLimits(texts=64)

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self.space = f"ollama/{request.model}"

    @cached_property
    def _client(self) -> Client:
        from ollama import Client

        return Client(**_options(self._request.connection))

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:  # noqa: ARG002 - one for both
        """See `EmbeddingBackend`."""
        reply = self._client.embed(model=self._request.model, input=list(texts), truncate=True)
        return EmbeddingReply(vectors=reply.embeddings, tokens=reply.prompt_eval_count)


class Chat:
    """Chat by ``/api/chat``."""

    sdk = _SDK

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    def _client(self) -> AsyncClient:
        from ollama import AsyncClient

        return AsyncClient(**_options(self._request.connection))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[ChatItem]:
        """See `ChatBackend`."""
        from ollama import ResponseError

        options: dict[str, Any] = {}
        if max_tokens is not None:
            options["num_predict"] = max_tokens
        if self._request.temperature is not None:
            options["temperature"] = self._request.temperature
        payload = [
            {"role": message.role, "content": message.content}
            | ({"images": [one.base64 for one in message.pictures]} if message.pictures else {})
            for message in messages
        ]
        client = self._client()
        try:
            async for part in await client.chat(
                model=self._request.model, messages=payload, stream=True, options=options or None
            ):
                if part.message.content:
                    yield part.message.content
                if part.done:
                    yield StreamEnd("length" if part.done_reason == "length" else "stop")
                    if part.prompt_eval_count is not None:
                        yield ChatUsage(part.prompt_eval_count, part.eval_count or 0)
        except ResponseError as exc:
            if exc.status_code >= 400:
                raise
            raise Fault("server", exc.error, retryable=True) from exc  # in place of a piece
        finally:
            await client.close()  # type: ignore[no-untyped-call]
