"""A client that awaits: the methods of a view, asked of a server by asyncio programs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING

from recollect.client.async_connection import AsyncConnection, AsyncPool
from recollect.client.async_groups import Groups
from recollect.client.calls.base import Calls
from recollect.client.calls.conversations import RecallCalls
from recollect.client.calls.ingesting import EverydayCalls
from recollect.client.calls.retrieval import AskEvent, RetrievalCalls
from recollect.client.methods import RemoteMethods, awaited, followed_awaited
from recollect.client.place import Place
from recollect.client.requests import RETRIES, TIMEOUT_SECONDS, headers_of, opened_settings
from recollect.familiar_names import suggesting
from recollect.model import Answer, RetrievalOptions, RetrievedContext

if TYPE_CHECKING:
    from typing import Unpack

    from recollect.model.search_options import SearchKeywords


class AsyncRemoteView(Groups, RemoteMethods["AsyncRemoteView", AsyncConnection]):
    """A view of what a server has; see `recollect.View`, whose methods these are, and `Client`, which makes it.

    Immutable, and safe to share between threads.
    """

    def _of(self, at: Place, connection: AsyncConnection) -> AsyncRemoteView:
        return AsyncRemoteView(at, connection)

    me = awaited(Calls.me)
    default_options = awaited(EverydayCalls.default_options)
    search = awaited(RetrievalCalls.search)
    context = awaited(RetrievalCalls.context)
    why_not = awaited(RetrievalCalls.why_not)
    ask_events = followed_awaited(RetrievalCalls.ask_events)
    chat_events = followed_awaited(RetrievalCalls.chat_events)
    ingest = awaited(EverydayCalls.ingest)
    ingest_files = awaited(EverydayCalls.ingest_files)
    ingest_url = awaited(EverydayCalls.ingest_url)
    remember = awaited(RecallCalls.remember)
    recall = awaited(RecallCalls.recall)

    async def retrieve(
        self, query: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first: `search` without what stands around them."""
        return list((await self.search(query, options, **keywords)).results)

    async def ask(
        self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> Answer:
        """Answer a question from the knowledge base, with citations, or show passages; see `recollect.View.ask`."""
        return await _last(self.ask_events(question, options, **keywords))

    async def ask_stream(
        self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> AsyncGenerator[str | Answer]:
        """As `ask`, but yields the answer as it comes, in whole checked sentences, and the `Answer` at the end."""
        async with aclosing(self.ask_events(question, options, **keywords)) as events:
            async for event in events:
                if isinstance(event, str | Answer):
                    yield event

    async def chat(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        session: str,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question of a conversation, which is remembered with its answer."""
        return await _last(self.chat_events(question, options, session=session, **keywords))


async def _last(events: AsyncGenerator[AskEvent]) -> Answer:
    answer: AskEvent | None = None
    async for event in events:
        answer = event
    assert isinstance(answer, Answer), "a stream ends with the answer"
    return answer


@suggesting
class AsyncClient(AsyncRemoteView):
    """A `Client` for asyncio programs: the same methods with the same arguments, awaited.

    An asynchronous context manager. A call that is cancelled is over at once, and its connection is closed. It may be
    used in one event loop after the other.

    Args:
        url: Where the server is.
        key: An API key, or a token of its issuer; None: none is needed, as on the server's own machine.
        timeout_seconds: How long a reply may take to come, or to go on.
        retries: How often a request is made again.
        allow_insecure: Send the key over plain HTTP to another machine, where the way there is safe.

    Raises:
        UsageError: The address is none, or a key would go over plain HTTP to another machine.

    Example:
        >>> from recollect import AsyncClient
        >>> async def main():
        ...     async with AsyncClient("https://knowledge.example.org", key="…") as client:
        ...         async for piece in client.ask_stream("How long is annual leave?"):
        ...             print(piece)
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        allow_insecure: bool = False,
    ) -> None:
        settings = opened_settings(timeout_seconds=timeout_seconds, retries=retries)
        address, headers = headers_of(url, key, allow_insecure=allow_insecure)
        super().__init__(Place(), AsyncConnection(AsyncPool(address, headers), settings))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the next request opens others."""
        await self._connection.pool.close()
