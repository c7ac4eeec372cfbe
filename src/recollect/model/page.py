"""Lists page by page: one shape and one kind of cursor for all of them."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, ParamSpec, TypeVar, overload

from recollect.errors import UsageError
from recollect.model.arguments import UNSTORABLE
from recollect.model.record import Public, Record

T = TypeVar("T")
P = ParamSpec("P")

#: Entries of a page at most.
MOST_OF_A_PAGE = 1_000

_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page(Record, Sequence[T], Generic[T]):
    """A part of a list.

    Attributes:
        items: Its entries.
        next_cursor: Where the next page begins; null: there is none.
    """

    items: Public[tuple[T, ...]]
    next_cursor: Public[str | None] = None

    @classmethod
    def of(cls, found: Sequence[T], limit: int, position: Callable[[T], int | str | Sequence[object]]) -> Page[T]:
        """A page of what was looked up.

        Args:
            found: One entry more than the page holds tells that another follows.
            limit: How many it holds.
            position: Of an entry, behind which the next page begins.
        """
        shown = tuple(found[:limit])
        return cls(shown, cursor_at(position(shown[-1])) if len(found) > limit else None)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.items[index]


def every(listing: Callable[P, Page[T]], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
    """Every entry of a list, page by page as they are read."""
    while True:
        page = listing(*args, **kwargs)
        yield from page
        if page.next_cursor is None:
            return
        kwargs["cursor"] = page.next_cursor


async def every_awaited(
    listing: Callable[P, Awaitable[Page[T]]], *args: P.args, **kwargs: P.kwargs
) -> AsyncGenerator[T]:
    """As `every`, awaited."""
    while True:
        page = await listing(*args, **kwargs)
        for one in page:
            yield one
        if page.next_cursor is None:
            return
        kwargs["cursor"] = page.next_cursor


def cursor_at(position: int | str | Sequence[object]) -> str:
    """The cursor of a page that begins behind a position."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).rstrip(b"=").decode()


def position_of(cursor: str) -> int | str | list[object] | None:
    """Where a page begins; None: this is no cursor."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError, binascii.Error):
        return None
    return None if isinstance(position, bool) or not isinstance(position, int | str | list) else position


def number_at(cursor: str | None) -> int | None:
    """Behind which number a page begins, in a list by numbers; None: at the first entry.

    Raises:
        UsageError: The cursor is of no such list.
    """
    if cursor is None:
        return None
    position = position_of(cursor)
    if isinstance(position, int) and 0 <= position <= _HIGHEST:
        return position
    raise unknown_cursor()


def name_at(cursor: str | None) -> str | None:
    """Behind which name a page begins, in a list by names; None: at the first entry.

    Raises:
        UsageError: The cursor is of no such list.
    """
    if cursor is None:
        return None
    position = position_of(cursor)
    if isinstance(position, str) and not UNSTORABLE.search(position):
        return position
    raise unknown_cursor()


def moment_at(cursor: str | None) -> tuple[datetime, int] | None:
    """Behind which moment and number a page begins, in a list by both; None: at the first entry.

    Raises:
        UsageError: The cursor is of no such list.
    """
    if cursor is None:
        return None
    match position_of(cursor):
        case [str(text), int(number)] if not isinstance(number, bool) and 0 <= number <= _HIGHEST:
            return moment_of(text), number
    raise unknown_cursor()


def moment_of(text: str) -> datetime:
    """A moment as cursors hold it.

    Raises:
        UsageError: It is none.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise unknown_cursor() from None
    if moment.tzinfo is None:
        raise unknown_cursor()
    return moment


def names_at(cursor: str | None, count: int) -> list[str]:
    """Behind which names a page begins, in a list by so many names; none: at the first entry.

    Raises:
        UsageError: The cursor is of no such list.
    """
    if cursor is None:
        return []
    position = position_of(cursor)
    if isinstance(position, list) and len(position) == count:
        names = [one for one in position if isinstance(one, str) and not UNSTORABLE.search(one)]
        if len(names) == count:
            return names
    raise unknown_cursor()


def unknown_cursor() -> UsageError:
    """What a cursor is answered with that no page of a list gave."""
    return UsageError("The cursor is none that an earlier page of this list gave: leave it out to begin anew.")
