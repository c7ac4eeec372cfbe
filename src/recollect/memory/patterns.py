"""What memory is asked for again and again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect.errors import StoreError, TenantSuspendedError, UsageError
from recollect.forking import renew_in_children
from recollect.model import Scope
from recollect.model.arguments import checked

if TYPE_CHECKING:
    from recollect.store.memory import MemoryRepository, RetrievedEpisode

_LOG = logging.getLogger(__name__)

#: Counts are written down when so many episodes wait, or so many seconds after they were last.
FLUSH_EPISODES = 500
FLUSH_SECONDS = 5.0

#: A store that cannot be written to must not fill this process's memory.
MAX_WAITING = 50_000


@checked
class QueryPatternTracker:
    """Counts how often each episode is found. Safe to share between threads.

    Recording adds one to a counter in this process, whatever the number of episodes; every few seconds, and at `close`,
    what was counted is added to the store, so that it survives restarts and adds up over processes. Neither questions
    nor answers are kept, and the counts of a deleted session go with it.

    Args:
        repository: Where counts are kept.
        clock: Seconds that never go back; for tests.
    """

    def __init__(self, repository: MemoryRepository, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._repository = repository
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[int, dict[int, int]] = {}
        self._count = 0
        self._flushed = clock()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """In the child of a fork: what was counted before is the parent's to write."""
        self._lock = threading.Lock()
        self._waiting = {}
        self._count = 0

    def record(self, scope: Scope, episode_ids: Iterable[int]) -> None:
        """Note that episodes were found, each in constant time."""
        with self._lock:
            waiting = self._waiting.setdefault(scope.tenant_id, {})
            for episode_id in episode_ids:
                if episode_id in waiting:
                    waiting[episode_id] += 1
                elif self._count < MAX_WAITING:
                    waiting[episode_id] = 1
                    self._count += 1
            due = self._count >= FLUSH_EPISODES or self._clock() - self._flushed >= FLUSH_SECONDS
        if due:
            self.flush()

    def flush(self) -> None:
        """Write down what was counted; what cannot be written is kept for the next time."""
        with self._lock:
            taken, self._waiting, self._count = self._waiting, {}, 0
            self._flushed = self._clock()
        for tenant_id, counts in taken.items():
            try:
                self._repository.note_retrievals(Scope(tenant_id=tenant_id), counts, at=datetime.now(UTC))
            except (StoreError, TenantSuspendedError) as exc:
                # A search has its results already: it does not fail because they could not be counted.
                _LOG.info("counts of retrievals are kept for later: %s", exc)
                self._put_back(tenant_id, counts)

    def close(self) -> None:
        """Write down what was counted; idempotent."""
        self.flush()

    def get_consolidation_candidates(
        self, min_retrievals: int = 3, *, scope: Scope | None = None, limit: int = 100
    ) -> Sequence[RetrievedEpisode]:
        """The episodes that were found often enough to be worth keeping as facts, most often first.

        Args:
            min_retrievals: How often at least, over all processes and restarts.
            scope: Whose; None: the default tenant's.
            limit: How many at most.

        Raises:
            UsageError: ``min_retrievals`` or ``limit`` is less than 1.
        """
        if min_retrievals < 1 or limit < 1:
            raise UsageError(f"min_retrievals ({min_retrievals!r}) and limit ({limit!r}) must be at least 1.")
        self.flush()
        return self._repository.frequently_retrieved(scope or Scope(), min_retrievals=min_retrievals, limit=limit)

    def _put_back(self, tenant_id: int, counts: dict[int, int]) -> None:
        with self._lock:
            waiting = self._waiting.setdefault(tenant_id, {})
            for episode_id, count in counts.items():
                if episode_id not in waiting:
                    self._count += 1
                waiting[episode_id] = waiting.get(episode_id, 0) + count
