"""Chat models behind an OpenAI-compatible ``/chat/completions`` endpoint, through the official ``openai`` SDK."""

from __future__ import annotations

import logging
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigurationError, ProviderError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionChunk
    from pydantic import SecretStr

    from recollect.llm.base import ChatMessage

_log = logging.getLogger(__name__)

OPENAI_BASE_URL = "https://api.openai.com/v1"
DEFAULT_TIMEOUT_SECONDS = 120.0
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})


class OpenAICompatibleChatModel:
    """A chat model of OpenAI, or of any server that speaks its protocol (Ollama, vLLM, llama.cpp, …).

    Every call opens its own client and closes it, so one object serves any number of threads and event loops.

    Args:
        model: As the provider names it, for instance ``"gpt-4o-mini"``.
        api_key: The key; None for a server that asks for none.
        base_url: The endpoint, up to and including ``/v1``; None: OpenAI's own.
        timeout_seconds: The longest wait for the connection, for the first piece, and between two pieces.
        max_retries: How often the SDK repeats a request that failed before its first piece, with growing pauses.
        temperature: 0 for the most repeatable answers; None: the server's default (some models accept no other).
        provider: The name that errors carry.

    Raises:
        ConfigurationError: The ``openai`` package is missing, or an argument is out of range.

    Example:
        >>> model = OpenAICompatibleChatModel("llama3.2", base_url="http://localhost:11434/v1", provider="ollama")
        >>> model.model_name
        'llama3.2'
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: SecretStr | str | None = None,
        base_url: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = 2,
        temperature: float | None = None,
        provider: str = "openai",
    ) -> None:
        if find_spec("openai") is None:
            raise ConfigurationError(
                "The package 'openai' is needed for this chat model. Install recollect[openai]: "
                "pip install 'recollect[openai]'"
            )
        if not model.strip():
            raise ConfigurationError("A chat model needs a name, for instance 'gpt-4o-mini' or 'llama3.2'.")
        if timeout_seconds <= 0:
            raise ConfigurationError(f"timeout_seconds must be above 0, not {timeout_seconds!r}.")
        if max_retries < 0:
            raise ConfigurationError(f"max_retries must be 0 or more, not {max_retries!r}.")
        self._model = model
        self._key = api_key if api_key is None or isinstance(api_key, str) else api_key.get_secret_value()
        self._base_url = base_url or OPENAI_BASE_URL
        self._timeout_seconds = timeout_seconds
        self._max_retries = max_retries
        self._temperature = temperature
        self._provider = provider

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r}, base_url={self._base_url!r})"

    @property
    def model_name(self) -> str:
        """As the provider names it."""
        return self._model

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None) -> AsyncIterator[str]:
        """The answer's pieces, in order, as they arrive.

        Args:
            messages: The conversation so far; at least one message.
            max_tokens: Ends the answer after so many tokens; None: the server's own limit.

        Raises:
            ProviderError: The server refused or could not be reached, the stream broke off, its content filter
                stepped in, or the answer was empty.
        """
        chunk_count = 0
        received = False
        finish: str | None = None
        with self._translated_errors():
            async with self._client() as client:
                chunks = await client.chat.completions.create(**self._request(messages, max_tokens), stream=True)
                async with chunks:
                    async for chunk in chunks:
                        chunk_count += 1
                        text, reason = _piece(chunk)
                        finish = reason or finish
                        if text:
                            received = True
                            yield text
        if not chunk_count:
            raise self._error(f"{self._base_url} did not answer as a chat completion endpoint does; check the base URL")
        self._check_end(finish, received=received)

    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI  # the SDK takes half a second to import

        # A key must be named, or the SDK would take one from the environment and send it to whatever server this is.
        return AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._base_url,
            timeout=self._timeout_seconds,
            max_retries=self._max_retries,
        )

    def _request(self, messages: Sequence[ChatMessage], max_tokens: int | None) -> dict[str, Any]:
        payload = [{"role": message.role, "content": message.content} for message in messages]
        request: dict[str, Any] = {"model": self._model, "messages": payload}
        if max_tokens is not None:
            # OpenAI's newer models refuse the old name; other servers often know nothing but the old name.
            request["max_completion_tokens" if self._base_url == OPENAI_BASE_URL else "max_tokens"] = max_tokens
        if self._temperature is not None:
            request["temperature"] = self._temperature
        return request

    def _check_end(self, finish: str | None, *, received: bool) -> None:
        if finish == "content_filter":
            raise self._error("the provider's content filter stopped the answer; rephrase the question")
        if finish is None:
            raise self._error("the stream ended before the answer was complete; ask again", retryable=True)
        if not received:
            if finish == "length":
                raise self._error("the token limit was reached before any text came; raise max_tokens")
            raise self._error("the model returned an empty answer; ask again", retryable=True)
        if finish == "length":
            _log.warning("%s: the answer of %r was cut off at its token limit", self._provider, self._model)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        import openai

        try:
            yield
        except openai.APITimeoutError as exc:
            raise self._error(
                f"no answer from {self._base_url} within {self._timeout_seconds:g} s; "
                "raise the timeout or try a smaller model",
                retryable=True,
            ) from exc
        except openai.APIStatusError as exc:
            raise self._status_error(exc.status_code, exc.message) from exc
        except openai.APIConnectionError as exc:
            raise self._error(
                f"cannot reach {self._base_url}, or the connection broke ({exc.__cause__ or exc}); "
                "check the address and that the server runs",
                retryable=True,
            ) from exc
        except openai.APIError as exc:
            raise self._error(f"the server reported an error: {exc.message}", retryable=True) from exc
        except openai.OpenAIError as exc:
            raise self._error(str(exc)) from exc
        except _transport_errors() as exc:
            raise self._error(f"the connection to {self._base_url} broke: {exc}", retryable=True) from exc
        except ValueError as exc:
            # The SDK passes on what json and its URL parser raise.
            raise self._error(f"{self._base_url} did not answer as a chat completion endpoint does: {exc}") from exc

    def _status_error(self, status: int, message: str) -> ProviderError:
        if status in {401, 403}:
            advice = "check the API key and what it may use"
        elif status == 404:
            advice = f"check the model name {self._model!r} and the base URL {self._base_url!r}"
        elif status == 429:
            advice = "the rate limit or quota is used up; wait, or check the plan"
        elif status >= 500:
            advice = "the server failed; try again later"
        else:
            advice = "the server refused the request"
        retryable = status in _RETRYABLE_STATUSES or status >= 500
        return self._error(f"HTTP {status}: {advice}. {message}", status=status, retryable=retryable)

    def _error(self, message: str, *, status: int | None = None, retryable: bool = False) -> ProviderError:
        if self._key:
            message = message.replace(self._key, "***")
        return ProviderError(
            f"{self._provider} ({self._model}): {message}",
            provider=self._provider,
            model=self._model,
            status=status,
            retryable=retryable,
        )


def _piece(chunk: ChatCompletionChunk) -> tuple[str, str | None]:
    """A chunk's text and finish reason; chunks without choices carry usage figures or filter reports only."""
    if not chunk.choices:
        return "", None
    choice = chunk.choices[0]
    return getattr(choice.delta, "content", None) or "", choice.finish_reason


def _transport_errors() -> tuple[type[Exception], ...]:
    """What the SDK's HTTP library raises in mid-stream: not every SDK version translates it."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return tuple(module.HTTPError for module in loaded if module is not None)
