"""One run of one job: its task is called, and what becomes of it is written down."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.errors import TenantSuspendedError
from recollect.interruption import Interrupted, current
from recollect.jobs.progress import Ending, Progress, RunInterruption
from recollect.jobs.retrying import RetryPolicy, may_succeed, reason_of
from recollect.jobs.tasks import Task, function_of, task_of, together_of
from recollect.model import Scope

if TYPE_CHECKING:
    from recollect.model.job import JobRun, JobStage
    from recollect.store.jobs import JobRepository

logger = logging.getLogger(__name__)

# Jobs of a suspended tenant wait; whether it was resumed is looked up so often.
_SUSPENDED_SECONDS = 300.0

_CANCELLED = "It was cancelled."


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the queue is to do with a job after a run.

    Attributes:
        put_off: Whether it goes on later; otherwise it leaves the queue.
        due_at: When, at the earliest; None: at once.
    """

    put_off: bool = False
    due_at: datetime | None = None


class JobRunner:
    """Runs jobs that the queue has handed out.

    Args:
        jobs: Where what becomes of them is written down.
        view_of: Makes the view that a run's task is given.
        policy: How often a job is tried, and when again.
        together: How many jobs that are alike are run with one at most, where their task can.
    """

    def __init__(
        self, jobs: JobRepository, view_of: Callable[[JobRun], Any], policy: RetryPolicy, *, together: int = 0
    ) -> None:
        self._jobs = jobs
        self._view_of = view_of
        self._policy = policy
        self._together = together

    def run(
        self,
        tenant_id: int,
        job_id: int,
        *,
        queue_id: int,
        interruption: RunInterruption | None = None,
        on_progress: Callable[[Sequence[JobStage]], None] | None = None,
    ) -> Outcome:
        """Run a job that the queue has handed out.

        Args:
            tenant_id: Whose.
            job_id: Which.
            queue_id: The queue's number for it; a job that has another one by now is not this worker's.
            interruption: Ends the run from another thread.
            on_progress: Told the stages.

        Raises:
            StoreError: What became of it cannot be written down.
        """
        scope = Scope(tenant_id=tenant_id)
        try:
            run = self._jobs.begin(scope, job_id, queue_id=queue_id)
        except TenantSuspendedError:
            return Outcome(put_off=True, due_at=_in(_SUSPENDED_SECONDS))
        if run is None:
            return Outcome()
        one = _Run(self._jobs, scope, run, self._policy, interruption or RunInterruption())
        return one.of(self._view_of, on_progress, together=self._together)


class _Run:
    def __init__(
        self, jobs: JobRepository, scope: Scope, run: JobRun, policy: RetryPolicy, interruption: RunInterruption
    ) -> None:
        self._jobs, self._scope, self._run, self._policy = jobs, scope, run, policy
        self._interruption = interruption
        self._progress = Progress()

    def of(
        self,
        view_of: Callable[[JobRun], Any],
        on_progress: Callable[[Sequence[JobStage]], None] | None,
        *,
        together: int,
    ) -> Outcome:
        run = self._run
        if run.cancel_requested:
            return self._ended("cancelled", _CANCELLED)
        if run.deaths > self._policy.max_deaths:
            return self._ended("failed", f"{run.deaths} workers died while they ran it.")
        try:
            task = task_of(run.kind)
            self._progress = Progress(
                task.stages, write=self._write, interruption=self._interruption, on_progress=on_progress
            )
            context = copy_context()
            context.run(current.set, self._interruption)
            view = view_of(run)
            # Where a worker died with many, fewer are tried at once: which of them it was is soon found.
            limit = together >> (2 * run.deaths)
            several = together_of(task) if limit else None
            alike = [] if several is None else self._begin_alike(task, limit)
            if several is not None and alike:
                return self._with(alike, partial(context.run, partial(several, view)), task)
            result = context.run(function_of(task), view, run.arguments, self._progress)
        except Interrupted:
            return self._interrupted()
        except Exception as exc:  # noqa: BLE001 - whatever a task raises is the job's end, or its next attempt
            return self._failed(exc)
        return self._succeeded(result)

    def _begin_alike(self, task: Task, limit: int) -> list[_Run]:
        found = self._jobs.begin_alike(self._scope, self._run, differs=task.differs, limit=limit)
        return [_Run(self._jobs, self._scope, run, self._policy, self._interruption) for run in found]

    def _with(self, alike: Sequence[_Run], several: Callable[..., Sequence[Any]], task: Task) -> Outcome:
        """The job and others at once; each ends by itself, and those that have not ended wait for their turn again."""
        runs = [self, *alike]
        left = list(alike)
        try:
            results = several([one._run.arguments for one in runs], self._progress)
            for one, result in zip(alike, results[1:], strict=True):
                one._progress = _complete(task)
                _ = one._failed(result) if isinstance(result, Exception) else one._succeeded(result)
                left.remove(one)
        except Exception as exc:
            # Whose fault it was is seen when each is run alone.
            while left:
                left.pop()._put_off(reason_of(exc), None, counts=True)
            raise
        finally:
            for one in left:
                one._put_off(None, None, counts=False)
            self._jobs.settle_alike(self._scope, [one._run for one in alike])
        if isinstance(results[0], Exception):
            raise results[0]
        self._progress = _complete(task)
        return self._succeeded(results[0])

    def _succeeded(self, result: Any) -> Outcome:  # noqa: ANN401 - what tasks return
        self._jobs.end(self._scope, self._run, status="succeeded", stages=self._progress.stages, result=result)
        return Outcome()

    def _write(self, stages: Sequence[JobStage]) -> Ending | None:
        told = self._jobs.report(self._scope, self._run, stages)
        if told is None:
            return Ending.SUPERSEDED
        return Ending.CANCELLED if told else None

    def _interrupted(self) -> Outcome:
        match self._interruption.ending:
            case Ending.CANCELLED:
                return self._ended("cancelled", _CANCELLED)
            case Ending.SUPERSEDED:
                return Outcome()
            case _:
                return self._put_off(None, None, counts=False)

    def _failed(self, exc: Exception) -> Outcome:
        run, reason = self._run, reason_of(exc)
        logger.info("Job %d (%s) failed: %s", run.job_id, run.kind, reason, exc_info=exc)
        if not may_succeed(exc):
            return self._ended("cancelled", reason)
        if run.attempts >= run.max_attempts:
            return self._ended("failed", reason)
        delay = self._policy.delay_seconds(run.attempts, exc)
        return self._put_off(reason, _in(delay) if delay else None, counts=True)

    def _ended(self, status: Any, reason: str) -> Outcome:  # noqa: ANN401 - a JobStatus
        self._jobs.end(self._scope, self._run, status=status, stages=self._progress.stages, error=reason)
        return Outcome()

    def _put_off(self, reason: str | None, due_at: datetime | None, *, counts: bool) -> Outcome:
        stages = self._progress.stages
        self._jobs.put_off(self._scope, self._run, stages=stages, error=reason, due_at=due_at, counts=counts)
        return Outcome(put_off=True, due_at=due_at)


def _complete(task: Task) -> Progress:
    progress = Progress(task.stages)
    for stage in task.stages:
        progress(stage, 1, 1)
    return progress


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
