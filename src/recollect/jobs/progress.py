"""How far a job has come: what its task says, and where it ends when it is to end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto

from recollect.errors import StoreFullError
from recollect.interruption import Interrupted, Interruption
from recollect.model.job import JobStage

logger = logging.getLogger(__name__)

# Tried again after so long, then half as long again, up to this.
_ROOM_SECONDS = (0.5, 30.0)

#: So often a run writes down how far it has come, at most.
WRITE_SECONDS = 0.5


class Ending(Enum):
    """Why a run is ended before its task is."""

    CANCELLED = auto()  # somebody asked for it
    STOPPING = auto()  # its worker ends
    SUPERSEDED = auto()  # another run of the job has begun: this one was taken for dead


class RunInterruption(Interruption):
    """Ends a run, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.ending: Ending | None = None
        self._ended = threading.Event()

    def end(self, ending: Ending) -> None:
        """End the run for this reason; of several the first one counts."""
        self.ending = self.ending or ending
        self._ended.set()
        self.interrupt()

    def wait(self, seconds: float) -> None:
        """Let time pass, no longer than until the worker ends."""
        if self._ended.wait(seconds) and self.ending is not Ending.STOPPING:
            time.sleep(seconds)


class Progress:
    """Told by a task how far it has come.

    Args:
        stages: Their names, in order; a task may name more.
        write: Writes them down; returns why the run is to end, None where it goes on.
        interruption: Of the run.
        on_progress: Told the stages at every call.
        clock: Gives seconds, for how often is written.
    """

    def __init__(
        self,
        stages: Sequence[str] = (),
        *,
        write: Callable[[Sequence[JobStage]], Ending | None] | None = None,
        interruption: RunInterruption | None = None,
        on_progress: Callable[[Sequence[JobStage]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stages = {name: JobStage(name=name) for name in stages}
        self._write = write
        self._interruption = interruption
        self._on_progress = on_progress
        self._clock = clock
        self._written_at = clock()

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Say how far a stage has come.

        Raises:
            Interrupted: The job is to end here.
        """
        self._stages[stage] = JobStage(name=stage, done=done, total=total)
        if self._on_progress is not None:
            self._on_progress(self.stages)
        if self._interruption is not None:
            self._interruption.check()
        if self._clock() - self._written_at >= WRITE_SECONDS:
            self.write_down()

    def write_down(self) -> None:
        """Write down how far the run has come at once, where nothing may follow for long.

        Raises:
            Interrupted: The job is to end here.
        """
        self._written_at = self._clock()
        ending = None if self._write is None else self._write(self.stages)
        if ending is not None:
            if self._interruption is not None:
                self._interruption.end(ending)
            raise Interrupted

    @property
    def stages(self) -> tuple[JobStage, ...]:
        """Every stage with how far it has come."""
        return tuple(self._stages.values())


def written_once_there_is_room(write: Callable[[], object], interruption: RunInterruption) -> None:
    """Write down what became of a run: on a full disk once there is room, or nobody would know of it.

    Raises:
        StoreFullError: The worker ends meanwhile; others begin the run anew.
    """
    pause, longest = _ROOM_SECONDS
    while True:
        try:
            write()
        except StoreFullError as exc:
            if interruption.ending is Ending.STOPPING:
                raise
            logger.warning("What became of jobs waits for room to be written down: %s", exc)
        else:
            return
        interruption.wait(pause)
        pause = min(pause * 1.5, longest)
