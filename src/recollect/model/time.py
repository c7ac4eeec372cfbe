"""Times as people write them, and the times that a search is confined to.

Everywhere in recollect a time without a zone is read as UTC, and a date as its first moment in UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.model.passage import RetrievalOptions

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


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """What the times of a document must be for a search to find it.

    Attributes:
        event: Its event time, or a part of its event interval, lies in this range.
        ingested: The version found became known in this range.
    """

    event: DatedRange = DatedRange()
    ingested: DatedRange = DatedRange()

    def __bool__(self) -> bool:
        return bool(self.event or self.ingested)


def time_limits(options: RetrievalOptions, as_of: datetime | None = None) -> TimeLimits:
    """The times that the options of a search confine it to.

    Args:
        options: ``event_window`` counts back from the moment of the search; both conditions on events hold together.
        as_of: That moment; None: the present.

    Raises:
        UsageError: An option is no length of time, no time or no range.
    """
    now = as_of or datetime.now(UTC)
    event = DatedRange()
    if options.event_time_range is not None:
        event = read_range(options.event_time_range, now=now, name="event_time_range")
    if options.event_window is not None:
        window = read_duration(options.event_window, name="event_window")
        try:
            # The moment itself belongs to the window: what happens now is not over yet.
            recent = DatedRange(now - window, now + timedelta(microseconds=1))
        except OverflowError as exc:
            raise UsageError(f"event_window reaches back before any calendar: {options.event_window!r}.") from exc
        event = event.within(recent)
        if event.start is not None and event.end is not None and not event.start < event.end:
            raise UsageError("event_window and event_time_range have no time in common: give one of them.")
    ingested = DatedRange()
    if options.ingestion_time_range is not None:
        ingested = read_range(options.ingestion_time_range, now=now, name="ingestion_time_range")
    return TimeLimits(event, ingested)


def at_moment(options: RetrievalOptions, as_of: datetime | None = None) -> RetrievalOptions:
    """The options with every time that is relative to the moment of the search made absolute.

    A search whose times move with the clock asks for something else every time, so that no earlier reply may answer it.

    Args:
        options: As given.
        as_of: The moment of the search; None: the present.

    Raises:
        UsageError: As `time_limits`.
    """
    if options.event_window is None and options.event_time_range is None and options.ingestion_time_range is None:
        return options
    limits = time_limits(options, as_of)
    return replace(
        options,
        event_window=None,
        event_time_range=_pair(limits.event),
        ingestion_time_range=_pair(limits.ingested),
        use_cache=options.use_cache and (as_of is not None or not _moves(options)),
    )


def _pair(limits: DatedRange) -> MomentRange | None:
    return (limits.start, limits.end) if limits else None


def _moves(options: RetrievalOptions) -> bool:
    if options.event_window is not None:
        return True
    given = [*(options.event_time_range or ()), *(options.ingestion_time_range or ())]
    return any(isinstance(one, str) and _relative(one) for one in given)


def _relative(text: str) -> bool:
    # Read at two different moments, what is absolute stays the same.
    return _written(text.strip(), datetime(2000, 1, 1, tzinfo=UTC)) != _written(text.strip(), datetime.now(UTC))
