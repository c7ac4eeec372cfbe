"""The options of a search that concern time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import RetrievalOptions
    from recollect.model.time import MomentRange

_PANEL = "Time"


@dataclass(frozen=True, kw_only=True)
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
    event_window: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Only events of so long before now or before --as-of, such as 12h, 7d or 3mo.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    event_from: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only events of this time or later.", rich_help_panel=_PANEL)
    ] = None
    event_to: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only events before this time.", rich_help_panel=_PANEL)
    ] = None
    ingested_from: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what became known at this time or later.", rich_help_panel=_PANEL),
    ] = None
    ingested_to: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only what became known before this time.", rich_help_panel=_PANEL),
    ] = None

    def moment(self) -> datetime | None:
        """What ``--as-of`` means; None: now.

        Raises:
            UsageError: It is no time.
        """
        from recollect.model.time import read_time

        return None if self.as_of is None else read_time(self.as_of, name="--as-of")

    def confine(self, options: RetrievalOptions) -> RetrievalOptions:
        """The options of a search with the times that were given.

        Raises:
            UsageError: One of them is no time or no duration, or a range ends before it begins.
        """
        from recollect.model.time_limits import time_limits

        confined = replace(
            options,
            event_window=self.event_window,
            event_time_range=_range(self.event_from, self.event_to),
            ingestion_time_range=_range(self.ingested_from, self.ingested_to),
        )
        time_limits(confined, self.moment())
        return confined


def _range(start: str | None, end: str | None) -> MomentRange | None:
    return None if start is None and end is None else (start, end)
