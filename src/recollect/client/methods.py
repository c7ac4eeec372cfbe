"""Methods of clients, made of what they ask: one line each, with the types of what it gives.

``sent`` and its likes are for the client that waits, ``awaited`` and its likes for the one that awaits. Both are handed
the same function, which makes a `Call`, or several in turn (`Steps`), and sends nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from recollect.client.calls.base import Call, Calls, EventStream, Pages, Steps
from recollect.client.calls.conversations import RecallCalls
from recollect.client.calls.ingesting import EverydayCalls
from recollect.client.calls.retrieval import RetrievalCalls
from recollect.client.place import UNCHANGED, Place, refined
from recollect.client.requests import refined_settings
from recollect.client.streams import Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.client.async_connection import AsyncConnection
    from recollect.client.calls.base import Reply
    from recollect.client.connection import Connection
    from recollect.model import Principal
    from recollect.model.time import Moment

P = ParamSpec("P")
R = TypeVar("R")
ViewOfServer = TypeVar("ViewOfServer")
C = TypeVar("C", "Connection", "AsyncConnection")


def sent(make: Callable[Concatenate[Any, P], Call[R] | Steps[R]]) -> Callable[Concatenate[Any, P], R]:
    """A method that sends what a function makes."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ANN401 - whatever has a connection
        result: R = self._connection.run(make(self._calls, *args, **kwargs))
        return result

    return cast("Callable[Concatenate[Any, P], R]", method)


def paged(
    make: Callable[Concatenate[Any, P], Pages[R] | Steps[Pages[R]]],
) -> Callable[Concatenate[Any, P], Iterator[R]]:
    """As `sent`, of a list that is read page by page while it is gone through."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:  # noqa: ANN401 - see above
        yield from self._connection.each(make(self._calls, *args, **kwargs))

    return cast("Callable[Concatenate[Any, P], Iterator[R]]", method)


def followed(make: Callable[Concatenate[Any, P], EventStream[R]]) -> Callable[Concatenate[Any, P], Iterator[R]]:
    """As `sent`, of events as they come."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:  # noqa: ANN401 - see above
        yield from self._connection.follow(make(self._calls, *args, **kwargs))

    return cast("Callable[Concatenate[Any, P], Iterator[R]]", method)


def awaited(
    make: Callable[Concatenate[Any, P], Call[R] | Steps[R]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A method that sends what a function makes, awaited."""

    @wraps(make)
    async def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ANN401 - see above
        result: R = await self._connection.run(make(self._calls, *args, **kwargs))
        return result

    return cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]", method)


def paged_awaited(
    make: Callable[Concatenate[Any, P], Pages[R] | Steps[Pages[R]]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[R]]:
    """As `paged`, awaited."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[R]:  # noqa: ANN401 - see above
        pages: AsyncGenerator[R] = self._connection.each(make(self._calls, *args, **kwargs))
        return pages

    return cast("Callable[Concatenate[Any, P], AsyncGenerator[R]]", method)


def followed_awaited(
    make: Callable[Concatenate[Any, P], EventStream[R]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[R]]:
    """As `followed`, awaited."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[R]:  # noqa: ANN401 - see above
        events: AsyncGenerator[R] = self._connection.follow(make(self._calls, *args, **kwargs))
        return events

    return cast("Callable[Concatenate[Any, P], AsyncGenerator[R]]", method)


def downloaded(make: Callable[Concatenate[Any, P], Call[Any]]) -> Callable[Concatenate[Any, P], Iterator[bytes]]:
    """As `sent`, of what is no JSON: its bytes as they come."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> Iterator[bytes]:  # noqa: ANN401 - see above
        yield from self._connection.download(make(self._calls, *args, **kwargs))

    return cast("Callable[Concatenate[Any, P], Iterator[bytes]]", method)


def lined(make: Callable[Concatenate[Any, P], Call[Any]]) -> Callable[Concatenate[Any, P], Iterator[str]]:
    """As `downloaded`, line by line."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> Iterator[str]:  # noqa: ANN401 - see above
        lines = Lines()
        for piece in self._connection.download(make(self._calls, *args, **kwargs)):
            yield from lines.of(piece)
        yield from lines.rest()

    return cast("Callable[Concatenate[Any, P], Iterator[str]]", method)


def downloaded_awaited(
    make: Callable[Concatenate[Any, P], Call[Any]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[bytes]]:
    """As `downloaded`, awaited."""

    @wraps(make)
    def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[bytes]:  # noqa: ANN401 - see above
        pieces: AsyncGenerator[bytes] = self._connection.download(make(self._calls, *args, **kwargs))
        return pieces

    return cast("Callable[Concatenate[Any, P], AsyncGenerator[bytes]]", method)


def lined_awaited(
    make: Callable[Concatenate[Any, P], Call[Any]],
) -> Callable[Concatenate[Any, P], AsyncGenerator[str]]:
    """As `lined`, awaited."""

    @wraps(make)
    async def method(self: Any, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[str]:  # noqa: ANN401 - see above
        lines = Lines()
        async with aclosing(self._connection.download(make(self._calls, *args, **kwargs))) as pieces:
            async for piece in pieces:
                for line in lines.of(piece):
                    yield line
        for line in lines.rest():
            yield line

    return cast("Callable[Concatenate[Any, P], AsyncGenerator[str]]", method)


def group(kind: Callable[[Any, Any], R], calls: type[Calls]) -> R:
    """A group of methods of a view: a property, which a type checker takes for what it gives.

    Args:
        kind: Its class, of its requests and the connection.
        calls: Its requests, of where the view stands.
    """

    def make(view: RemoteMethods[Any, Any]) -> R:
        return kind(calls(view.standpoint), view._connection)

    made = cast("type", kind)
    make.__module__, make.__annotations__["return"] = made.__module__, made.__name__
    return cast("R", property(make, doc=kind.__doc__))


class _Calls(RetrievalCalls, RecallCalls, EverydayCalls):
    """What a client asks by itself, beside its groups."""


class RemoteMethods(Generic[ViewOfServer, C]):
    """What views of a server have in common, however they wait for it.

    Args:
        at: Where the view stands.
        connection: The way to the server.
    """

    def __init__(self, at: Place, connection: C) -> None:
        self._at = at
        self._connection: C = connection
        self._calls = _Calls(at)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _of(self, at: Place, connection: C) -> ViewOfServer:
        """Another view of the same server."""
        raise NotImplementedError

    def view(
        self,
        *,
        principal: Principal | None = UNCHANGED,
        collections: Sequence[str] | str | None = UNCHANGED,
        as_of: Moment | None = UNCHANGED,
        session: str | None = UNCHANGED,
        user: str | None = UNCHANGED,
        remotes: Sequence[str] | None = UNCHANGED,
    ) -> ViewOfServer:
        """A view that differs from this one in what is named here; see `recollect.View.view`.

        Whose knowledge it is of is the credential's to say. ``principal`` is for whom the owner of the store asks.
        ``remotes`` are names of those that the server is configured with.

        Raises:
            UsageError: ``as_of`` is no time, or ``collections`` names none.
        """
        given = {"principal": principal, "collections": collections, "as_of": as_of}
        at = refined(self._at, **given, session=session, user=user, remotes=remotes)
        return self._of(at, self._connection)

    def with_options(
        self,
        *,
        timeout_seconds: float = UNCHANGED,
        retries: int = UNCHANGED,
        idempotency_key: str | None = UNCHANGED,
        on_reply: Callable[[Reply], None] | None = UNCHANGED,
    ) -> ViewOfServer:
        """The same view, asked in another way.

        Args:
            timeout_seconds: How long a reply may take to come, or to go on.
            retries: How often a request is made again where that is safe.
            idempotency_key: Of the next write, which takes effect once under it however often it is made; None: each
                write has one of its own.
            on_reply: Told every reply with its status, headers, ``etag`` and ``request_id``.

        Raises:
            UsageError: A number is out of range.
        """
        settings = refined_settings(
            self._connection.settings,
            timeout_seconds=timeout_seconds,
            retries=retries,
            idempotency_key=idempotency_key,
            on_reply=on_reply,
        )
        return self._of(self._at, type(self._connection)(self._connection.pool, settings))

    @property
    def standpoint(self) -> Place:
        """Who, when and where, as it was said."""
        return self._at

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._connection.url
