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
_CLOSE_SECONDS = 10.0


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
        self._flush_seconds = flush_seconds
        self._waiting: deque[tuple[int, Access]] = deque()
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, tenant_id: int, access: Access) -> None:
        """Take an access; returns at once."""
        with self._lock:
            self._waiting.append((tenant_id, access))
            if len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
                _log.error("An access is not in the log of accesses: more than %d wait.", MOST_WAITING)
            if self._thread is None:
                self._closing.clear()
                self._thread = threading.Thread(target=self._run, name="recollect-access-log", daemon=True)
                self._thread.start()

    @property
    def waiting(self) -> int:
        """How many accesses are not stored yet."""
        with self._lock:
            return len(self._waiting)

    def flush(self) -> None:
        """Store what waits. What cannot be stored now waits on."""
        with self._writing:
            with self._lock:
                waiting = sorted(self._waiting, key=lambda entry: entry[0])
                self._waiting.clear()
            for tenant_id, entries in groupby(waiting, key=lambda entry: entry[0]):
                accesses = [access for _, access in entries]
                for start in range(0, len(accesses), _BATCH):
                    # In a context of its own: what is stored here is not what the caller asks for.
                    contextvars.copy_context().run(self._append, tenant_id, accesses[start : start + _BATCH])

    def close(self) -> None:
        """Store what waits and end the thread; another access starts it again."""
        self._closing.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_CLOSE_SECONDS)
        self.flush()

    def _append(self, tenant_id: int, accesses: list[Access]) -> None:
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
            if not self._closing.is_set():
                with self._lock:
                    self._waiting.extendleft((tenant_id, access) for access in reversed(accesses))
        except RecollectError as exc:  # the tenant was erased meanwhile, with all that is known of it
            _log.info("%d accesses are not in the log of accesses: %s", len(accesses), exc)

    def _run(self) -> None:
        while not self._closing.wait(self._flush_seconds):
            self.flush()
