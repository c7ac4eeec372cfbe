"""Counts of what happens on their way into the store: added up by the minute, off the path of whoever searches."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.model import Scope
from recollect.model.activity import ActivityName, Tally, outcome_of
from recollect.model.asking import asking_tenant
from recollect.pipeline.flushing import FlushThread
from recollect.pipeline.observation import Observer

if TYPE_CHECKING:
    from recollect.model import Answer, SearchReply
    from recollect.store.store import Store

_log = logging.getLogger(__name__)

#: After so many seconds what was counted is in the store.
FLUSH_SECONDS = 5.0

#: Counts that wait at most while the store cannot be reached.
MOST_WAITING = 20_000

#: How often the size of the store is noted.
_SIZE_SECONDS = 3_600.0

_Key = tuple[datetime, str, str]


class ActivityLog(Observer):
    """Counts what a process does for each tenant. Safe between threads; no thread runs before there is something.

    What cannot be stored is logged and lost: a count is no reason to fail or delay a search.

    Args:
        store: Gives the open store, once there is something.
        flush_seconds: How long a count may wait.
    """

    def __init__(self, store: Callable[[], Store], *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._store = store
        self._waiting: dict[tuple[int, _Key], Tally] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._thread = FlushThread(self.flush, name="recollect-activity", every_seconds=flush_seconds)

    def count(self, tenant_id: int, name: ActivityName, label: str, milliseconds: float | None = None) -> None:
        """Count something; returns at once."""
        self._count(tenant_id, [(name, label, milliseconds)])

    def searched(self, reply: SearchReply) -> None:
        """Count a search: what the cache answered, what was found, and the time of its stages."""
        happened: list[tuple[ActivityName, str, float | None]] = [("cache", "hit" if reply.cached else "miss", None)]
        happened.append(("found", outcome_of(reply) or "some", None))
        if not reply.cached:
            happened += [("search", stage, milliseconds) for stage, milliseconds in reply.timings_ms.items()]
        self._count(asking_tenant(), happened)

    def answered(self, answer: Answer) -> None:
        """Count an answer, or its refusal."""
        self.count(asking_tenant(), "answer", "refused" if answer.refused else "answered")

    def flush(self) -> None:
        """Store what waits."""
        with self._writing:
            with self._lock:
                waiting, self._waiting = self._waiting, {}
            by_tenant: dict[int, dict[_Key, Tally]] = {}
            for (tenant_id, key), tally in waiting.items():
                by_tenant.setdefault(tenant_id, {})[key] = tally
            for tenant_id, tallies in by_tenant.items():
                # In a context of its own: what is stored here is not what the caller asks for.
                contextvars.copy_context().run(self._append, Scope(tenant_id=tenant_id), tallies)

    def close(self) -> None:
        """Store what waits and end the thread; another count starts it again."""
        self._thread.close()

    def _count(self, tenant_id: int, happened: list[tuple[ActivityName, str, float | None]]) -> None:
        minute = datetime.now(UTC).replace(second=0, microsecond=0)
        with self._lock:
            for name, label, milliseconds in happened:
                place = tenant_id, (minute, name, label)
                if place not in self._waiting and len(self._waiting) >= MOST_WAITING:
                    continue
                self._waiting.setdefault(place, Tally()).add(milliseconds)
        self._thread.run()

    def _append(self, scope: Scope, tallies: dict[_Key, Tally]) -> None:
        try:
            store = self._store()
            if not self._thread.is_closing and store.upkeep.claim(scope, "sizes", every_seconds=_SIZE_SECONDS):
                minute = datetime.now(UTC).replace(second=0, microsecond=0)
                tallies[minute, "size", "database"] = Tally(1, float(store.activity.database_bytes(scope)))
            store.activity.add(scope, tallies)
        except RecollectError as exc:
            _log.info("%d counts of what happened are lost: %s", len(tallies), exc)
