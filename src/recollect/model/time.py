"""Times as people write them.

Everywhere in recollect a time without a zone is read as UTC, and a date as its first moment in UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

from recollect.errors import UsageError

#: A time: a ``datetime``, a ``date``, or a text that `read_time` understands.
Moment: TypeAlias = datetime | date | str

#: A length of time: a ``timedelta``, a number of seconds, or a text that `read_duration` understands.
Duration: TypeAlias = timedelta | float | str

#: From the first (inclusive) to the second (exclusive); None: open on that side.
MomentRange: TypeAlias = tuple[Moment | None, Moment | None]

_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "mo": 30 * 86_400, "y": 365 * 86_400}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(min|mo|s|m|h|d|w|y)")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_YEAR = re.compile(r"[0-9]{4}")
_LONGEST = timedelta(days=365 * 1_000)
_EXAMPLES = "2026-01-31, 2026-01-31T12:00:00Z, now, or how long ago, such as 7d"


def read_duration(given: Duration, *, name: str = "The duration") -> timedelta:
    """A length of time.

    Args:
        given: A ``timedelta``, a number of seconds, or a text such as ``90s``, ``15m``, ``12h``, ``7d``, ``2w``,
            ``3mo`` (30 days each), ``1y`` (365 days) or ``1d12h``.
        name: What it is, for the error.

    Raises:
        UsageError: It is none of these, not more than 0, or longer than a thousand years.
    """
    try:
        found = _duration(given)
    except OverflowError:
        found = None
    if found is None or not timedelta() < found <= _LONGEST:
        raise UsageError(f"{name} must be a length of time such as 12h, 7d or 3mo, or seconds, not {given!r}.")
    return found


def read_lifetime(given: Duration | None, *, name: str = "ttl") -> timedelta | None:
    """A time to live, as `read_duration`; None where it is None or ``"never"``: without end.

    Raises:
        UsageError: It is none of these.
    """
    if given is None or (isinstance(given, str) and given.strip().lower() == "never"):
        return None
    try:
        return read_duration(given, name=name)
    except UsageError as exc:
        raise UsageError(f"{exc} Without an end, it is 'never'.") from None


def _duration(given: object) -> timedelta | None:
    if isinstance(given, timedelta):
        return given
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        return timedelta(seconds=given) if given == given else None
    if not isinstance(given, str):
        return None
    seconds, rest = 0.0, given.strip().lower()
    while part := _PART.match(rest):
        seconds += float(part[1]) * _UNITS[part[2]]
        rest = rest[part.end() :]
    return None if rest else timedelta(seconds=seconds)


def read_time(given: Moment, *, now: datetime | None = None, name: str = "The time") -> datetime:
    """A time with its zone.

    Args:
        given: A ``datetime`` or a ``date``; or a text: a date (``2026-01-31``, ``2026-01``, ``2026``), a time in
            ISO 8601, ``now``, or a duration, which is that long before ``now``. Without a zone: UTC. A date is its
            first moment.
        now: What durations count back from; None: the present.
        name: What it is, for the error.

    Raises:
        UsageError: It is none of these.
    """
    try:
        found = _time(given, now or datetime.now(UTC))
    except (ValueError, OverflowError, UsageError) as exc:
        raise UsageError(f"{name} must be a time such as {_EXAMPLES}; not {given!r}.") from exc
    return found


def _time(given: object, now: datetime) -> datetime:
    if isinstance(given, datetime):
        found = given
    elif isinstance(given, date):
        found = datetime(given.year, given.month, given.day, tzinfo=UTC)
    elif isinstance(given, str):
        found = _written(given.strip(), now)
    else:
        raise ValueError(given)
    aware = found.replace(tzinfo=UTC) if found.utcoffset() is None else found
    aware.astimezone(UTC)  # a time whose instant no calendar holds is found here, not in the database
    return aware


def _written(text: str, now: datetime) -> datetime:
    if text.lower() == "now":
        return now
    if _YEAR.fullmatch(text):
        return datetime(int(text), 1, 1, tzinfo=UTC)
    if _MONTH.fullmatch(text):
        return datetime(int(text[:4]), int(text[5:]), 1, tzinfo=UTC)
    if _PART.match(text.lower()):
        ago = _duration(text)
        if ago is not None:
            return now - read_duration(ago)
    return datetime.fromisoformat(text)


def read_range(given: MomentRange, *, now: datetime | None = None, name: str = "The range") -> DatedRange:
    """A stretch of time, each end read by `read_time`.

    Raises:
        UsageError: It is no pair, an end is no time, or it does not begin before it ends.
    """
    pair: object = given
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise UsageError(f"{name} must be a pair (from, to), either of them None for open, not {given!r}.")
    start, end = (None if one is None else read_time(one, now=now, name=name) for one in given)
    if start is not None and end is not None and not start < end:
        raise UsageError(f"{name} must begin before it ends, not {start.isoformat()} to {end.isoformat()}.")
    return DatedRange(start, end)


@dataclass(frozen=True, slots=True)
class DatedRange:
    """From ``start`` (inclusive) to ``end`` (exclusive), each with its zone; None: open on that side."""

    start: datetime | None = None
    end: datetime | None = None

    def __bool__(self) -> bool:
        return self.start is not None or self.end is not None

    def within(self, other: DatedRange) -> DatedRange:
        """What this range and another have in common; where they have nothing, it ends before it begins."""
        starts = [one for one in (self.start, other.start) if one is not None]
        ends = [one for one in (self.end, other.end) if one is not None]
        return DatedRange(max(starts, default=None), min(ends, default=None))


def is_relative(text: str) -> bool:
    """Whether a text means another time tomorrow than today: ``7d``, ``now``."""
    # Read at two different moments, what is absolute stays the same.
    return _written(text.strip(), datetime(2000, 1, 1, tzinfo=UTC)) != _written(text.strip(), datetime.now(UTC))
