"""Counts of what happens on their way into the store: added up by the minute, off the path of whoever searches."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from recollect.buffered_log import BufferedLog
from recollect.model.activity import ActivityName, Tally, outcome_of
from recollect.model.asking import asking_tenant
from recollect.pipeline.observation import Observer

if TYPE_CHECKING:
    from recollect.model import Answer, Scope, SearchReply
    from recollect.store.store import Store

#: After so many seconds what was counted is in the store.
FLUSH_SECONDS = 5.0

#: How often the size of the store is noted.
_SIZE_SECONDS = 3_600.0

#: When (the minute), what, its label, and the milliseconds that it took.
_Event: TypeAlias = tuple[datetime, ActivityName, str, float | None]


class ActivityLog(Observer):
    """Counts what a process does for each tenant. Safe between threads.

    What cannot be stored is logged and lost: a count is no reason to fail or delay a search.

    Args:
        store: Gives the open store, once there is something.
        flush_seconds: How long a count may wait.
    """

    def __init__(self, store: Callable[[], Store], *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._store = store
        self._log: BufferedLog[_Event] = BufferedLog(
            self._append, name="events", flush_seconds=flush_seconds, batch=100_000, level=logging.INFO
        )

    def count(self, tenant_id: int, name: ActivityName, label: str, milliseconds: float | None = None) -> None:
        """Count something; returns at once."""
        self._log.add(tenant_id, (_minute(), name, label, milliseconds))

    def searched(self, reply: SearchReply) -> None:
        """Count a search: what the cache answered, what was found, and the time of its stages."""
        at, timings = _minute(), {} if reply.cached else reply.timings_ms
        self._log.add(
            asking_tenant(),
            (at, "cache", "hit" if reply.cached else "miss", None),
            (at, "found", outcome_of(reply) or "some", None),
            *((at, "search", stage, milliseconds) for stage, milliseconds in timings.items()),
        )

    def answered(self, answer: Answer) -> None:
        """Count an answer, or its refusal."""
        self.count(asking_tenant(), "answer", "refused" if answer.refused else "answered")

    def flush(self) -> None:
        """Store what waits."""
        self._log.flush()

    def close(self) -> None:
        """Store what waits and end the thread; another count starts it again."""
        self._log.close()

    def _append(self, scope: Scope, events: list[_Event]) -> None:
        tallies: defaultdict[tuple[datetime, str, str], Tally] = defaultdict(Tally)
        for at, name, label, milliseconds in events:
            tallies[at, name, label].add(milliseconds)
        store = self._store()
        if not self._log.is_closing and store.upkeep.claim(scope, "sizes", every_seconds=_SIZE_SECONDS):
            tallies[_minute(), "size", "database"] = Tally(1, float(store.activity.database_bytes(scope)))
        store.activity.add(scope, tallies)


def _minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)
