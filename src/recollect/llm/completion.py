"""A chat model's whole answer, for a caller that is not asynchronous and does not wait for ever."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.errors import ProviderError

if TYPE_CHECKING:
    from recollect.llm.base import ChatMessage, ChatModel

# A model that does not let itself be cancelled is left to its thread this long after its time.
_GRACE_SECONDS = 0.2


def complete(model: ChatModel, messages: Sequence[ChatMessage], *, timeout_seconds: float, max_characters: int) -> str:
    """The stream joined; it ends early where the answer is longer than it may be.

    It runs in an event loop and a thread of its own, so that a loop in the calling thread (a notebook's) does not
    matter, and a model that blocks cannot hold the caller up.

    Raises:
        ProviderError: The model failed, or its time was up.
    """
    done: queue.Queue[str | BaseException] = queue.Queue()

    def run() -> None:
        try:
            done.put(asyncio.run(_collected(model, messages, timeout_seconds, max_characters)))
        except BaseException as exc:  # noqa: BLE001  # handed to the caller, who raises it
            done.put(exc)

    # With the caller's context: what the model is asked is recorded for the caller's tenant.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="recollect-completion", daemon=True).start()
    try:
        result = done.get(timeout=timeout_seconds + _GRACE_SECONDS)
    except queue.Empty:
        result = TimeoutError()
    if isinstance(result, TimeoutError):
        raise ProviderError(
            f"The model gave no answer within {timeout_seconds:g} s.",
            provider="chat",
            model=model.model_name,
            retryable=True,
        )
    if isinstance(result, BaseException):
        raise result
    return result


async def _collected(
    model: ChatModel, messages: Sequence[ChatMessage], timeout_seconds: float, max_characters: int
) -> str:
    pieces: list[str] = []
    length = 0
    stream = model.stream(messages)
    try:
        async with asyncio.timeout(timeout_seconds):
            async for piece in stream:
                if isinstance(piece, str):
                    pieces.append(piece)
                    length += len(piece)
                if length >= max_characters:
                    break
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    return "".join(pieces)[:max_characters]
