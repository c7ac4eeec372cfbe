"""The protocol of a chat model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatUsage:
    """What an answer took.

    Attributes:
        input_tokens: Of the messages.
        output_tokens: Of the answer.
        estimated: Whether they are computed from the texts' lengths, because the provider does not tell.
    """

    input_tokens: int
    output_tokens: int
    estimated: bool = False


#: Near what most tokenizers count for European languages.
BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes: a quarter of its bytes in UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


class ChatModel(Protocol):
    """A language model that answers in pieces.

    Streaming is the only way in: a whole answer is the stream joined. Asynchronous, because it waits on a network.
    """

    @property
    def model_name(self) -> str:
        """As the provider names it."""
        ...

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncIterator[str | ChatUsage]:
        """The answer's pieces, in order, as they arrive; as the last item what it took, where that is known.

        Raises:
            ProviderError: The model refused, failed or could not be reached.
        """
        ...
