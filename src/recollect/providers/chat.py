"""Any provider's chat as a `ChatModel`: attempts before the first piece, a time limit for each, a checked end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from recollect.errors import ProviderError
from recollect.llm.base import ChatMessage, ChatPicture, ChatUsage, estimate_message, estimate_tokens
from recollect.providers.connection import Fault
from recollect.providers.embedder import openai_counter
from recollect.providers.requesting import Measured, Requester

# A conversation as providers want it that know two roles only, which take turns.


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said until the other one spoke."""

    role: Literal["user", "assistant"]
    text: str
    pictures: tuple[ChatPicture, ...] = ()


def turns_of(messages: Sequence[ChatMessage]) -> tuple[str, list[Turn]]:
    r"""The system messages as one text, and the others as turns: user first, then in alternation.

    Blank messages are left out, which providers refuse; messages in a row of one role are joined. A conversation whose
    beginning was cut off begins with the model's own words: they are left out too.

    Raises:
        Fault: The user says nothing.

    Example:
        >>> turns_of([ChatMessage("system", "Be brief."), ChatMessage("user", "Hi."), ChatMessage("user", "You?")])
        ('Be brief.', [Turn(role='user', text='Hi.\n\nYou?', pictures=())])
    """
    system = "\n\n".join(one.content for one in messages if one.role == "system" and one.content.strip())
    turns: list[Turn] = []
    for one in messages:
        if one.role == "system" or not one.content.strip() or (one.role == "assistant" and not turns):
            continue
        if turns and turns[-1].role == one.role:
            last = turns[-1]
            turns[-1] = Turn(one.role, f"{last.text}\n\n{one.content}", (*last.pictures, *one.pictures))
        else:
            turns.append(Turn(one.role, one.content, one.pictures))
    if not turns:
        raise Fault("invalid_request", "the conversation holds no question")
    return system, turns


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The provider's word that the answer is over; a stream without one broke off.

    Attributes:
        reason: ``"stop"``; ``"length"``: its token limit was reached; ``"filtered"``: a content filter stepped in.
    """

    reason: Literal["stop", "length", "filtered"] = "stop"


ChatItem: TypeAlias = "str | ChatUsage | StreamEnd"


def stream_end(
    reason: str, *, stop: Collection[str], length: Collection[str], filtered: Collection[str], said: str | None = None
) -> StreamEnd:
    """What a provider's word for the end of an answer means.

    Args:
        reason: As the provider says it.
        stop: The words for an answer that is whole.
        length: Those for a token limit.
        filtered: Those for a content filter, or a model that declines.
        said: What the provider says beside it.

    Raises:
        Fault: It is another word: the model failed, or nobody here knows whether the answer is whole.
    """
    if reason in filtered:
        return StreamEnd("filtered")
    if reason in length:
        return StreamEnd("length")
    if reason in stop:
        return StreamEnd()
    raise Fault("server", f"the model stopped: {said or reason}", retryable=True)


class ChatBackend(Protocol):
    """What a provider's file adds: one request, and what is read of its stream.

    It may raise anything, its SDK's exceptions or a `Fault`; it neither repeats nor limits.

    Attributes:
        sdk: The modules of the SDK that a request needs.
    """

    sdk: Sequence[str]

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int | None) -> AsyncIterator[ChatItem]:
        """Pieces as they arrive, in between or behind them one `StreamEnd` and what the answer took.

        Each call has its own client, closed with the stream: one object serves any number of event loops.
        """
        ...


@dataclass(slots=True)
class _Open:
    """A stream whose first piece has come."""

    items: AsyncIterator[ChatItem]
    first: str


class HostedChatModel:
    """A chat model behind an API. Safe to share between threads and event loops.

    Args:
        backend: Opens one stream.
        requester: Sends requests under the common rules.
    """

    def __init__(self, backend: ChatBackend, requester: Requester) -> None:
        self._backend = backend
        self._requester = requester

    def __repr__(self) -> str:
        where = self._requester.connection.shown_url
        shown = f", base_url={where!r}" if where else ""
        return f"{type(self).__name__}({self._requester.provider!r}, {self.model_name!r}{shown})"

    @property
    def model_name(self) -> str:
        """As the provider names it."""
        return self._requester.model

    @property
    def provider(self) -> str:
        """Whose model it is."""
        return self._requester.provider

    def load(self) -> None:
        """Import the SDK; the first answer does it unless it is imported."""
        self._requester.load()

    def count_tokens(self, text: str) -> int:
        """How many tokens a text takes: by the model's tokenizer where that is at hand, otherwise four bytes each."""
        own = openai_counter(self.model_name) if self.provider == "openai" else None
        text = text.encode("utf-8", "replace").decode("utf-8")
        return estimate_tokens(text) if own is None else own(text)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncIterator[str | ChatUsage]:
        """The answer's pieces, in order, as they arrive; as the last item what it took.

        Args:
            messages: The conversation so far; at least one message.
            max_tokens: Ends the answer after so many tokens; None: the server's own limit.

        Raises:
            ProviderError: The server refused or could not be reached, the stream broke off, its content filter
                stepped in, or the answer was empty.
        """
        sent = [replace(one, content=one.content.encode("utf-8", "replace").decode("utf-8")) for one in messages]
        run = _Run(self._backend, self._requester, sent, max_tokens)
        items = run.items()
        try:
            async for item in items:
                yield item
        finally:
            with contextlib.suppress(Exception):
                await items.aclose()


class _Run:
    """One answer, from the first attempt to its record."""

    def __init__(
        self, backend: ChatBackend, requester: Requester, messages: Sequence[ChatMessage], max_tokens: int | None
    ) -> None:
        self._backend = backend
        self._requester = requester
        self._messages = messages
        self._max_tokens = max_tokens
        self._measured = Measured(len(messages), sum(map(estimate_message, messages)))
        self._written = 0
        self._end: StreamEnd | None = None
        self._usage: ChatUsage | None = None

    async def items(self) -> AsyncGenerator[str | ChatUsage]:
        error: ProviderError | None = None
        opened: _Open | None = None
        try:
            opened = await self._opened()
            yield opened.first
            while (piece := await self._rest(opened)) is not None:
                yield piece
            self._require_end()
            yield self._told()
        except ProviderError as exc:
            error = exc
            raise
        finally:
            self._told()
            self._requester.record(self._measured, error)
            if opened is not None:
                await _closed(opened.items)

    async def _opened(self) -> _Open:
        """The stream, with its first piece; until that has come another attempt does no harm."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._requester.connection.max_retries + 1),
            wait=self._requester.pause,
            retry=retry_if_exception(self._requester.may_be_repeated),
            reraise=True,
        )
        return await retrying(self._attempt)

    async def _attempt(self) -> _Open:
        self._requester.admit(self._measured)
        self._end = self._usage = None
        items = self._backend.stream(self._messages, max_tokens=self._max_tokens)
        error: ProviderError
        try:
            await asyncio.to_thread(self._requester.load)
            first = await self._next_piece(items)
            if first is None:
                self._raise_empty()
            else:
                return _Open(items, first)
        except Exception as exc:  # noqa: BLE001 - whatever an SDK raises
            error = self._requester.error(exc)
        except BaseException:
            await _closed(items)
            raise
        await _closed(items)
        raise error

    async def _rest(self, opened: _Open) -> str | None:
        try:
            piece = await self._next_piece(opened.items)
        except Exception as exc:  # noqa: BLE001 - whatever an SDK raises
            error = self._requester.error(exc)
        else:
            return piece
        raise error

    async def _next_piece(self, items: AsyncIterator[ChatItem]) -> str | None:
        async with asyncio.timeout(self._requester.connection.timeout_seconds):
            async for item in items:
                if isinstance(item, StreamEnd):
                    self._end = item
                elif isinstance(item, ChatUsage):
                    self._usage = item
                elif item:
                    self._written += estimate_tokens(item)
                    return item
        return None

    def _raise_empty(self) -> None:
        if self._end is None:
            raise Fault("incomplete", retryable=True)
        if self._end.reason == "filtered":
            raise Fault("content_filter")
        if self._end.reason == "length":
            raise Fault("empty", "the token limit was reached before any text came; raise max_tokens")
        raise Fault("empty", "the model returned an empty answer; ask again", retryable=True)

    def _require_end(self) -> None:
        """The stream is over: was the answer?"""
        reason = None if self._end is None else self._end.reason
        if reason == "length":
            _log.warning(
                "%s: the answer of %r was cut off at its token limit", self._requester.provider, self._requester.model
            )
        fault = {None: Fault("incomplete", retryable=True), "filtered": Fault("content_filter")}.get(reason)
        if fault is not None:
            raise self._requester.error(fault)
        self._requester.answered()

    def _told(self) -> ChatUsage:
        """What the answer took so far, by the provider's count or estimated."""
        usage = self._usage
        if usage is None or not self._measured.told(usage.input_tokens, usage.output_tokens):
            self._measured.output_tokens = self._written
            return ChatUsage(self._measured.input_tokens, self._written, estimated=True)
        self._measured.estimated = usage.estimated
        return usage


async def _closed(items: AsyncIterator[ChatItem]) -> None:
    """Close a stream, whatever its SDK makes of that."""
    close = getattr(items, "aclose", None)
    if close is not None:
        with contextlib.suppress(Exception):
            await close()
