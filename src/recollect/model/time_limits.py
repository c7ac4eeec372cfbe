"""The times that a search is confined to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from recollect.errors import UsageError
from recollect.model.time import DatedRange, is_relative, read_duration, read_range

if TYPE_CHECKING:
    from recollect.model.search_options import RetrievalOptions
    from recollect.model.time import MomentRange

#: Any time.
EVER = DatedRange()


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """What the times of a document must be for a search to find it.

    Attributes:
        event: Its event time, or a part of its event interval, lies in this range.
        ingested: The version found became known in this range.
    """

    event: DatedRange = EVER
    ingested: DatedRange = EVER

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
    event = EVER
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
    ingested = EVER
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
    return any(isinstance(one, str) and is_relative(one) for one in given)
