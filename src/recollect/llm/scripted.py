"""A chat model that says what it was told to: for tests, demonstrations and dry runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from recollect.errors import ProviderError
    from recollect.llm.base import ChatMessage, ChatUsage


class ScriptedChatModel:
    """Streams a fixed reply, or one computed from the conversation, in pieces of a fixed size.

    Args:
        reply: The whole answer, or a function from the messages to it. It is kept whole: pieces join to exactly it.
        piece_size: Characters a piece.
        error: Raised after ``error_after`` pieces, in place of the rest.
        error_after: How many pieces come before ``error``.
        model_name: What ``model_name`` says.
        usage: The last item of a whole answer; None: there is none.

    Attributes:
        calls: The messages of every call so far, oldest first.

    Example:
        >>> import asyncio
        >>> from recollect.llm.base import ChatMessage
        >>> async def ask():
        ...     model = ScriptedChatModel("Twenty days [1].", piece_size=7)
        ...     return [piece async for piece in model.stream([ChatMessage("user", "How many?")])]
        >>> asyncio.run(ask())
        ['Twenty ', 'days [1', '].']
    """

    def __init__(
        self,
        reply: str | Callable[[Sequence[ChatMessage]], str],
        *,
        piece_size: int = 8,
        error: ProviderError | None = None,
        error_after: int = 0,
        model_name: str = "scripted",
        usage: ChatUsage | None = None,
    ) -> None:
        if piece_size < 1:
            raise ValueError(f"piece_size must be at least 1, not {piece_size!r}")
        self._reply = reply
        self._piece_size = piece_size
        self._error = error
        self._error_after = error_after
        self._model_name = model_name
        self._usage = usage
        self.calls: list[tuple[ChatMessage, ...]] = []

    @property
    def model_name(self) -> str:
        """The name it was given."""
        return self._model_name

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncIterator[str | ChatUsage]:
        """The reply's pieces, in order, and the usage that it was given.

        Args:
            messages: Recorded in ``calls`` and handed to a scripted function.
            max_tokens: At most so many pieces, a piece standing for a token; None: all of them.

        Raises:
            ProviderError: The scripted one.
        """
        self.calls.append(tuple(messages))
        reply = self._reply if isinstance(self._reply, str) else self._reply(messages)
        pieces = [reply[start : start + self._piece_size] for start in range(0, len(reply), self._piece_size)]
        for number, piece in enumerate(pieces[:max_tokens]):
            await asyncio.sleep(0)
            if self._error is not None and number >= self._error_after:
                raise self._error
            yield piece
        if self._error is not None and self._error_after >= len(pieces[:max_tokens]):
            raise self._error
        if self._usage is not None:
            yield self._usage
