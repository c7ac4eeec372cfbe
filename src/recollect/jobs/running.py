"""Runs of jobs, and which failures are worth another attempt."""

from __future__ import annotations

import errno
import logging
import random
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from recollect.errors import (
    ConflictError,
    NotFoundError,
    ParseError,
    PermissionDeniedError,
    QuotaExceededError,
    RecollectError,
    StoreFullError,
    TenantSuspendedError,
    UsageError,
)
from recollect.interruption import Interrupted, current
from recollect.jobs.progress import Ending, Progress, RunInterruption, written_once_there_is_room
from recollect.jobs.tasks import Task, given_up_of, imported, task_of
from recollect.jobs.together import Place, Together
from recollect.model import Scope
from recollect.model.job import JobRun, JobStage, JobStatus, RunEnd
from recollect.model.once import job_begun
from recollect.privacy.credentials import without_secrets

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Runs jobs that the queue has handed out.

    Attributes:
        jobs: Where what becomes of them is written down.
        view_of: Makes the view that a run's task is given.
        policy: How often a job is tried, and when again.
        together: How many jobs that are alike are run with one at most, where their task can.
    """

    jobs: JobRepository
    view_of: Callable[[JobRun], Any]
    policy: RetryPolicy
    together: int = 0

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
            run = self.jobs.begin(scope, job_id, queue_id=queue_id)
        except TenantSuspendedError:
            return Outcome(put_off=True, due_at=_in(_SUSPENDED_SECONDS))
        if run is None:
            return Outcome()
        return _Run(self, scope, run, queue_id, interruption or RunInterruption()).outcome(on_progress, place)


class _Run:
    def __init__(
        self, runner: JobRunner, scope: Scope, run: JobRun, queue_id: int, interruption: RunInterruption
    ) -> None:
        self._runner, self._scope, self._run, self._queue_id = runner, scope, run, queue_id
        self._interruption = interruption
        self._progress = Progress()

    def outcome(self, on_progress: Callable[[Sequence[JobStage]], None] | None, place: Place | None) -> Outcome:
        run, runner = self._run, self._runner
        if run.cancel_requested:
            return self._given_up()
        if run.deaths > runner.policy.max_deaths:
            return self._ended("failed", f"{run.deaths} workers died while they ran it.")
        try:
            task = task_of(run.kind)
            self._progress = Progress(
                task.stages, write=self._write, interruption=self._interruption, on_progress=on_progress
            )
            context = copy_context()
            context.run(current.set, self._interruption)
            context.run(job_begun.set, run.started_at)
            view = runner.view_of(run)
            several = None if task.together is None else imported(task.together)
            together = None if several is None else self._together(task, place)
            if several is not None and together is not None:
                return self._with(together, partial(context.run, several, view, together))
            result = context.run(imported(task.function), view, run.arguments, self._progress)
        except Interrupted:
            return self._interrupted()
        except Exception as exc:  # noqa: BLE001 - whatever a task raises is the job's end, or its next attempt
            return self._came_to(exc)
        return self._came_to(result)

    def _given_up(self) -> Outcome:
        """The end of a job that was cancelled before this run: a worker killed in the one before left what it had."""
        try:
            take_back = given_up_of(self._run.kind)
            if take_back is not None:
                take_back(self._runner.view_of(self._run), self._run.arguments)
        except Exception as exc:  # noqa: BLE001 - as of a task
            return self._came_to(exc)
        return self._ended("cancelled", _CANCELLED)

    def _together(self, task: Task, place: Place | None) -> Together | None:
        """The job with others that are alike; None: there are none, or it is run alone."""
        most = self._runner.together
        # Where a worker died with many, fewer are tried at once: which of them it was is soon found.
        if not most >> (2 * self._run.deaths):
            return None
        together = Together(
            self._runner.jobs,
            self._scope,
            self._run,
            queue_id=self._queue_id,
            stages=task.stages,
            differs=task.differs,
            limit=most,
            end_of=partial(_end_of, self._runner.policy),
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

    def _write(self, stages: Sequence[JobStage]) -> Ending | None:
        run = self._run
        told = self._runner.jobs.report(self._scope, [run], {run.job_id: stages}).get(run.job_id)
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
                return self._settled(
                    RunEnd(run=self._run, status="pending", stages=self._progress.stages, counts=False)
                )

    def _came_to(self, outcome: Any) -> Outcome:  # noqa: ANN401 - what tasks return, or an error
        return self._settled(_end_of(self._runner.policy, self._run, outcome, self._progress.stages))

    def _ended(self, status: JobStatus, reason: str) -> Outcome:
        return self._settled(RunEnd(run=self._run, status=status, stages=self._progress.stages, error=reason))

    def _settled(self, end: RunEnd) -> Outcome:
        """What the queue is to do, once it is written down what became of the run."""
        written_once_there_is_room(lambda: self._runner.jobs.settle(self._scope, [end]), self._interruption)
        return Outcome(put_off=end.status == "pending", due_at=end.due_at)


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


# Whether an attempt that failed is followed by another one, and when.


# What no other attempt could do better: somebody has to change something first.
_FOR_GOOD = (ConflictError, NotFoundError, ParseError, PermissionDeniedError, QuotaExceededError, UsageError)

# Each wait is so many times as long as the one before.
_GROWTH = 4.0

# Jobs that failed together are not all tried again at the same moment.
_JITTER = 0.25

_LONGEST_SECONDS = 3600.0

# Where there is no room, each wait is such a share of the time that the job has been at it, so that the waits grow, and
# room that was made is found soon.
_SHARE_OF_ITS_TIME = 0.25
_LONGEST_WITHOUT_ROOM_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a job is tried, and how long it waits in between.

    Attributes:
        max_attempts: Where the job does not say so itself.
        backoff_seconds: Before the second attempt; before each further one four times as long. 0: at once.
        max_deaths: How many workers may die while they run one job before it is taken for the cause.
    """

    max_attempts: int = 3
    backoff_seconds: float = 10.0
    max_deaths: int = 10

    def delay_seconds(self, attempts: int, error: BaseException, *, draw: Callable[[], float] = random.random) -> float:
        """How long to wait after so many attempts.

        Args:
            attempts: That were made.
            error: Why the last one failed; what it says of when to ask again is heeded.
            draw: Gives numbers between 0 and 1.
        """
        asked = getattr(error, "retry_after_seconds", None) or 0.0
        backoff = min(self.backoff_seconds * _GROWTH ** (attempts - 1), _LONGEST_SECONDS)
        return max(backoff * (1 - _JITTER + 2 * _JITTER * draw()), float(asked))

    def wait_for_room_seconds(self, since_seconds: float, *, draw: Callable[[], float] = random.random) -> float:
        """How long to wait where a disk is full.

        Args:
            since_seconds: Since the job was begun first.
            draw: Gives numbers between 0 and 1.
        """
        share = min(since_seconds * _SHARE_OF_ITS_TIME, _LONGEST_WITHOUT_ROOM_SECONDS)
        return max(self.backoff_seconds, share) * (1 - _JITTER + 2 * _JITTER * draw())


def lacks_room(error: BaseException | None) -> bool:
    """Whether there was no room on a disk, the store's or another one: that says nothing of what was tried."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, StoreFullError):
            return True
        if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def may_succeed(error: BaseException) -> bool:
    """Whether another attempt may succeed where one failed with this error.

    An error says so itself by its attribute ``retryable``; otherwise its class does.
    """
    says: object = getattr(error, "retryable", None)
    if isinstance(says, bool):
        return says
    return not isinstance(error, _FOR_GOOD)


def reason_of(error: BaseException) -> str:
    """Return an error as a job's reason: in words for a person, without secrets."""
    said = without_secrets(str(error).strip())
    if isinstance(error, RecollectError) and said:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
