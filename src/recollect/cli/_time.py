"""The options of a search that concern time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._searching import given_by, taking
from recollect.model.search_options import options_named
from recollect.model.time import read_time

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import RetrievalOptions

_PANEL = "Time"


@dataclass(frozen=True, kw_only=True)
@taking("Time")
class TimeOptions:
    """As of when a command searches, and the times that what it finds must have.

    Times are dates, ISO 8601, ``now``, or how long ago (``7d``); without a zone they are UTC.
    """

    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="What was known at this time: a date, a time (without a zone: UTC), or how long ago, such as 7d.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def moment(self) -> datetime | None:
        """What ``--as-of`` means; None: now.

        Raises:
            UsageError: It is no time.
        """
        return None if self.as_of is None else read_time(self.as_of, name="--as-of")

    def confine(self, options: RetrievalOptions) -> RetrievalOptions:
        """The options of a search with the times that were given.

        Raises:
            UsageError: One of them is no time or no duration, or a range ends before it begins.
        """
        from recollect.model.search_options import time_limits

        times = options_named(given_by(self))
        confined = replace(
            options,
            event_window=times.event_window,
            event_time_range=times.event_time_range,
            ingestion_time_range=times.ingestion_time_range,
        )
        time_limits(confined, self.moment())
        return confined
