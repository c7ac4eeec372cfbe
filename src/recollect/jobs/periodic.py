"""What a worker does every so often, beside the jobs that somebody asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Of what is done every so often; a worker that takes jobs of named queues does it where this is one of them.
QUEUE = "upkeep"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """Something that one of all workers does, at the times of a schedule.

    What fails is logged, and done again at the next time.

    Attributes:
        name: In the queue and in logs.
        cron: When, as in ``*/10 * * * *`` (minute, hour, day, month, weekday; UTC).
        run: Does it; what it returns is logged.
    """

    name: str
    cron: str
    run: Callable[[], object]
