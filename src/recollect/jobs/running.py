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
from recollect.jobs.progress import Ending, Progress, RunInterruption, written_once_there_is_room
from recollect.jobs.retrying import RetryPolicy, lacks_room, may_succeed, reason_of
from recollect.jobs.tasks import Task, function_of, given_up_of, task_of, together_of
from recollect.jobs.together import Place, Together
from recollect.model import Scope
from recollect.model.begun import job_begun
from recollect.model.job import RunEnd

if TYPE_CHECKING:
    from recollect.model.job import JobRun, JobStage, JobStatus
    from recollect.store.jobs import JobRepository

logger = logging.getLogger(__name__)

# Jobs of a suspended tenant wait; whether it was resumed is looked up so often.
_SUSPENDED_SECONDS = 300.0

_CANCELLED = "It was cancelled."

_WAITS_FOR_ROOM = "It goes on by itself once there is room, and this was no attempt."


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
        place: Place | None = None,
    ) -> Outcome:
        """Run a job that the queue has handed out.

        Args:
            tenant_id: Whose.
            job_id: Which.
            queue_id: The queue's number for it; a job that has another one by now is not this worker's.
            interruption: Ends the run from another thread.
            on_progress: Told the stages.
            place: In the worker, for jobs that are run with it.

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
        return one.of(self._view_of, on_progress, alike=partial(one.together, queue_id, self._together, place))


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
        alike: Callable[[Task], Together | None],
    ) -> Outcome:
        run = self._run
        if run.cancel_requested:
            return self._given_up(view_of)
        if run.deaths > self._policy.max_deaths:
            return self._ended("failed", f"{run.deaths} workers died while they ran it.")
        try:
            task = task_of(run.kind)
            self._progress = Progress(
                task.stages, write=self._write, interruption=self._interruption, on_progress=on_progress
            )
            context = copy_context()
            context.run(current.set, self._interruption)
            context.run(job_begun.set, run.started_at)
            view = view_of(run)
            several = together_of(task)
            together = None if several is None else alike(task)
            if several is not None and together is not None:
                return self._with(together, partial(context.run, several, view, together))
            result = context.run(function_of(task), view, run.arguments, self._progress)
        except Interrupted:
            return self._interrupted()
        except Exception as exc:  # noqa: BLE001 - whatever a task raises is the job's end, or its next attempt
            return self._failed(exc)
        return self._succeeded(result)

    def _given_up(self, view_of: Callable[[JobRun], Any]) -> Outcome:
        """The end of a job that was cancelled before this run: a worker killed in the one before left what it had."""
        try:
            take_back = given_up_of(self._run.kind)
            if take_back is not None:
                take_back(view_of(self._run), self._run.arguments)
        except Exception as exc:  # noqa: BLE001 - as of a task
            return self._failed(exc)
        return self._ended("cancelled", _CANCELLED)

    def together(self, queue_id: int, most: int, place: Place | None, task: Task) -> Together | None:
        """The job with others that are alike; None: there are none, or it is run alone."""
        # Where a worker died with many, fewer are tried at once: which of them it was is soon found.
        if not most >> (2 * self._run.deaths):
            return None
        together = Together(
            self._jobs.alike,
            self._scope,
            self._run,
            queue_id=queue_id,
            stages=task.stages,
            differs=task.differs,
            limit=most,
            end_of=partial(_end_of, self._policy),
            interruption=self._interruption,
            place=place,
        )
        return together if together.begin() else None

    @staticmethod
    def _with(together: Together, several: Callable[[], None]) -> Outcome:
        """The job and others at once; each ends by itself, and those that have not ended wait for their turn again."""
        try:
            several()
        except (Exception, Interrupted) as exc:
            if isinstance(exc, Exception):
                logger.info("Jobs that were run together failed: %s", reason_of(exc), exc_info=exc)
                # Whose fault it was is seen when each is run alone.
                together.put_back(reason_of(exc), counts=not lacks_room(exc))
            if together.first_end is None:
                raise
        finally:
            together.put_back(None, counts=False)
        first = together.first_end
        if first is None:
            raise RuntimeError("The task has not said what became of its first job.")
        return Outcome(put_off=first.status == "pending", due_at=first.due_at)

    def _succeeded(self, result: Any) -> Outcome:  # noqa: ANN401 - what tasks return
        stages = self._progress.stages
        self._write_down(partial(self._jobs.end, status="succeeded", stages=stages, result=result))
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
        end = _end_of(self._policy, self._run, exc, self._progress.stages)
        if end.status == "pending":
            return self._put_off(end.error, end.due_at, counts=end.counts)
        return self._ended(end.status, end.error or "")

    def _ended(self, status: JobStatus, reason: str) -> Outcome:
        self._write_down(partial(self._jobs.end, status=status, stages=self._progress.stages, error=reason))
        return Outcome()

    def _put_off(self, reason: str | None, due_at: datetime | None, *, counts: bool) -> Outcome:
        stages = self._progress.stages
        self._write_down(partial(self._jobs.put_off, stages=stages, error=reason, due_at=due_at, counts=counts))
        return Outcome(put_off=True, due_at=due_at)

    def _write_down(self, write: Callable[[Scope, JobRun], object]) -> None:
        """Write down what became of the run; see `written_once_there_is_room`."""
        written_once_there_is_room(lambda: write(self._scope, self._run), self._interruption)


def _end_of(policy: RetryPolicy, run: JobRun, outcome: Any, stages: tuple[JobStage, ...]) -> RunEnd:  # noqa: ANN401
    """What becomes of a job by what its run gave, or why it failed."""
    if not isinstance(outcome, Exception):
        return RunEnd(run=run, status="succeeded", stages=stages, result=outcome)
    reason = reason_of(outcome)
    logger.info("Job %d (%s) failed: %s", run.job_id, run.kind, reason, exc_info=outcome)
    end = partial(RunEnd, run=run, stages=stages, error=reason)
    if lacks_room(outcome):
        delay = policy.wait_for_room_seconds(run.since_seconds)
        error = f"{reason} {_WAITS_FOR_ROOM}"
        return RunEnd(
            run=run, status="pending", stages=stages, error=error, due_at=_in(delay) if delay else None, counts=False
        )
    if not may_succeed(outcome):
        return end(status="cancelled")
    if run.attempts >= run.max_attempts:
        return end(status="failed")
    delay = policy.delay_seconds(run.attempts, outcome)
    return end(status="pending", due_at=_in(delay) if delay else None)


def _in(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)
