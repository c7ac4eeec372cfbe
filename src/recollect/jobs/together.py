"""Jobs that are alike, run with the first of them: taken as there is room for more, each ended by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recollect.jobs.progress import WRITE_SECONDS, Ending, RunInterruption, written_once_there_is_room
from recollect.model.job import JobRun, JobStage, RunEnd
from recollect.store.jobs import JobRepository, Turn

if TYPE_CHECKING:
    from recollect.model import Scope

#: After so many, others have their turn, and the first of them is tried again where it failed.
MOST_IN_A_ROW = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place in a worker that a run has, which further jobs could keep for long.

    Attributes:
        stopping: Whether the worker begins no more jobs.
        wanted: Whether all places are taken, so that others wait for this one.
        queues: Whose jobs could have it; None: all.
    """

    stopping: Callable[[], bool] = lambda: False
    wanted: Callable[[], bool] = lambda: True
    queues: Sequence[str] | None = None


@dataclass(slots=True, eq=False)
class Member:
    """One of the jobs.

    Attributes:
        run: Of it.
        stages: How far it has come, by name.
    """

    run: JobRun
    stages: dict[str, JobStage] = field(default_factory=dict)
    changed: bool = False

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What it is asked to do."""
        return self.run.arguments


class Together:
    """A run of jobs that are alike. A task takes them, works on several at a time, and says what became of each.

    Args:
        jobs: Where what becomes of them is written down.
        scope: Whose they are.
        first: The run that the queue handed out; its job's place there is held for all of them.
        queue_id: The queue's number for it.
        stages: What each comes through.
        differs: The argument that each has its own of.
        limit: How many are under way at most besides one.
        end_of: What becomes of a job by its run's result or error.
        interruption: Of the run.
        place: Which it has in its worker.
    """

    def __init__(
        self,
        jobs: JobRepository,
        scope: Scope,
        first: JobRun,
        *,
        queue_id: int,
        stages: Sequence[str],
        differs: str,
        limit: int,
        end_of: Callable[[JobRun, Any, tuple[JobStage, ...]], RunEnd],
        interruption: RunInterruption,
        place: Place | None = None,
    ) -> None:
        self._jobs, self._scope, self._first = jobs, scope, first
        self._queue_id, self._names, self._differs, self._limit = queue_id, stages, differs, limit
        self._end_of, self._interruption, self._place = end_of, interruption, place or Place()
        self._written_at = time.monotonic()
        self._lock = threading.Lock()
        # What is being written down is not asked after meanwhile.
        self._writing = threading.Lock()
        self._under_way: dict[int, Member] = {}
        self._waiting = [self._join(first)]
        self._taken = 1
        self._settled = 0
        self._asked_at: int | None = None
        #: What became of the first one; None: it has not ended.
        self.first_end: RunEnd | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Those of the first; the others' differ in one alone."""
        return self._first.arguments

    def begin(self) -> bool:
        """Whether there are any that are alike; they are begun."""
        self._waiting += self._begin(self._limit)
        return len(self._waiting) > 1

    def take(self, most: int) -> Sequence[Member] | None:
        """Further jobs to work on, so many at most; none while too many are under way. None: there are no more."""
        if self._place.stopping():
            # The first of them is this run's own; the others have not been worked on, and wait for another worker.
            self._waiting = [one for one in self._waiting if one.run is self._first]
        taken, self._waiting = self._waiting[:most], self._waiting[most:]
        if taken:
            return taken
        with self._lock:
            under_way, settled = len(self._under_way), self._settled
            window = self._limit >> (2 * max((one.run.deaths for one in self._under_way.values()), default=0))
        if self._place.stopping() or self._taken >= MOST_IN_A_ROW:
            return None
        # A few at a time would be as many statements.
        if under_way and (settled == self._asked_at or window + 1 - under_way < min(most, window // 4)):
            return []
        self._asked_at = settled
        found = self._begin(most)
        return found if found or under_way else None

    def wants(self, member: Member) -> bool:
        """Whether a job is still this run's: it may have been cancelled."""
        with self._lock:
            return member.run.job_id in self._under_way

    def tell(self, member: Member, stage: str, done: int = 1, total: int | None = 1) -> None:
        """Say how far one has come; from any thread."""
        member.stages[stage] = JobStage(name=stage, done=done, total=total)
        member.changed = True

    def look(self) -> None:
        """Write down now and then how far they have come, and end where that is asked for; call it often.

        Raises:
            Interrupted: They are to end here.
        """
        self._interruption.check()
        if time.monotonic() - self._written_at < WRITE_SECONDS:
            return
        self._written_at = time.monotonic()
        with self._writing:
            gone, left = self._report()
        if self._first.job_id in gone or (gone and not left):
            self._interruption.end(Ending.SUPERSEDED)
        elif left.get(self._first.job_id):
            self._interruption.end(Ending.CANCELLED)
        self._interruption.check()

    def end(self, outcomes: Iterable[tuple[Member, Mapping[str, Any] | Exception | None]]) -> None:
        """Say what became of some: the result of each, or its error; from any thread."""
        self._settle(
            self._end_of(member.run, outcome, self._stages(member, whole=not isinstance(outcome, Exception)))
            for member, outcome in outcomes
        )

    def put_back(self, reason: str | None, *, counts: bool) -> None:
        """Have those that have not ended wait for their turn again, all but the first."""
        self._settle(
            RunEnd(run=one.run, status="pending", stages=self._stages(one), error=reason, counts=counts)
            for one in list(self._under_way.values())
            if one.run is not self._first
        )

    def _report(self) -> tuple[set[int], Mapping[int, bool]]:
        """Write down how far they have come; which are no longer this run's, and of the others which are to stop."""
        with self._lock:
            members = list(self._under_way.values())
        changed: dict[int, tuple[JobStage, ...]] = {}
        for one in members:
            if one.changed:
                one.changed = False
                changed[one.run.job_id] = tuple(one.stages.values())
        left = self._jobs.report(self._scope, [one.run for one in members], changed) if members else {}
        gone = {one.run.job_id for one in members} - left.keys()
        with self._lock:
            for job_id in gone:
                del self._under_way[job_id]
        return gone, left

    def _begin(self, most: int) -> list[Member]:
        turn = None
        if self._taken > self._limit:
            turn = Turn(of_any_source=self._place.wanted(), queues=self._place.queues)
        with self._lock:
            begun = [one.run for one in self._under_way.values()]
        found = self._jobs.begin_alike(
            self._scope,
            self._first,
            queue_id=self._queue_id,
            differs=self._differs,
            together=self._limit,
            most=most,
            begun=begun,
            turn=turn,
        )
        self._taken += len(found)
        return [self._join(run) for run in found]

    def _join(self, run: JobRun) -> Member:
        member = Member(run, {name: JobStage(name=name) for name in self._names})
        with self._lock:
            self._under_way[run.job_id] = member
        return member

    def _stages(self, member: Member, *, whole: bool = False) -> tuple[JobStage, ...]:
        if not whole:
            return tuple(member.stages.values())
        return tuple(JobStage(name=name, done=1, total=1) for name in self._names)

    def _settle(self, ends: Iterable[RunEnd]) -> None:
        ends = list(ends)
        if not ends:
            return
        with self._writing:
            written_once_there_is_room(lambda: self._jobs.settle(self._scope, ends), self._interruption)
            with self._lock:
                for end in ends:
                    self._under_way.pop(end.run.job_id, None)
                    if end.run is self._first:
                        self.first_end = end
                self._settled += len(ends)
