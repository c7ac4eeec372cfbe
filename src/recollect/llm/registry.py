"""Chat models by provider name; a provider's SDK is imported only when one of its models is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from recollect.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from recollect.llm.base import ChatModel

ChatProvider = Literal["openai", "ollama"]
OLLAMA_BASE_URL = "http://localhost:11434/v1"
DEFAULT_MODELS: dict[ChatProvider, str] = {"openai": "gpt-4o-mini", "ollama": "llama3.2"}


def make_chat_model(
    provider: ChatProvider,
    *,
    model: str | None = None,
    api_key: SecretStr | str | None = None,
    base_url: str | None = None,
    timeout_seconds: float = 120.0,
    max_retries: int = 2,
    temperature: float | None = None,
) -> ChatModel:
    """A chat model of a provider.

    Args:
        provider: ``"openai"`` for OpenAI and, with ``base_url``, any server that speaks its protocol; ``"ollama"``
            for a local Ollama.
        model: As the provider names it; None: the provider's entry in ``DEFAULT_MODELS``.
        api_key: Needed for OpenAI's own endpoint only.
        base_url: Another endpoint; None: the provider's usual one.
        timeout_seconds: The longest wait for the connection and between two pieces of an answer.
        max_retries: How often a request that failed before its first piece is repeated.
        temperature: None: the server's default.

    Raises:
        ConfigurationError: An unknown provider, a missing key, a missing package, or a value out of range.

    Example:
        >>> make_chat_model("ollama", model="qwen3").model_name
        'qwen3'
    """
    if provider not in DEFAULT_MODELS:
        known = ", ".join(repr(name) for name in DEFAULT_MODELS)
        raise ConfigurationError(f"Unknown chat model provider {provider!r}; known are {known}.")
    if provider == "openai" and not api_key and base_url is None:
        raise ConfigurationError("OpenAI needs an API key: give api_key, or base_url for a server that needs none.")
    from recollect.llm.openai_compatible import OpenAICompatibleChatModel

    return OpenAICompatibleChatModel(
        model or DEFAULT_MODELS[provider],
        api_key=api_key,
        base_url=base_url or (OLLAMA_BASE_URL if provider == "ollama" else None),
        timeout_seconds=timeout_seconds,
        max_retries=max_retries,
        temperature=temperature,
        provider=provider,
    )
