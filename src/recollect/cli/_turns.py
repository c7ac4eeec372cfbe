"""When turns of conversations were said, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def moment_words(moment: datetime | None) -> str:
    """A time to the minute, in UTC; a day's first moment as the day."""
    if moment is None:
        return "undated"
    midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M")
