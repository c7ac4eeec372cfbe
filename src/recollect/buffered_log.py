"""A log that is stored in batches, off the path of whoever adds to it."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import groupby, islice
from operator import itemgetter
from typing import Generic, TypeVar

from recollect.errors import RecollectError, StoreError
from recollect.interruption import carried_through
from recollect.model import Scope

E = TypeVar("E")

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 10.0


class BufferedLog(Generic[E]):
    """Collects entries of tenants, and stores them every so many seconds. Safe between threads.

    Its thread starts with the first entry. Entries that cannot be stored are lost, unless the log keeps them; either is
    logged.

    Args:
        append: Stores entries of a tenant, oldest first, in one transaction.
        name: What the entries are, for instance ``accesses``.
        flush_seconds: How long an entry may wait.
        most_waiting: Entries that wait at most; the oldest are lost first.
        batch: Entries that are stored together at most.
        keeps: Whether entries wait on that the store does not take now, until the log is closed.
        level: Of the program's own log, for entries that are not stored.
    """

    def __init__(
        self,
        append: Callable[[Scope, list[E]], None],
        *,
        name: str,
        flush_seconds: float = 2.0,
        most_waiting: int = 100_000,
        batch: int = 1_000,
        keeps: bool = False,
        level: int = logging.WARNING,
    ) -> None:
        self._append = append
        self._name = name
        self._flush_seconds = flush_seconds
        self._most_waiting = most_waiting
        self._batch = batch
        self._keeps = keeps
        self._level = level
        self._waiting: deque[tuple[int, E]] = deque()
        # Entries are counted as they come: how many came, are stored, and could not be stored at the last try.
        self._added = self._stored = self._failed_to = 0
        self._failed: StoreError | None = None
        self._lost = 0
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._turn = threading.Condition()
        self._storing = False
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def add(self, tenant_id: int, *entries: E) -> None:
        """Take entries; returns at once."""
        with self._lock:
            self._waiting.extend((tenant_id, entry) for entry in entries)
            self._added += len(entries)
            while len(self._waiting) > self._most_waiting:
                self._waiting.popleft()
                self._lost += 1
            if self._thread is None:
                # An event of its own: a thread that did not end in time must not go on beside this one.
                self._closing = threading.Event()
                name = f"recollect-{self._name}"
                self._thread = threading.Thread(target=self._run, args=(self._closing,), name=name, daemon=True)
                self._thread.start()

    @property
    def waiting(self) -> int:
        """How many entries are not stored yet."""
        with self._lock:
            return len(self._waiting)

    @property
    def is_closing(self) -> bool:
        """Whether nothing is stored any more but what waits now."""
        return self._closing.is_set()

    def flush(self) -> None:
        """Store what waits."""
        failed: StoreError | None = None
        with self._writing:
            with self._lock:
                waiting, upto = sorted(self._waiting, key=itemgetter(0)), self._added
                self._waiting.clear()
                lost, self._lost = self._lost, 0
            if lost:
                _log.error("%d %s are not in their log: more than %d waited.", lost, self._name, self._most_waiting)
            for tenant_id, group in groupby(waiting, key=itemgetter(0)):
                entries = (entry for _, entry in group)
                while batch := list(islice(entries, self._batch)):
                    # In a context of its own: what is stored here is not what the caller asks for.
                    failed = contextvars.copy_context().run(self._store_batch, tenant_id, batch) or failed
            if failed is None:
                self._stored = upto
            else:
                self._failed, self._failed_to = failed, upto

    def store(self) -> None:
        """Store what waits before anybody is told of it. Callers that ask meanwhile share the next transaction.

        Raises:
            StoreError: It cannot be stored now; it waits on.
        """
        with self._lock:
            wanted = self._added
        with self._turn:
            # One stores for all who wait, and those who came meanwhile are the next one's: with a lock alone, whoever
            # is fastest would take it again and again, and the others would wait for what is stored long since.
            self._turn.wait_for(lambda: not self._storing or self._is_settled(wanted))
            if self._is_settled(wanted):
                self._require_stored(wanted)
                return
            self._storing = True
        try:
            self.flush()
        finally:
            with self._turn:
                self._storing = False
                self._turn.notify_all()
        self._require_stored(wanted)

    def close(self) -> None:
        """Store what waits and end the thread; another entry starts it again. Waits ten seconds at most."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._closing.set()
        if thread is not None:
            thread.join(_CLOSE_SECONDS)

    def _is_settled(self, wanted: int) -> bool:
        return max(self._stored, self._failed_to) >= wanted

    def _require_stored(self, wanted: int) -> None:
        if self._stored < wanted and self._failed is not None:
            raise StoreError(f"The log of {self._name} cannot be stored: {self._failed}") from self._failed

    def _run(self, closing: threading.Event) -> None:
        while not closing.wait(self._flush_seconds):
            self.flush()
        self.flush()

    def _store_batch(self, tenant_id: int, entries: list[E]) -> StoreError | None:
        try:
            # Whoever has it stored may give up; what is stored is also others'.
            with carried_through():
                self._append(Scope(tenant_id=tenant_id), entries)
        except RecollectError as exc:
            waits = self._keeps and isinstance(exc, StoreError) and not self.is_closing
            yet = " yet" if waits else ""
            _log.log(self._level, "%d %s are not in their log%s: %s", len(entries), self._name, yet, exc)
            if waits:
                with self._lock:
                    self._waiting.extendleft((tenant_id, entry) for entry in reversed(entries))
            return exc if isinstance(exc, StoreError) else None
        return None
