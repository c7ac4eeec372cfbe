"""Methods of clients, made of what they ask: one line each, with the types of what it gives.

``sent`` and its likes are for the client that waits, ``awaited`` and its likes for the one that awaits. Both are handed
the same function, which makes a `Call`, or several in turn (`Steps`), and sends nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from recollect.client.calls.base import Call, EventStream, Pages, Steps
from recollect.client.streams import Lines

P = ParamSpec("P")
R = TypeVar("R")


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
