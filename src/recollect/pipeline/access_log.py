"""What was shown to whom, on its way into the store: in batches, off the path of whoever asked."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, StoreError
from recollect.model import Scope
from recollect.pipeline.flushing import FlushThread

if TYPE_CHECKING:
    from recollect.model.shown import Access
    from recollect.store.access_log import QuestionPolicy
    from recollect.store.store import Store

_log = logging.getLogger(__name__)

#: After so many seconds what was shown is in the store.
FLUSH_SECONDS = 2.0

#: Accesses that wait at most, while the store cannot be reached; the oldest go first, and the log says how many.
MOST_WAITING = 100_000

_BATCH = 1_000


class AccessLog:
    """Stores what it is told was shown. Safe between threads; no thread runs before there is something.

    Args:
        store: Gives the open store, once there is something.
        questions: Whether questions are kept, or a hash of each, or neither.
        flush_seconds: How long an access may wait.
    """

    def __init__(
        self, store: Callable[[], Store], *, questions: QuestionPolicy, flush_seconds: float = FLUSH_SECONDS
    ) -> None:
        self._store = store
        self._questions = questions
        self._waiting: deque[tuple[int, Access]] = deque()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        # Accesses are counted as they come: how many came, are stored, and could not be stored at the last try.
        self._added = self._stored = self._failed_to = 0
        self._failed: StoreError | None = None
        self._turn = threading.Condition()
        self._storing = False
        self._thread = FlushThread(self.flush, name="recollect-access-log", every_seconds=flush_seconds)

    def add(self, tenant_id: int, access: Access) -> None:
        """Take an access; returns at once."""
        with self._lock:
            self._waiting.append((tenant_id, access))
            self._added += 1
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                _log.error("An access is not in the log of accesses: more than %d wait.", MOST_WAITING)
        self._thread.run()

    @property
    def waiting(self) -> int:
        """How many accesses are not stored yet."""
        with self._lock:
            return len(self._waiting)

    def flush(self) -> None:
        """Store what waits. What cannot be stored now waits on."""
        self._flush()

    def store(self) -> None:
        """Store what waits before anybody is told of it. Those who ask meanwhile share the next transaction.

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
            self._flush()
        finally:
            with self._turn:
                self._storing = False
                self._turn.notify_all()
        self._require_stored(wanted)

    def _is_settled(self, wanted: int) -> bool:
        return max(self._stored, self._failed_to) >= wanted

    def _require_stored(self, wanted: int) -> None:
        if self._stored < wanted and self._failed is not None:
            raise StoreError(f"What was shown cannot be stored: {self._failed}") from self._failed

    def _flush(self) -> None:
        failed: StoreError | None = None
        with self._writing:
            with self._lock:
                waiting, upto = sorted(self._waiting, key=lambda entry: entry[0]), self._added
                self._waiting.clear()
            for tenant_id, entries in groupby(waiting, key=lambda entry: entry[0]):
                accesses = [access for _, access in entries]
                for start in range(0, len(accesses), _BATCH):
                    # In a context of its own: what is stored here is not what the caller asks for.
                    batch = accesses[start : start + _BATCH]
                    failed = contextvars.copy_context().run(self._append, tenant_id, batch) or failed
            if failed is None:
                self._stored = upto
            else:
                self._failed, self._failed_to = failed, upto

    def close(self) -> None:
        """Store what waits and end the thread; another access starts it again."""
        self._thread.close()

    def _append(self, tenant_id: int, accesses: list[Access]) -> StoreError | None:
        from recollect.store.access_log import AccessLogRepository
        from recollect.store.tenants import TenantDirectory

        scope = Scope(tenant_id=tenant_id)
        try:
            # Over a caretaker's connection: the tenant may have been suspended since.
            caretaking = self._store().caretaking
            _, salt = TenantDirectory(caretaking).privacy(scope)
            AccessLogRepository(caretaking).append(scope, accesses, questions=self._questions, salt=salt)
        except StoreError as exc:
            _log.warning("%d accesses are not in the log of accesses yet: %s", len(accesses), exc)
            if not self._thread.is_closing:
                with self._lock:
                    self._waiting.extendleft((tenant_id, access) for access in reversed(accesses))
            return exc
        except RecollectError as exc:  # the tenant was erased meanwhile, with all that is known of it
            _log.info("%d accesses are not in the log of accesses: %s", len(accesses), exc)
        return None
