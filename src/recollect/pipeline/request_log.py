"""Records of requests to providers on their way into the store: in batches, off the path of whoever asked."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from recollect.errors import RecollectError
from recollect.model.asking import asking_tenant
from recollect.model.requests import LoggedRequest
from recollect.pipeline.flushing import FlushThread

if TYPE_CHECKING:
    from recollect.providers.requesting import RequestRecord
    from recollect.store.request_log import RequestLogRepository

_log = logging.getLogger(__name__)

#: After so many seconds what was recorded is in the store.
FLUSH_SECONDS = 2.0

#: Records that wait at most, while the store cannot be reached; the oldest go first.
MOST_WAITING = 10_000


class RequestLog:
    """A `Recorder` that stores what it is told, for the tenant on whose behalf it was asked. Safe between threads.

    Nothing is written, and no thread runs, before the first record. What cannot be stored is logged and lost: a log is
    no reason to fail or delay a search.

    Args:
        repository: Gives where to store it, once there is something.
        flush_seconds: How long a record may wait.
    """

    def __init__(self, repository: Callable[[], RequestLogRepository], *, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._repository = repository
        self._waiting: deque[tuple[int, LoggedRequest]] = deque(maxlen=MOST_WAITING)
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._thread = FlushThread(self.flush, name="recollect-request-log", every_seconds=flush_seconds)

    def __call__(self, record: RequestRecord) -> None:
        """Take a record; returns at once."""
        entry = asking_tenant(), LoggedRequest(at=datetime.now(UTC), **asdict(record))
        with self._lock:
            self._waiting.append(entry)
        self._thread.run()

    def flush(self) -> None:
        """Store what waits."""
        with self._writing:
            with self._lock:
                waiting = sorted(self._waiting, key=lambda entry: entry[0])
                self._waiting.clear()
            for tenant_id, entries in groupby(waiting, key=lambda entry: entry[0]):
                # In a context of its own: what is stored here is not what the caller asks for.
                contextvars.copy_context().run(self._store, tenant_id, [request for _, request in entries])

    def close(self) -> None:
        """Store what waits and end the thread; another record starts it again."""
        self._thread.close()

    def _store(self, tenant_id: int, requests: list[LoggedRequest]) -> None:
        from recollect.model import Scope

        try:
            self._repository().append(Scope(tenant_id=tenant_id), requests)
        except RecollectError as exc:
            _log.warning("%d requests to providers are not in the log of requests: %s", len(requests), exc)
