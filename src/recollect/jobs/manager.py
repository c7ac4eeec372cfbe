"""Procrastinate's manager of jobs, for a queue whose jobs are described elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from recollect.errors import StoreError

if TYPE_CHECKING:
    from recollect.jobs.running import Outcome
    from recollect.store.job_connector import JobConnector
    from recollect.store.job_queue import JobQueue

logger = logging.getLogger(__name__)

#: The queue of jobs that go on until somebody ends them, as those that watch folders.
WATCH = "watch"

# A job that waits for another one of its source is looked for so often while jobs run here.
_LOOK_SECONDS = 0.5

# While PostgreSQL is away, periodic jobs are put into the queue again after this pause.
_AGAIN_SECONDS = 1.0


class Manager(JobManager):
    """Says what becomes of a job by its run's outcome, and who is alive by our own heartbeats.

    Args:
        connector: Reaches the queue.
        queue: The same queue, for what procrastinate leaves to its users.
        stopping: Whether the worker is to end.
        concurrency: How many jobs that come to an end run at a time.
        watches: Whether jobs that go on until somebody ends them are run beside these.

    Attributes:
        outcomes: Of runs that have ended, by the queue's number of their job.
        lost: Why the worker can go on no longer; None: it can.
        on_lost: Called then.
        on_reached: Called with None after each look into the queue, and with the error where PostgreSQL is away.
        presence: The worker's heart.
    """

    def __init__(
        self,
        connector: JobConnector,
        queue: JobQueue,
        *,
        stopping: Callable[[], bool],
        concurrency: int,
        watches: bool,
    ) -> None:
        super().__init__(connector)
        self._connector, self._queue, self._stopping = connector, queue, stopping
        self._concurrency, self._watches = concurrency, watches
        self.presence = queue.presence(serves=True)
        self.outcomes: dict[int, Outcome] = {}
        self.lost: StoreError | None = None
        self.on_lost: Callable[[], None] = lambda: None
        self.on_reached: Callable[[StoreError | None], None] = lambda _: None
        self._taken = 0
        self._freed = asyncio.Event()

    def is_full(self) -> bool:
        """Whether as many jobs run as there are places, so that others wait for one of them to end."""
        return self._taken >= self._concurrency

    async def register_worker(self) -> int:
        """Register the worker, and let its heart beat."""
        return await self._connector.run(self.presence.open)

    async def unregister_worker(self, worker_id: int) -> None:  # noqa: ARG002 - the one whose heart it is
        """Let the worker's heart stop; what it still holds is run by others."""
        await self._connector.run(self.presence.close)

    async def prune_stalled_workers(self, seconds_since_heartbeat: float) -> list[int]:  # noqa: ARG002 - ours are used
        """Nothing: `JobQueue.recover` does."""
        return []

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """The next job.

        While jobs run here, it waits for one of them to end before it says that there is none: that may let another
        job of the same source begin, which procrastinate would learn at its next look.
        """
        while not self._stopping() and self.lost is None:
            self._freed.clear()
            job = await self._next(None if queues is None else list(queues), worker_id)
            if job is not None and job.queue != WATCH:
                self._taken += 1
            if job is not None or not self._taken:
                return job
            with suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _LOOK_SECONDS)
        # What a worker that ends has put back is not for itself.
        return None

    async def _next(self, named: list[str] | None, worker_id: int) -> Job | None:
        without = [] if self._watches else [WATCH]
        if self.is_full():
            # What is watched needs none of the places of jobs that come to an end.
            if not self._watches or (named is not None and WATCH not in named):
                return None
            named = [WATCH]
        row = await self._connector.run(partial(self._queue.fetch, named, worker_id=worker_id, without=without))
        self.on_reached(None)
        return None if row is None else Job.from_row(row)

    async def defer_periodic_job(self, job: Job, periodic_id: str, defer_timestamp: int) -> int | None:
        """Put a periodic job into the queue; while PostgreSQL is away, try again.

        Procrastinate would stop the worker, and the job would be left out.
        """
        while True:
            try:
                return await super().defer_periodic_job(job, periodic_id, defer_timestamp)
            except StoreError as exc:
                self.on_reached(exc)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def list_jobs_to_abort_async(self, queue: str | None = None) -> Iterable[int]:
        """The jobs to stop; none while PostgreSQL is away."""
        try:
            return await super().list_jobs_to_abort_async(queue)
        except StoreError as exc:
            self.on_reached(exc)
            return []

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: ARG002 - the outcome says
        """Take a job out of the queue, or put it back for later, as its run's outcome says."""
        assert job.id is not None, "it comes from the queue"
        outcome = self.outcomes.pop(job.id, None)
        try:
            if outcome is None:
                raise StoreError(f"What became of job {job.task_kwargs} could not be written down.")
            worker_id = self.presence.worker_id
            call = (
                partial(self._queue.put_off, job.id, worker_id=worker_id, due_at=outcome.due_at)
                if outcome.put_off
                else partial(self._queue.finish, job.id, worker_id=worker_id)
            )
            await self._connector.run(call)
        except StoreError as exc:
            self.lost = exc
            self.on_lost()
        finally:
            # Only now may another job of its source begin.
            self._taken -= job.queue != WATCH
            self._freed.set()

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,  # noqa: ARG002 - the outcome says
        priority: int | None = None,  # noqa: ARG002 - the outcome says
        queue: str | None = None,  # noqa: ARG002 - the outcome says
        lock: str | None = None,  # noqa: ARG002 - the outcome says
    ) -> None:
        """As `finish_job`: whether a job is tried again is not procrastinate's to say."""
        await self.finish_job(job, Status.FAILED, delete_job=False)
