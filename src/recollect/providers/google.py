"""Google: Gemini's embeddings and chat by the Gemini API."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers.chat import ChatItem, StreamEnd, stream_end, turns_of
from recollect.providers.connection import Connection, Fault, status_fault, tls_context
from recollect.providers.embedder import EmbeddingReply, Purpose
from recollect.providers.requesting import BatchLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from google.genai import Client
    from google.genai.errors import APIError
    from google.genai.types import GenerateContentResponse, GenerateContentResponseUsageMetadata

    from recollect.providers.registry import ModelRequest

# What requests need of the SDK.
_SDK = ("google.auth.aio.credentials", "google.genai.errors", "google.genai.types")

GOOGLE_BASE_URL = "https://generativelanguage.googleapis.com"

# The first generation is told what a text is for; later ones read it in the text itself.
_TOLD = ("gemini-embedding-001", "text-embedding-", "embedding-001")
_TASKS: Mapping[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}
_PREFIXES: Mapping[Purpose, str] = {"document": "title: none | text: ", "query": "task: search result | query: "}
_PREFIX_TOKENS = 16

_FILTERED = frozenset(
    {
        *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    }
)


def _client(connection: Connection, *, timeout_seconds: float | None) -> Client:
    from google.genai import Client
    from google.genai.types import HttpOptions, HttpRetryOptions
    from httpx2 import AsyncHTTPTransport

    trusted = tls_context()
    # The key stands in a header of its own, which would go along to wherever a server redirects.
    trust = {"verify": trusted, "follow_redirects": False}
    return Client(
        # Key, address and service must be named, or the SDK takes them from the environment, and sends one's key to
        # another's.
        enterprise=False,
        api_key=connection.key or "none",
        http_options=HttpOptions(
            base_url=connection.base_url or GOOGLE_BASE_URL,
            timeout=None if timeout_seconds is None else max(1, round(timeout_seconds * 1000)),
            retry_options=HttpRetryOptions(attempts=1),
            client_args=trust,
            # A transport is named, or the SDK takes aiohttp wherever that happens to be installed.
            # For its WebSockets, which nobody opens, the SDK reads all certificates unless it is given a context.
            async_client_args={**trust, "ssl": trusted, "transport": AsyncHTTPTransport(verify=trusted)},
        ),
    )


class Embeddings:
    """Embeddings by ``batchEmbedContents``."""

    sdk = _SDK

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        model = request.model.removeprefix("models/")
        self._is_told = model.startswith(_TOLD)
        self.space = f"google/{model}"
        # Of one request and of one text, by the API's reference.
        self.limits = BatchLimits(texts=100, text_tokens=2048 if self._is_told else 8192 - _PREFIX_TOKENS)

    @cached_property
    def _client(self) -> Client:
        connection = self._request.connection
        return _client(connection, timeout_seconds=connection.timeout_seconds)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        """See `EmbeddingBackend`."""
        from google.genai.types import Content, EmbedContentConfig, Part

        prefix = "" if self._is_told else _PREFIXES[purpose]
        # Each text is a content of its own: a list of plain texts is one content in parts, and has one vector.
        contents: list[Any] = [Content(parts=[Part(text=prefix + text)]) for text in texts]
        config = EmbedContentConfig(
            output_dimensionality=self._request.dimensions, task_type=_TASKS[purpose] if self._is_told else None
        )
        with _errors_in_words():
            reply = self._client.models.embed_content(model=self._request.model, contents=contents, config=config)
        usage = reply.usage_metadata
        return EmbeddingReply(
            vectors=[one.values or [] for one in reply.embeddings or []],
            tokens=None if usage is None else usage.prompt_token_count,
        )


class Chat:
    """Chat by ``streamGenerateContent``."""

    sdk = _SDK

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[ChatItem]:
        """See `ChatBackend`."""
        from google.genai.types import Blob, Content, GenerateContentConfig, Part

        system, turns = turns_of(messages)
        config = GenerateContentConfig(
            system_instruction=system or None, max_output_tokens=max_tokens, temperature=self._request.temperature
        )
        contents: list[Any] = [
            Content(
                role="model" if turn.role == "assistant" else "user",
                parts=[
                    *(Part(inline_data=Blob(data=one.data, mime_type=one.mime_type)) for one in turn.pictures),
                    Part(text=turn.text),
                ],
            )
            for turn in turns
        ]
        # Without a time limit of its own: the server takes it for one of the whole answer.
        client = _client(self._request.connection, timeout_seconds=None)
        try:
            with _errors_in_words():
                replies = await client.aio.models.generate_content_stream(
                    model=self._request.model, contents=contents, config=config
                )
                seen = False
                async for reply in replies:
                    seen = True
                    for item in _items(reply):
                        yield item
                if not seen:
                    raise Fault("malformed", "it sent no events")
        finally:
            await client.aio.aclose()
            client.close()


def _items(reply: GenerateContentResponse) -> Iterator[ChatItem]:
    if reply.prompt_feedback is not None and reply.prompt_feedback.block_reason is not None:
        yield StreamEnd("filtered")
    for candidate in (reply.candidates or [])[:1]:
        for part in (candidate.content.parts if candidate.content is not None else None) or []:
            # What the model thinks is no part of its answer.
            if part.text and not part.thought:
                yield part.text
        if candidate.finish_reason is not None:
            yield stream_end(
                candidate.finish_reason.value,
                stop={"STOP"},
                length={"MAX_TOKENS"},
                filtered=_FILTERED,
                said=candidate.finish_message,
            )
    if reply.usage_metadata is not None:
        yield _usage(reply.usage_metadata)


def _usage(usage: GenerateContentResponseUsageMetadata) -> ChatUsage:
    """Thoughts are paid for as what is written."""
    written = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return ChatUsage(usage.prompt_token_count or 0, written)


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """What the SDK raises, with what Google says in the details of an error."""
    from google.genai.errors import APIError

    try:
        yield
    except APIError as exc:
        raise _fault(exc) from exc


def _fault(exc: APIError) -> Fault:
    error = exc.details.get("error") if isinstance(exc.details, dict) else None
    error = error if isinstance(error, dict) else {}
    details = [one for one in error.get("details") or [] if isinstance(one, dict)]
    status = exc.code if exc.code >= 400 else 500
    fault = status_fault(status, " ".join(str(exc.message or exc.status or "").split()), _headers(exc))
    if any(one.get("reason") == "API_KEY_INVALID" for one in details):
        # Google answers a wrong key with the status of a wrong request.
        return Fault("authentication", fault.detail, status=status)
    answered = getattr(exc.response, "status_code", None)
    if not isinstance(answered, int) or answered < 400:
        return fault.in_the_stream()
    if fault.retry_after_seconds is None:
        fault.retry_after_seconds = _retry_delay(details)
    return fault


def _headers(exc: APIError) -> dict[str, str]:
    headers = getattr(exc.response, "headers", None) or {}
    return {str(name): str(headers[name]) for name in headers}


def _retry_delay(details: Sequence[Mapping[str, Any]]) -> float | None:
    """Google's own way to ask for a pause: ``{"@type": "…RetryInfo", "retryDelay": "13.5s"}``."""
    for one in details:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(one.get("retryDelay") or ""))
        if found:
            return float(found[1])
    return None
