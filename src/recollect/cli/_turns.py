"""Turns of conversations, for people and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.cli._json import shown

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.memory import Episode


def turn_json(episode: Episode) -> dict[str, Any]:
    """A turn as ``--json`` prints it."""
    return shown(episode, "position", "role", "content", "at", "id=turn_id", "known_from", "metadata")


def moment_json(moment: datetime | None) -> str | None:
    """A time as ISO 8601."""
    return None if moment is None else moment.isoformat()


def moment_words(moment: datetime | None) -> str:
    """A time to the minute, in UTC; a day's first moment as the day."""
    if moment is None:
        return "undated"
    midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return moment.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M")
