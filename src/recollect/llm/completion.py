"""A chat model's whole answer, for a caller that is not asynchronous and does not wait for ever."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import ProviderError
from recollect.llm.base import TOKENS_PER_PICTURE, estimate_tokens
from recollect.model import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.llm.base import ChatMessage, ChatModel, ChatUsage

# A model that does not let itself be cancelled is left to its thread this long after its time.
_GRACE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer, and what it took."""

    text: str
    usage: TokenUsage


def complete(model: ChatModel, messages: Sequence[ChatMessage], *, timeout_seconds: float, max_characters: int) -> str:
    """The text of a `completion`."""
    return completion(model, messages, timeout_seconds=timeout_seconds, max_characters=max_characters).text


def completion(
    model: ChatModel, messages: Sequence[ChatMessage], *, timeout_seconds: float, max_characters: int
) -> Completion:
    """The stream joined; it ends early where the answer is longer than it may be.

    It runs in an event loop and a thread of its own, so that a loop in the calling thread (a notebook's) does not
    matter, and a model that blocks cannot hold the caller up.

    Raises:
        ProviderError: The model failed, or its time was up.
    """
    load = getattr(model, "load", None)
    if load is not None:  # what a model needs first is no part of its time
        load()
    done: queue.Queue[Completion | BaseException] = queue.Queue()

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
) -> Completion:
    pieces: list[str] = []
    length = 0
    told: ChatUsage | None = None
    stream = model.stream(messages)
    try:
        async with asyncio.timeout(timeout_seconds):
            async for piece in stream:
                if isinstance(piece, str):
                    pieces.append(piece)
                    length += len(piece)
                else:
                    told = piece
                if length >= max_characters:
                    break
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    text = "".join(pieces)
    return Completion(text[:max_characters], _usage(model, messages, text, told))


def _usage(model: ChatModel, messages: Sequence[ChatMessage], text: str, told: ChatUsage | None) -> TokenUsage:
    """What the provider tells, or else what is counted here: by the model's own tokenizer, where it has one at hand."""
    if told is not None:
        return TokenUsage(input_tokens=told.input_tokens, output_tokens=told.output_tokens, estimated=told.estimated)
    count: Callable[[str], int] = getattr(model, "count_tokens", estimate_tokens)
    return TokenUsage(
        input_tokens=sum(count(one.content) + TOKENS_PER_PICTURE * len(one.pictures) for one in messages),
        output_tokens=count(text) if text else 0,
        estimated=True,
    )
