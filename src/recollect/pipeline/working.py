"""A worker on a pipeline's store, and what it does every so often."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from recollect.errors import RecollectError, TenantSuspendedError
from recollect.ingest.documents import recount_is_due
from recollect.jobs.worker import PeriodicTask, Worker, WorkerOptions
from recollect.pipeline.jobs import Jobs, heartbeats_of, runner_of
from recollect.pipeline.refreshing import keep_watched
from recollect.pipeline.standpoint import Standpoint
from recollect.pipeline.upkeep import Upkeep
from recollect.retrieval.health import check_recall
from recollect.retrieval.sql_candidates import SqlCandidates
from recollect.store.job_queue import every_tenant

if TYPE_CHECKING:
    from recollect.model import Scope
    from recollect.pipeline.assembly import Assembly

logger = logging.getLogger(__name__)

# Pages of one host that are fetched and stored with one that is taken: as many as a batch or two hold.
_TOGETHER = 127


def worker_of(
    assembly: Assembly,
    *,
    concurrency: int = 1,
    queues: Sequence[str] | None = None,
    ends: Literal["never", "once", "empty"] = "never",
) -> Worker:
    """A worker for the jobs of every tenant, and for what is done every so often.

    Args:
        assembly: The parts of the pipeline whose store it works on.
        concurrency: How many jobs it runs at a time.
        queues: Which jobs it takes; None: all.
        ends: By itself ``never``, ``once`` nothing is due any more, or when the queue is ``empty``.
    """
    settings = assembly.config.jobs
    options = WorkerOptions(
        concurrency=concurrency,
        queues=queues,
        ends=ends,
        poll_seconds=settings.poll_seconds,
        stop_seconds=settings.stop_seconds,
        heartbeats=heartbeats_of(settings),
    )
    runner = runner_of(assembly, together=_TOGETHER)
    return Worker(
        assembly.store.database,
        runner,
        options,
        periodic=periodic_tasks(assembly),
        prepare=assembly.embedders.load_ahead,
    )


def periodic_tasks(assembly: Assembly) -> list[PeriodicTask]:
    """What a worker does every so often, for every tenant that is active."""
    # Every so many minutes, so many after the full hour.
    tasks: list[tuple[str, int, int, Callable[[Assembly, Scope], int]]] = [
        ("statistics", 10, 0, refresh_statistics),
        ("indexes", 15, 5, build_indexes),
        ("recall", 60, 25, probe_recall),
        ("jobs", 60, 15, forget_jobs),
        ("sources", 1, 0, refresh_sources),
    ]
    found = [
        PeriodicTask(
            name=name,
            every_seconds=every * 60,
            after_seconds=after * 60,
            run=partial(_for_every_tenant, assembly, function),
        )
        for name, every, after, function in tasks
    ]
    if assembly.config.temporal.cleanup_interval_hours:
        # Expiry, sessions, the partitions and retention of audit and requests, and the scrub.
        found.append(PeriodicTask(name="cleanup", every_seconds=600, run=partial(_clean_up, assembly)))
    return found


def _for_every_tenant(assembly: Assembly, function: Callable[[Assembly, Scope], int]) -> int:
    count = 0
    for scope in every_tenant(assembly.store.database):
        # It may have been suspended since it was listed.
        with suppress(TenantSuspendedError):
            count += function(assembly, scope)
    return count


def _clean_up(assembly: Assembly) -> int:
    """What is due of the clean-up that processes do among themselves where no worker runs."""
    config = assembly.config
    return Upkeep(assembly.store, config.temporal, keep_previous_days=config.embedding.keep_previous_days).look()


def refresh_statistics(assembly: Assembly, scope: Scope) -> int:
    """Count the statistics of words anew where enough has changed to matter; returns in how many collections."""
    collections, count = assembly.store.collections, 0
    for place in collections.list_all(scope):
        if recount_is_due(place):
            collections.refresh_term_stats(scope, place)
            count += 1
    return count


def build_indexes(assembly: Assembly, scope: Scope) -> int:
    """Build the approximate indexes of collections that have grown large enough; returns how many."""
    store, count = assembly.store, 0
    if not store.database.has_sessions():
        return 0
    for place in store.collections.list_all(scope):
        for indexer in (store.dense_indexer, store.history_indexer):
            if indexer.due(scope, place.name):
                indexer.build(scope, place.name)
                count += 1
    return count


def probe_recall(assembly: Assembly, scope: Scope) -> int:
    """Measure approximate searches of collections that nobody has searched lately; returns how many were compared."""
    settings, store, count = assembly.config.retrieval, assembly.store, 0
    if not settings.probe_rate:
        return 0
    source = SqlCandidates(store.search, lexical_budget=settings.lexical_budget)
    for place in store.collections.list_all(scope):
        try:
            embedder = partial(assembly.embedder_for, place)
            count += check_recall(store, source, scope, place, embedder, limit=settings.candidates)
        except RecollectError as exc:
            # The model of one collection may not be there; the others are measured all the same.
            logger.info("How much searches of %r find could not be measured: %s", place.name, exc)
    return count


def forget_jobs(assembly: Assembly, scope: Scope) -> int:
    """Forget jobs that ended long ago; returns how many."""
    days = assembly.config.jobs.keep_days
    return 0 if days is None else assembly.store.jobs.forget(scope, days=days)


def refresh_sources(assembly: Assembly, scope: Scope) -> int:
    """Ask for a refresh of the sources whose time has come, and for those to be watched; returns of how many."""
    jobs, count = assembly.store.jobs, 0
    for one in assembly.store.sources.records(scope, due=True):
        asked = jobs.page(scope, kind="refresh_source", collection=one.collection, source=one.name, limit=1)
        # One that ended before its source was looked at is not asked for again with every look.
        again_at = datetime.now(UTC) - timedelta(seconds=one.interval_seconds or 0)
        if not asked or (asked[0].ended and asked[0].created_at < again_at):
            at = Standpoint(assembly=assembly, tenant=scope.tenant_id, collections=(one.collection,))
            Jobs(at).refresh(one.name)
            count += 1
    for one in assembly.store.sources.records(scope):
        if one.settings.get("watch"):
            at = Standpoint(assembly=assembly, tenant=scope.tenant_id, collections=(one.collection,))
            # The job may have been cancelled, or have ended with its folder's collection.
            count += keep_watched(at, one)
    return count
