"""The clean-up every so many hours, by whichever process is there."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from recollect.errors import StoreError, TenantSuspendedError
from recollect.model import Scope

if TYPE_CHECKING:
    from recollect.config import TemporalConfig
    from recollect.model.history import CleanupReport
    from recollect.store.store import Store

logger = logging.getLogger(__name__)

#: A process that lives shorter than this leaves the clean-up to others.
FIRST_LOOK_SECONDS = 60.0

#: How often a process looks whether the clean-up is due, at most.
LOOK_SECONDS = 600.0

# A clean-up under way ends with the batch that it is at.
_CLOSE_SECONDS = 10.0

_TASK = "cleanup"


def clean_up(
    store: Store, settings: TemporalConfig, scope: Scope, *, keep_previous_days: int | None = None
) -> CleanupReport:
    """Close what of a tenant has expired, remove its expired sessions and previous vectors, and keep partitions.

    Args:
        store: Open.
        settings: How long partitions are, and are kept.
        scope: Whose documents and sessions; partitions hold the records of all tenants.
        keep_previous_days: For how many days the vectors of previous embedding models are kept; None: for ever.
    """
    from recollect.store.embedding_cache import EmbeddingCacheRepository

    # First, because nothing in them needs to be closed any more.
    sessions = store.document_sessions.end_expired(scope)
    expired = store.expiry.close_all(scope)
    store.files.delete_expired(scope)
    store.collection_notes.expire(scope, store.writer.close)
    # Two who erased the same text from different collections at once may each have left it to the other.
    EmbeddingCacheRepository(store.database, scope).drop_unowned()
    indexing = settings.indexing
    kept = (
        (store.audit, indexing.partition_retention_days),
        (store.requests, indexing.request_retention_days),
        (store.access_log, indexing.access_retention_days),
    )
    dropped, *_ = [log.maintain(scope, partitions=indexing.time_partitions, retention_days=days) for log, days in kept]
    store.access_log.forget_questions(scope, retention_days=indexing.question_retention_days)
    store.activity.maintain(scope)
    if keep_previous_days is not None:
        store.spaces.drop_previous(scope, days=keep_previous_days)
    store.limits.forget(scope)
    store.idempotency.forget(scope)
    store.logins.forget(scope)
    if settings.scrub_after_erased and store.scrubber.due() >= settings.scrub_after_erased:
        store.scrubber.scrub(scope, actor="cleanup")
    from recollect.model.history import CleanupReport

    return CleanupReport(expired=expired, partitions_dropped=dropped, sessions_ended=sessions)


class Upkeep:
    """Cleans up every so many hours, in a thread of its own; several processes share the work.

    When a tenant was cleaned up last is kept in the store, so it makes no difference how many processes there are, or
    how often they start. What fails is tried again at the next look.

    Args:
        store: Open; `close` comes before its own.
        settings: What to do, and how often.
        keep_previous_days: For how many days the vectors of previous embedding models are kept; None: for ever.
        first_look_seconds: Seconds until the first look.
        look_seconds: Seconds between two looks at most.
    """

    def __init__(
        self,
        store: Store,
        settings: TemporalConfig,
        *,
        keep_previous_days: int | None = None,
        first_look_seconds: float = FIRST_LOOK_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._store = store
        self._settings = settings
        self._keep_previous_days = keep_previous_days
        self._first_look_seconds = first_look_seconds
        self._interval_seconds = settings.cleanup_interval_hours * 3600
        self._look_seconds = min(look_seconds, self._interval_seconds)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look; does nothing where the interval is 0."""
        if self._interval_seconds and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recollect-upkeep", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread, after the batch that it is at; idempotent."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def look(self) -> int:
        """Clean up for the tenants whose time has come; returns how many documents expired."""
        from recollect.store.job_queue import every_tenant

        expired = 0
        for scope in every_tenant(self._store.database):
            if self._closing.is_set():
                break
            # It may have been suspended since it was listed.
            with suppress(TenantSuspendedError):
                if self._store.upkeep.claim(scope, _TASK, every_seconds=self._interval_seconds):
                    expired += self._clean_up(scope).expired
        return expired

    def _clean_up(self, scope: Scope) -> CleanupReport:
        return clean_up(self._store, self._settings, scope, keep_previous_days=self._keep_previous_days)

    def _is_served(self) -> bool:
        """Whether a worker does all this (`recollect.pipeline.working`)."""
        from recollect.store.job_queue import JobQueue

        return JobQueue(self._store.database).is_served()

    def _run(self) -> None:
        wait = self._first_look_seconds
        while not self._closing.wait(wait):
            wait = self._look_seconds
            try:
                expired = 0 if self._is_served() else self.look()
            except StoreError as exc:
                logger.info("The periodic clean-up failed and is tried again later: %s", exc)
                continue
            except Exception:  # nobody waits for this thread: without a word it would just be gone
                logger.warning("The periodic clean-up failed, and stops.", exc_info=True)
                return
            if expired:
                logger.info("The periodic clean-up closed %d documents that had expired.", expired)
