"""Lists, page by page: where a page begins is a cursor, which only the server reads."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Query

from recollect.errors import UsageError
from recollect.server.schemas.base import Text

T = TypeVar("T")

_MOST = 1_000
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
        raise _unknown()

    def name(self) -> str | None:
        """Where it begins, in a list by name; None: at the first entry.

        Raises:
            UsageError: The cursor is of no such list.
        """
        position = self._position()
        if position is None or isinstance(position, str):
            return position
        raise _unknown()

    def _position(self) -> int | str | None:
        if self.cursor is None:
            return None
        try:
            padded = self.cursor.encode("ascii") + b"=" * (-len(self.cursor) % 4)
            position = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        except (ValueError, RecursionError, binascii.Error):
            raise _unknown() from None
        if isinstance(position, bool) or not isinstance(position, int | str):
            raise _unknown()
        return position


async def page(
    limit: Annotated[int, Query(ge=1, le=_MOST, description="Entries at most.")] = 100,
    cursor: Annotated[
        Text | None, Query(max_length=2_000, description="`next_cursor` of the page before; left out: the first page.")
    ] = None,
) -> Page:
    """The page that a request asks for."""
    return Page(limit=limit, cursor=cursor)


#: The page that a request asks for.
Paging = Annotated[Page, Depends(page)]


def cursor_at(position: int | str) -> str:
    """The cursor of a page that begins behind a position."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).rstrip(b"=").decode()


def shown(found: Sequence[T], asked: Page) -> tuple[Sequence[T], bool]:
    """What is shown of what was looked up, and whether another page follows."""
    return found[: asked.limit], len(found) > asked.limit


def _unknown() -> UsageError:
    return UsageError("The cursor is none that an earlier page of this list gave: leave it out to begin anew.")
