"""A client that waits: the methods of a view, asked of a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

from pydantic_core import to_json

from recollect.client.calls.base import Calls
from recollect.client.calls.conversations import RecallCalls
from recollect.client.calls.ingesting import EverydayCalls
from recollect.client.calls.retrieval import AskEvent, RetrievalCalls
from recollect.client.connection import Connection, Pool
from recollect.client.groups import Groups
from recollect.client.methods import RemoteMethods, followed, sent
from recollect.client.place import Place
from recollect.client.requests import RETRIES, TIMEOUT_SECONDS, headers_of, opened_settings
from recollect.errors import ServerError
from recollect.familiar_names import suggesting
from recollect.model import Answer, RetrievalOptions, RetrievedContext, SearchReply
from recollect.model.record import adapter_of

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Unpack

    from recollect.client.calls.base import Reply
    from recollect.model.search_options import SearchKeywords


# A search of a thousand long passages has less.
_MOST_OF_A_SEARCH = 32 * 1024 * 1024
_SHAPE_LOCK = Lock()


class RemoteView(Groups, RemoteMethods["RemoteView", Connection]):
    """A view of what a server has; see `recollect.View`, whose methods these are, and `Client`, which makes it.

    Immutable, and safe to share between threads.
    """

    def _of(self, at: Place, connection: Connection) -> RemoteView:
        return RemoteView(at, connection)

    me = sent(Calls.me)
    default_options = sent(EverydayCalls.default_options)
    search = sent(RetrievalCalls.search)
    context = sent(RetrievalCalls.context)
    why_not = sent(RetrievalCalls.why_not)
    ask_events = followed(RetrievalCalls.ask_events)
    chat_events = followed(RetrievalCalls.chat_events)
    ingest = sent(EverydayCalls.ingest)
    ingest_files = sent(EverydayCalls.ingest_files)
    ingest_url = sent(EverydayCalls.ingest_url)
    remember = sent(RecallCalls.remember)
    recall = sent(RecallCalls.recall)

    def retrieve(
        self, query: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> list[RetrievedContext]:
        """The passages that answer a query, best first: `search` without what stands around them."""
        return list(self.search(query, options, **keywords).results)

    def ask(self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]) -> Answer:
        """Answer a question from the knowledge base, with citations, or show passages; see `recollect.View.ask`."""
        return _last(self.ask_events(question, options, **keywords))

    def ask_stream(
        self, question: str, options: RetrievalOptions | None = None, **keywords: Unpack[SearchKeywords]
    ) -> Iterator[str | Answer]:
        """As `ask`, but yields the answer as it comes, in whole checked sentences, and the `Answer` at the end."""
        events = self.ask_events(question, options, **keywords)
        return (event for event in events if isinstance(event, str | Answer))

    def chat(
        self,
        question: str,
        options: RetrievalOptions | None = None,
        *,
        session: str,
        **keywords: Unpack[SearchKeywords],
    ) -> Answer:
        """Answer a question of a conversation, which is remembered with its answer."""
        return _last(self.chat_events(question, options, session=session, **keywords))


def passages_within(
    view: RemoteView, query: str, options: RetrievalOptions, *, seconds: float, as_of: datetime | None = None
) -> list[RetrievedContext]:
    """What a server finds by itself, without those that it would ask in turn: whatever it is, it is not believed.

    Args:
        view: Of the server.
        query: In plain words.
        options: How to search.
        seconds: How long the reply may take in all.
        as_of: What was known then; None: as the view has it.

    Raises:
        RecollectError: No valid reply came in time.
    """
    at = replace(view.standpoint, remotes=(), as_of=as_of or view.standpoint.as_of)
    settings = replace(
        view._connection.settings,
        timeout_seconds=seconds,
        total_seconds=seconds,
        retries=0,
        on_reply=partial(_require_shape, view.url),
        max_reply_bytes=_MOST_OF_A_SEARCH,
    )
    asked = RemoteView(at, Connection(view._connection.pool, settings))
    return list(asked.search(query, options).results)


def _require_shape(url: str, reply: Reply) -> None:
    # pydantic parses the fields' descriptions, and Python 3.11 cannot do that in two threads at once.
    with _SHAPE_LOCK:
        shape = adapter_of(SearchReply)
    try:
        shape.validate_json(to_json(reply.json), strict=True)
    except (KeyError, TypeError, ValueError) as exc:
        raise ServerError(f"What answers at {url} gave no reply of recollect's: {exc}", url=url) from exc


def _last(events: Iterator[AskEvent]) -> Answer:
    *_, answer = events
    assert isinstance(answer, Answer), "a stream ends with the answer"
    return answer


@suggesting
class Client(RemoteView):
    """A server's client: the methods of a view over HTTP. A context manager.

    Safe to share between threads, and after a fork, whose child has connections of its own. Requests are made again
    where that is safe: those that change nothing, and those that change something under an idempotency key, which each
    write has. What the server says of errors is raised as the library raises it.

    Args:
        url: Where the server is.
        key: An API key, or a token of its issuer; None: none is needed, as on the server's own machine.
        timeout_seconds: How long a reply may take to come, or to go on.
        retries: How often a request is made again.
        allow_insecure: Send the key over plain HTTP to another machine, where the way there is safe.

    Raises:
        UsageError: The address is none, or a key would go over plain HTTP to another machine.

    Example:
        >>> from recollect import Client
        >>> with Client("https://knowledge.example.org", key="…") as client:  # doctest: +SKIP
        ...     for passage in client.search("How long is annual leave?").results:
        ...         print(passage.source, passage.content)
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
        super().__init__(Place(), Connection(Pool(address, headers), settings))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the next request opens others."""
        self._connection.pool.close()
