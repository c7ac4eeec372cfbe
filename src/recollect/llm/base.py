"""The protocol of a chat model; its whole answer, or its stream, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from recollect.errors import ProviderError
from recollect.interruption import Interrupted, stoppable
from recollect.model import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Callable

_Item = TypeVar("_Item")


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


# A chat model's whole answer, for a caller that is not asynchronous and does not wait for ever.


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
    return Completion(text[:max_characters], usage_of(model, messages, text, told))


def usage_of(model: ChatModel, messages: Sequence[ChatMessage], text: str, told: ChatUsage | None) -> TokenUsage:
    """What the provider tells, or else what is counted here: by the model's own tokenizer, where it has one at hand."""
    if told is not None:
        return TokenUsage(input_tokens=told.input_tokens, output_tokens=told.output_tokens, estimated=told.estimated)
    count: Callable[[str], int] = getattr(model, "count_tokens", estimate_tokens)
    return TokenUsage(
        input_tokens=sum(count(one.content) + TOKENS_PER_PICTURE * len(one.pictures) for one in messages),
        output_tokens=count(text) if text else 0,
        estimated=True,
    )


# An asynchronous stream for callers that are not asynchronous, also where an event loop is running already.


# Items that wait to be taken; whoever reads slowly makes the stream wait, not the memory grow.
_AHEAD = 16


def iterate(stream: AsyncIterator[_Item], *, in_thread: bool = True) -> Iterator[_Item]:
    """The items of an asynchronous stream, one by one, as they come.

    The stream runs in an event loop of its own, in a thread of its own, so that a loop in the calling thread (a
    notebook's) does not matter. It is no further ahead than a few items: where nobody takes them, it waits. An iterator
    that is dropped half-way cancels the stream.

    Args:
        stream: Used by nobody else.
        in_thread: False for a stream that never waits: it is driven in the calling thread, without any loop.

    Raises:
        Exception: Whatever the stream raises.
    """
    return _in_thread(stream) if in_thread else _driven(stream)


def _driven(stream: AsyncIterator[_Item]) -> Iterator[_Item]:
    async def items() -> list[_Item]:
        return [item async for item in stream]

    try:
        items().send(None)
    except StopIteration as done:
        yield from done.value
    else:
        raise RuntimeError("The stream waits for something; iterate it with in_thread=True.")


def _in_thread(stream: AsyncIterator[_Item]) -> Iterator[_Item]:
    # Each item alone in a tuple; at the end the error that ended the stream, or None.
    items: queue.Queue[tuple[_Item] | BaseException | None] = queue.Queue()
    loop = asyncio.new_event_loop()
    room = asyncio.Semaphore(_AHEAD)

    async def pump() -> None:
        async for value in stream:
            await room.acquire()
            items.put((value,))

    def run() -> None:
        try:
            loop.run_until_complete(task)
            items.put(None)
        except BaseException as exc:  # noqa: BLE001  # handed to the consumer, who raises it
            items.put(exc)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    task = loop.create_task(pump())
    thread = threading.Thread(target=run, name="recollect-stream", daemon=True)
    thread.start()
    try:
        while True:
            with stoppable(lambda: items.put(Interrupted())):
                item = items.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(room.release)
            yield item[0]
    finally:
        # A loop that has closed by itself refuses calls: then there is nothing left to cancel.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
