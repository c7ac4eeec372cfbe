"""Dates as documents write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)


def parse_time(text: str | None) -> datetime | None:
    """A time-zone aware time from ISO 8601 text, or None.

    A date without a time is taken as its midnight in UTC. A time without a zone, a date before 1980 (the clocks of
    ZIP archives begin there) or in the future says nothing reliable and gives None.
    """
    if not text:
        return None
    text = text.strip()
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) <= 10:
        time = time.replace(tzinfo=UTC)
    return plausible(time)


def plausible(time: datetime | None) -> datetime | None:
    """``time`` where it has a zone and can be when a document was written."""
    if time is None or time.tzinfo is None:
        return None
    try:
        return time if _EARLIEST < time < datetime.now(UTC) + timedelta(days=1) else None
    except OverflowError:
        return None
