"""Anthropic: Claude by the Messages API."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from recollect.llm.base import ChatMessage, ChatUsage
from recollect.providers.chat import ChatItem, Turn, stream_end, turns_of
from recollect.providers.connection import Fault, status_fault, tls_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from anthropic import APIStatusError, AsyncAnthropic

    from recollect.providers.registry import ModelRequest

# What requests need of the SDK.
_SDK = ("anthropic.resources.messages",)

ANTHROPIC_BASE_URL = "https://api.anthropic.com"

# The API asks for a limit. What a model thinks before it answers counts too, so it leaves room for both.
_MAX_TOKENS = 16_384
# What an error in the middle of a stream would have had as a status at its beginning.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class Chat:
    """Chat by ``/v1/messages``."""

    sdk = _SDK

    def __init__(self, request: ModelRequest) -> None:
        self._request = request

    def _client(self) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        connection = self._request.connection
        return AsyncAnthropic(
            # Key and address must be named, or the SDK takes them from the environment: one's key, another's address.
            api_key=connection.key or "none",
            base_url=connection.base_url or ANTHROPIC_BASE_URL,
            timeout=connection.timeout_seconds,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(verify=tls_context()),
        )

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[ChatItem]:
        """See `ChatBackend`."""
        system, turns = turns_of(messages)
        options: dict[str, Any] = {}
        if system:
            options["system"] = system
        if self._request.temperature is not None:
            # Newer models refuse it, and the SDK has no argument for it any more.
            options["extra_body"] = {"temperature": self._request.temperature}
        asked: list[Any] = [{"role": turn.role, "content": _content(turn)} for turn in turns]
        with _errors_in_the_stream():
            async with self._client() as client:
                events: Any = await client.messages.create(
                    model=self._request.model,
                    max_tokens=max_tokens or _MAX_TOKENS,
                    messages=asked,
                    stream=True,
                    **options,
                )
                async with events:
                    sent: int | None = None
                    async for event in events:
                        if event.type == "message_start":
                            sent = _input_tokens(event.message.usage)
                        for item in _items(event, sent=sent or 0):
                            yield item
                    if sent is None:
                        raise Fault("malformed", "it sent no events")


def _content(turn: Turn) -> str | list[dict[str, Any]]:
    """What a turn says, in parts where it shows pictures, which come first."""
    if not turn.pictures:
        return turn.text
    shown = [
        {"type": "image", "source": {"type": "base64", "media_type": one.mime_type, "data": one.base64}}
        for one in turn.pictures
    ]
    return [*shown, {"type": "text", "text": turn.text}]


def _items(event: Any, *, sent: int) -> Iterator[ChatItem]:  # noqa: ANN401 - one of the SDK's many events
    # What the model thinks comes as another kind of delta, and is no part of its answer.
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        yield event.delta.text
    elif event.type == "message_delta":
        if event.delta.stop_reason is not None:
            yield stream_end(
                event.delta.stop_reason,
                stop={"end_turn", "stop_sequence"},
                length={"max_tokens", "model_context_window_exceeded"},
                filtered={"refusal"},
            )
        yield ChatUsage(_input_tokens(event.usage) or sent, event.usage.output_tokens)


def _input_tokens(usage: Any) -> int:  # noqa: ANN401 - two classes of the SDK with the same fields
    """All that was read, what the provider had in its cache included."""
    return sum(
        count or 0 for count in (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    )


@contextmanager
def _errors_in_the_stream() -> Iterator[None]:
    """An error that the server sends in place of an event has its status in its name."""
    from anthropic import APIStatusError

    try:
        yield
    except APIStatusError as exc:
        raise _fault(exc) from exc


def _fault(exc: APIStatusError) -> Fault:
    error = exc.body.get("error") if isinstance(exc.body, dict) else None
    error = error if isinstance(error, dict) else {}
    name = str(error.get("type") or "")
    said = " ".join(str(error.get("message") or "").split())
    detail = ": ".join(part for part in (name, said) if part)
    if exc.status_code >= 400:
        return status_fault(exc.status_code, detail, exc.response.headers)
    return status_fault(_STATUSES.get(name, 500), detail).in_the_stream()
