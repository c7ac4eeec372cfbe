"""Following a job to its end, and running it where nobody else does."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.interruption import Interrupted, check, stoppable
from recollect.jobs.progress import Ending, RunInterruption
from recollect.jobs.retrying import RetryPolicy
from recollect.jobs.running import JobRunner
from recollect.jobs.tasks import named
from recollect.store.job_queue import Heartbeats, JobQueue

if TYPE_CHECKING:
    from recollect.config.jobs import JobsConfig
    from recollect.model import Scope
    from recollect.model.job import Job, JobStage
    from recollect.pipeline.assembly import Assembly
    from recollect.pipeline.standpoint import Standpoint

#: Whoever waits for a job of another process looks so often.
LOOK_SECONDS = 0.25

# The jobs of workers that died are looked for so often while somebody waits.
_RECOVER_SECONDS = 2.0

_CONNECTIONS = 4

# A view has the group of methods that ends here: neither module can import the other.
_VIEW_OF = "recollect.pipeline.job_tasks:view_of"


def followed(at: Standpoint, job_id: int, *, timeout_seconds: float | None) -> Iterator[Job]:
    """A job as it is, and whenever it has come further, until it has ended; run here where nobody else does.

    Whoever stops following leaves a job that runs here for others, or for the next one who follows it.
    """
    scope, deadline = at.present(), None if timeout_seconds is None else time.monotonic() + timeout_seconds
    seen: Job | None = None
    with ExitStack() as held:
        here: _Here | None = None
        while True:
            job = at.store.jobs.get(scope, job_id)
            if job != seen:
                seen = job
                yield job
            if job.ended or (deadline is not None and time.monotonic() >= deadline):
                return
            if here is None:
                here = held.enter_context(_Here(at))
            # Also one that runs: its worker may be gone, and the queue have it again.
            if here.claims(job, scope):
                yield from here.run(job, scope, deadline)
                continue
            here.recover()
            check()
            time.sleep(LOOK_SECONDS)


def policy_of(settings: JobsConfig) -> RetryPolicy:
    """How often a job is tried, as configured."""
    return RetryPolicy(max_attempts=settings.max_attempts, backoff_seconds=settings.backoff_seconds)


def heartbeats_of(settings: JobsConfig) -> Heartbeats:
    """How a worker shows that it is alive, as configured."""
    return Heartbeats(every_seconds=settings.heartbeat_seconds, stalled_seconds=settings.stalled_seconds)


def runner_of(assembly: Assembly, *, together: int = 0) -> JobRunner:
    """What runs the jobs of a store; with one that is taken up to so many that are alike."""
    policy = policy_of(assembly.config.jobs)
    return JobRunner(assembly.store.jobs, partial(named(_VIEW_OF), assembly), policy, together=together)


class _Here:
    """This process as a worker for single jobs."""

    def __init__(self, at: Standpoint) -> None:
        self._runner = runner_of(at.assembly)
        self._jobs = at.store.jobs
        self._database = at.store.database.separate(max_connections=_CONNECTIONS)
        self._queue = JobQueue(self._database, heartbeats_of(at.config.jobs))
        self._presence = self._queue.presence()
        self._looked_at = 0.0

    def __enter__(self) -> _Here:
        try:
            self._presence.open()
        except BaseException:
            self._database.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._presence.close()
        self._database.close()

    def recover(self) -> None:
        if time.monotonic() - self._looked_at >= _RECOVER_SECONDS:
            self._looked_at = time.monotonic()
            self._queue.recover()

    def claims(self, job: Job, scope: Scope) -> bool:
        self._number = self._jobs.queue_number(scope, job.job_id)
        return self._number is not None and self._queue.claim(self._number, worker_id=self._presence.worker_id)

    def run(self, job: Job, scope: Scope, deadline: float | None) -> Iterator[Job]:
        assert self._number is not None, "it was claimed"
        told: queue.SimpleQueue[tuple[JobStage, ...] | BaseException | None] = queue.SimpleQueue()
        interruption = RunInterruption()
        thread = threading.Thread(
            target=self._run, args=(scope.tenant_id, job.job_id, self._number, interruption, told), name="recollect-job"
        )
        thread.start()
        try:
            with stoppable(partial(interruption.end, Ending.STOPPING)):
                while True:
                    try:
                        event = told.get(timeout=LOOK_SECONDS)
                    except queue.Empty:
                        check()
                        # A task that says nothing for a while is told too, at its next statement.
                        if self._jobs.get(scope, job.job_id).cancel_requested:
                            interruption.end(Ending.CANCELLED)
                        if deadline is not None and time.monotonic() >= deadline:
                            return
                        continue
                    if event is None:
                        return
                    if isinstance(event, BaseException):
                        raise event
                    yield replace(job, status="running", stages=event)
        finally:
            interruption.end(Ending.STOPPING)
            thread.join()

    def _run(
        self, tenant_id: int, job_id: int, number: int, interruption: RunInterruption, told: queue.SimpleQueue[Any]
    ) -> None:
        def tell(stages: Sequence[JobStage]) -> None:
            told.put(tuple(stages))

        try:
            outcome = self._runner.run(tenant_id, job_id, queue_id=number, interruption=interruption, on_progress=tell)
            if outcome.put_off:
                self._queue.put_off(number, worker_id=self._presence.worker_id, due_at=outcome.due_at)
            else:
                self._queue.finish(number, worker_id=self._presence.worker_id)
            told.put(None)
        except (Exception, Interrupted) as exc:  # noqa: BLE001 - raised by whoever waits
            told.put(exc)
