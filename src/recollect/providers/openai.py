"""OpenAI, and every server that speaks its API: vLLM, LM Studio, llama.cpp, Ollama's ``/v1``, proxies, TEI."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigurationError
from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers.chat import ChatItem, StreamEnd
from recollect.providers.connection import Connection, Fault, status_fault, tls_context
from recollect.providers.embedder import EmbeddingReply, Purpose
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from openai import AsyncOpenAI, OpenAI
    from openai.types import CompletionUsage
    from openai.types.create_embedding_response import Usage
    from openai.types.responses import Response, ResponseUsage

    from recollect.providers.registry import ModelRequest

# What requests need of the SDK.
_EMBEDDING = ("openai", "openai.resources.embeddings")
_CHAT = (
    "openai.resources.chat.chat",
    "openai.resources.chat.completions.completions",
    "openai.resources.responses.responses",
)

OPENAI_BASE_URL = "https://api.openai.com/v1"

# The status of an error in the middle of a stream, by its code or type.
_STATUSES = {
    "authentication_error": 401,
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}

# Of one request, by the API's reference.
_LIMITS = BatchLimits(texts=2048, tokens=300_000, text_tokens=8192)


def _options(connection: Connection) -> dict[str, Any]:
    # A key must be named, or the SDK would take one from the environment and send it to whatever server this is.
    return {
        "api_key": connection.key or "none",
        "base_url": connection.base_url or OPENAI_BASE_URL,
        "timeout": connection.timeout_seconds,
        "max_retries": 0,
    }


class Embeddings:
    """Embeddings by the ``/embeddings`` endpoint."""

    sdk = _EMBEDDING
    limits = _LIMITS

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self.space = f"openai/{request.model}"

    @cached_property
    def _client(self) -> OpenAI:
        from openai import DefaultHttpxClient, OpenAI

        client = DefaultHttpxClient(verify=tls_context())
        return OpenAI(http_client=client, **_options(self._request.connection))

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:  # noqa: ARG002 - one for both
        """See `EmbeddingBackend`; OpenAI's models embed questions and documents alike."""
        options: dict[str, Any] = {}
        if self._request.default_dimensions not in {None, self._request.dimensions}:
            # Other models refuse the parameter.
            options["dimensions"] = self._request.dimensions
        if self._request.connection.base_url is not None:
            # Servers that speak the API know plain numbers only; OpenAI's own replies are shorter as base64.
            options["encoding_format"] = "float"
        reply = self._client.embeddings.create(model=self._request.model, input=list(texts), **options)
        return EmbeddingReply(
            vectors=[one.embedding for one in reply.data],
            indexes=[one.index for one in reply.data],
            tokens=_prompt_tokens(reply.usage),
        )


def _prompt_tokens(usage: Usage | None) -> int | None:
    # The SDK promises it, but not every server gives it.
    return None if usage is None else usage.prompt_tokens


class Chat:
    """Chat by the Responses API, or by chat completions, which all other servers speak."""

    sdk = _CHAT

    def __init__(self, request: ModelRequest) -> None:
        if request.api not in {None, "responses", "chat"}:
            raise ConfigurationError(f"rag.answer.api of openai is 'responses' or 'chat', not {request.api!r}.")
        self._request = request
        self._own = request.connection.base_url in {None, OPENAI_BASE_URL}
        self._api = request.api or ("responses" if self._own else "chat")

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[ChatItem]:
        """See `ChatBackend`."""
        return (self._responses if self._api == "responses" else self._completions)(messages, max_tokens)

    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        client = DefaultAsyncHttpxClient(verify=tls_context())
        return AsyncOpenAI(http_client=client, **_options(self._request.connection))

    def _common(self, messages: Sequence[ChatMessage]) -> tuple[list[Any], dict[str, Any]]:
        payload = [{"role": message.role, "content": self._content(message)} for message in messages]
        options: dict[str, Any] = {"model": self._request.model}
        if self._request.temperature is not None:
            options["temperature"] = self._request.temperature
        return payload, options

    def _content(self, message: ChatMessage) -> str | list[dict[str, Any]]:
        """What a message says, in parts where it shows pictures."""
        if not message.pictures:
            return message.content
        if self._api == "responses":
            shown = [{"type": "input_image", "image_url": one.data_url, "detail": "auto"} for one in message.pictures]
            return [{"type": "input_text", "text": message.content}, *shown]
        seen = [{"type": "image_url", "image_url": {"url": one.data_url}} for one in message.pictures]
        return [{"type": "text", "text": message.content}, *seen]

    async def _completions(self, messages: Sequence[ChatMessage], max_tokens: int | None) -> AsyncIterator[ChatItem]:
        payload, options = self._common(messages)
        if max_tokens is not None:
            # OpenAI's newer models refuse the old name; other servers often know nothing but the old name.
            options["max_completion_tokens" if self._own else "max_tokens"] = max_tokens
        with _errors_in_the_stream():
            async with self._client() as client:
                chunks = await client.chat.completions.create(
                    messages=payload, stream=True, stream_options={"include_usage": True}, **options
                )
                async with chunks:
                    seen = False
                    async for chunk in chunks:
                        seen = True
                        # Without choices a chunk carries usage figures or a filter's report.
                        for choice in chunk.choices[:1]:
                            if choice.delta is not None and choice.delta.content:
                                yield choice.delta.content
                            if choice.finish_reason:
                                yield _end(choice.finish_reason)
                        if chunk.usage is not None:
                            yield _usage(chunk.usage)
                    if not seen:
                        raise Fault("malformed", "it sent no events")

    async def _responses(self, messages: Sequence[ChatMessage], max_tokens: int | None) -> AsyncIterator[ChatItem]:
        payload, options = self._common(messages)
        if max_tokens is not None:
            options["max_output_tokens"] = max_tokens
        with _errors_in_the_stream():
            async with self._client() as client:
                # Nothing is kept at the provider: questions and passages are the caller's.
                events = await client.responses.create(input=payload, stream=True, store=False, **options)
                async with events:
                    seen = False
                    async for event in events:
                        seen = True
                        if event.type in {"response.output_text.delta", "response.refusal.delta"}:
                            yield event.delta
                        elif event.type in {"response.completed", "response.incomplete"}:
                            for item in _ending(event.response):
                                yield item
                        elif event.type == "response.failed":
                            error = event.response.error
                            raise _fault_of_a_stream(error.message if error else "", error and error.code)
                        elif event.type == "error":
                            raise _fault_of_a_stream(event.message, event.code)
                    if not seen:
                        raise Fault("malformed", "it sent no events")


@contextmanager
def _errors_in_the_stream() -> Iterator[None]:
    """Translate an error that a server sends in place of a piece: it has a code and a type, but no status."""
    from openai import APIError

    try:
        yield
    except APIError as exc:
        if type(exc) is APIError:
            raise _fault_of_a_stream(exc.message, exc.code, exc.type) from exc
        raise


def _fault_of_a_stream(message: str, *names: object) -> Fault:
    status = next((found for name in names if (found := _status_named(str(name)))), 500)
    return status_fault(status, message).in_the_stream()


def _status_named(name: str) -> int | None:
    # Proxies send the status of the provider that they ask as the code.
    return int(name) if re.fullmatch("[45][0-9]{2}", name) else _STATUSES.get(name)


def _end(reason: str) -> StreamEnd:
    if reason == "content_filter":
        return StreamEnd("filtered")
    return StreamEnd("length" if reason in {"length", "max_output_tokens"} else "stop")


def _usage(usage: CompletionUsage) -> ChatUsage:
    return ChatUsage(usage.prompt_tokens, usage.completion_tokens)


def _ending(response: Response) -> Iterator[ChatItem]:
    details = response.incomplete_details
    yield _end((details.reason if details is not None else None) or "stop")
    usage: ResponseUsage | None = response.usage
    if usage is not None:
        yield ChatUsage(usage.input_tokens, usage.output_tokens)
