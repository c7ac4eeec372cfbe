"""The protocol of a chat model."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class ChatPicture:
    """A picture that is shown to a model.

    Attributes:
        data: The file.
        mime_type: ``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``.
    """

    data: bytes = field(repr=False)
    mime_type: str

    @property
    def base64(self) -> str:
        """The file as text."""
        return b64encode(self.data).decode("ascii")

    @property
    def data_url(self) -> str:
        """The file as a URL."""
        return f"data:{self.mime_type};base64,{self.base64}"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation.

    Attributes:
        role: Who says it.
        content: The text.
        pictures: Shown with the text, of a user's message, to a model that sees.
    """

    role: Literal["system", "user", "assistant"]
    content: str
    pictures: tuple[ChatPicture, ...] = ()


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
#: What providers count for a picture of a thousand pixels a side, about.
TOKENS_PER_PICTURE = 1_200


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes: a quarter of its bytes in UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def estimate_message(message: ChatMessage) -> int:
    """About how many tokens a message takes, with its pictures."""
    return estimate_tokens(message.content) + TOKENS_PER_PICTURE * len(message.pictures)


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
