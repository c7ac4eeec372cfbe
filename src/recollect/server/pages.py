"""Lists, page by page: where a page begins is a cursor, which only the server reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, TypeVar

from fastapi import Depends, Query

from recollect.model.arguments import UNSTORABLE
from recollect.model.page import position_of, unknown_cursor
from recollect.operations.values import Cursor, Limit

T = TypeVar("T")

_HIGHEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page:
    """The page that is asked for.

    Attributes:
        limit: Entries at most.
        cursor: As the page before gave it; None: the first page.
    """

    limit: int
    cursor: str | None

    @property
    def asked(self) -> int:
        """How many entries to look up: one more than are shown tells whether another page follows."""
        return self.limit + 1

    def number(self) -> int | None:
        """Where it begins, in a list by number; None: at the first entry.

        Raises:
            UsageError: The cursor is of no such list.
        """
        position = self._position()
        if position is None or (isinstance(position, int) and 0 <= position <= _HIGHEST):
            return position
        raise unknown_cursor()

    def name(self) -> str | None:
        """Where it begins, in a list by name; None: at the first entry.

        Raises:
            UsageError: The cursor is of no such list.
        """
        position = self._position()
        if position is None or isinstance(position, str):
            return position
        raise unknown_cursor()

    def offset(self) -> int:
        """How many entries come before it, where its cursor counts: a client may pass over some by their number."""
        return (self.number() or 0) if self._counts else 0

    @property
    def _counts(self) -> bool:
        return isinstance(self._decoded(), int | None)

    def moment(self) -> tuple[datetime, int] | None:
        """Where it begins, in a list by a moment and a number; None: at the first entry.

        Raises:
            UsageError: The cursor is of no such list.
        """
        return None if self._counts else numbered_moment(self._decoded())

    def parts(self, count: int) -> list[object] | None:
        """Where several lists go on that are read together, null for one that has ended; None: all at their beginning.

        Raises:
            UsageError: The cursor is of no such lists.
        """
        if self._counts:
            return None
        found = self._decoded()
        if not isinstance(found, list) or len(found) != count:
            raise unknown_cursor()
        return found

    def _position(self) -> int | str | None:
        position = self._decoded()
        if isinstance(position, bool) or not isinstance(position, int | str | None):
            raise unknown_cursor()
        return position

    def _decoded(self) -> object:
        if self.cursor is None:
            return None
        found = position_of(self.cursor)
        if found is None:
            raise unknown_cursor()
        return found


PageLimit = Annotated[Limit, Query(description="Entries at most.")]
PageCursor = Annotated[Cursor | None, Query(description="`next_cursor` of the page before; left out: the first page.")]


async def page(limit: PageLimit = 100, cursor: PageCursor = None) -> Page:
    """The page that a request asks for."""
    return Page(limit=limit, cursor=cursor)


#: The page that a request asks for.
Paging = Annotated[Page, Depends(page)]


def numbered_moment(given: object) -> tuple[datetime, int]:
    """A place in a list by a moment and a number, as a cursor holds it.

    Raises:
        UsageError: It is none.
    """
    match given:
        case [str(moment), int(number)] if not isinstance(number, bool) and 0 <= number <= _HIGHEST:
            return _moment(moment), number
    raise unknown_cursor()


def named_moment(given: object) -> tuple[datetime | None, str, str | None]:
    """A place in a list by a moment, a name and whose it is, as a cursor holds it.

    Raises:
        UsageError: It is none.
    """
    match given:
        case [str() | None as moment, str(name), str() | None as owner]:
            if not UNSTORABLE.search(f"{name}{owner}"):
                return None if moment is None else _moment(moment), name, owner
    raise unknown_cursor()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise unknown_cursor() from None
    if moment.tzinfo is None:
        raise unknown_cursor()
    return moment


def shown(found: Sequence[T], asked: Page) -> tuple[Sequence[T], bool]:
    """What is shown of what was looked up, and whether another page follows."""
    return found[: asked.limit], len(found) > asked.limit
