"""The worker: takes jobs from the queue and runs several at once, until it is told to stop.

One thread takes, and each job has one of its own, where `JobRunner` runs it. A worker whose database went away begins
again, as another worker, when it is back: what it had taken and not finished is then put back into the queue, like the
jobs of one that died.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from recollect.errors import StoreError
from recollect.interruption import Interrupted
from recollect.jobs.progress import Ending, RunInterruption
from recollect.jobs.running import JobRunner, Outcome
from recollect.jobs.together import Place
from recollect.store.database import Database
from recollect.store.job_queue import STOP, UPKEEP, Heartbeats, JobQueue, QueuedJob

logger = logging.getLogger(__name__)

#: The name of tenants' jobs in the queue (`store/sql/routines/jobs.sql`).
TASK = "recollect"

#: The queue of jobs that go on until somebody ends them, as those that watch folders.
WATCH = "watch"

# While jobs run here it is looked so often whether another one may begin that waits for one of its source elsewhere.
_LOOK_SECONDS = 0.5

# Where nothing can be taken and something is left, which others run or which is due later.
_LEFT_SECONDS = 0.2

# Waits before a worker that lost the store begins again.
_AGAIN_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)

# After a second signal, what does not end by itself within this time is left to other workers.
_AT_ONCE_SECONDS = 3.0

# What was due longer ago than this when a worker begins is done at its next time.
_MISSED_SECONDS = 600

_CONNECTIONS = 8

# So many jobs that go on until somebody ends them are run beside the others: each is a thread that waits.
_WATCHES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """Something that one of all workers does every so often, beside the jobs that somebody asked for.

    What fails is logged, and done again at the next time.

    Attributes:
        name: In the queue and in logs.
        every_seconds: From one time to the next; the times are those since the first second of 1970.
        after_seconds: Later than that, so that not everything is done at once.
        run: Does it; what it returns is logged.
    """

    name: str
    every_seconds: int
    after_seconds: int = 0
    run: Callable[[], object]

    def due_at(self, now: float) -> int:
        """When it was due last, in seconds since 1970."""
        return int((now - self.after_seconds) // self.every_seconds) * self.every_seconds + self.after_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker works.

    Attributes:
        concurrency: How many jobs it runs at a time, beside those that watch folders.
        queues: Which jobs it takes; None: all.
        ends: By itself ``never``, ``once`` nothing is due any more, or when the queue is ``empty``. One that ends by
            itself takes no jobs that watch folders, which do not.
        poll_seconds: How often it looks for jobs where the database does not tell it of them.
        stop_seconds: How long it waits for the jobs that it runs when it is told to stop.
        heartbeats: How it shows that it is alive.
    """

    concurrency: int = 1
    queues: Sequence[str] | None = None
    ends: Literal["never", "once", "empty"] = "never"
    poll_seconds: float = 2.0
    stop_seconds: float = 20.0
    heartbeats: Heartbeats = field(default_factory=Heartbeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    job: QueuedJob
    interruption: RunInterruption
    done: Future[None]


class Worker:
    """Runs jobs of every tenant.

    Args:
        database: The store's connections; the worker opens others of its own.
        runner: Runs a job.
        options: How.
        periodic: What is done every so often.
        prepare: Called in a thread of its own where there is something to do, while the first of it is looked for.
    """

    def __init__(
        self,
        database: Database,
        runner: JobRunner,
        options: WorkerOptions | None = None,
        *,
        periodic: Iterable[PeriodicTask] = (),
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._options = options or WorkerOptions()
        self._database, self._runner = database, runner
        self._periodic = {f"{TASK}:{one.name}": one for one in periodic}
        self._prepare = prepare
        #: How many jobs it has run, in any way.
        self.finished = 0
        self._stopping = threading.Event()
        self._at_once = False
        # What the thread that takes jobs waits for: a job has come, or ended, or is to stop, or the worker is.
        self._told: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._running: dict[int, _Running] = {}
        self._lock = threading.Lock()
        self._lost: StoreError | None = None
        self._away = False
        self._failures = 0
        self._added: dict[str, int] = {}

    def run(self) -> None:
        """Work until `stop`, or as long as the options say; in the main thread also until a signal.

        The first signal lets what runs come to its end, within ``stop_seconds``; a second one ends it at once. Either
        way other workers go on with what has not ended.

        Raises:
            StoreError: Nothing can be written there: it is a read replica.
        """
        if threading.current_thread() is not threading.main_thread():
            self._work()
            return
        # The main thread, which signals interrupt, holds nothing meanwhile that heeding them needs.
        with self._heeding_signals(), ThreadPoolExecutor(1, thread_name_prefix="recollect-worker") as apart:
            apart.submit(self._work).result()

    def stop(self, *, at_once: bool = False) -> None:
        """Take no more jobs, and end; from any thread.

        Args:
            at_once: Do not wait for those that run.
        """
        self._stopping.set()
        self._told.put("")
        if at_once:
            with self._lock:
                self._at_once = True
                running = list(self._running.values())
            for one in running:
                _interrupt(one, Ending.STOPPING)

    def _work(self) -> None:
        database = self._database.separate(max_connections=_CONNECTIONS)
        jobs = JobQueue(database, self._options.heartbeats)
        preparing = threading.Thread(target=self._prepare_for, args=(jobs,), name="recollect-prepare")
        try:
            jobs.require_writable()
            preparing.start()
            while not self._stopping.is_set():
                try:
                    self._serve(jobs)
                except (StoreError, OSError) as exc:
                    self._reached(exc)
                    self._stopping.wait(_AGAIN_SECONDS[min(self._failures, len(_AGAIN_SECONDS) - 1)])
                    self._failures += 1
                else:
                    return
        finally:
            if preparing.ident is not None:
                preparing.join()
            database.close()

    def _prepare_for(self, jobs: JobQueue) -> None:
        # What is wrong is said where the first job meets it.
        with suppress(StoreError):
            if self._prepare is not None and jobs.left(self._options.queues, due=False, without=[WATCH]):
                self._prepare()

    def _serve(self, jobs: JobQueue) -> None:
        """Work as one worker of the queue, until it is to stop or there is nothing more to be done.

        Raises:
            StoreError: The store cannot be reached, or what became of a job could not be written down.
        """
        options, self._lost = self._options, None
        # Before anything is taken: what a worker left that has ended just now may be all there is to do.
        self._recover(jobs)
        recovered = looked = time.monotonic()
        threads = ThreadPoolExecutor(options.concurrency + _WATCHES, thread_name_prefix="recollect-job")
        with threads, jobs.presence(serves=True) as worker_id, jobs.listening(options.queues, self._told.put):
            try:
                self._add_periodic(jobs)
                while not self._stopping.is_set():
                    if self._lost is not None:
                        raise self._lost
                    self._take(jobs, worker_id, threads)
                    if options.ends != "never" and not self._running:
                        if not jobs.left(options.queues, due=options.ends == "once", without=[WATCH]):
                            return
                        told = self._wait(_LEFT_SECONDS)
                    else:
                        told = self._wait(min(options.poll_seconds, _LOOK_SECONDS if self._running else 60.0))
                    now = time.monotonic()
                    if STOP in told or now - looked >= options.poll_seconds:
                        looked = now
                        self._look(jobs, worker_id)
                    if now - recovered >= options.heartbeats.every_seconds:
                        recovered = now
                        self._recover(jobs)
            finally:
                self._let_end()

    def _take(self, jobs: JobQueue, worker_id: int, threads: ThreadPoolExecutor) -> None:
        """Begin jobs as long as there are places, and jobs that may begin."""
        watches = self._options.ends == "never"
        while not self._stopping.is_set() and self._lost is None:
            named, without = self._options.queues, [] if watches else [WATCH]
            if self._is_full():
                # What is watched needs none of the places of jobs that come to an end.
                if not watches or (named is not None and WATCH not in named):
                    return
                named = [WATCH]
            if len(self._running) >= self._options.concurrency + _WATCHES:
                return
            job = jobs.fetch(named, worker_id=worker_id, without=without)
            self._reached(None)
            if job is None:
                return
            with self._lock:
                interruption, done = RunInterruption(), Future[None]()
                self._running[job.queue_id] = _Running(job=job, interruption=interruption, done=done)
                if self._at_once:
                    interruption.end(Ending.STOPPING)
            threads.submit(self._run, jobs, worker_id, job, interruption, done)

    def _is_full(self) -> bool:
        """Whether as many jobs run as there are places, so that others wait for one of them to end."""
        with self._lock:
            return sum(one.job.queue != WATCH for one in self._running.values()) >= self._options.concurrency

    def _run(
        self, jobs: JobQueue, worker_id: int, job: QueuedJob, interruption: RunInterruption, done: Future[None]
    ) -> None:
        """A job, in a thread of its own: run, and then taken out of the queue or put back for later."""
        try:
            outcome = self._outcome(job, interruption)
            if outcome.put_off:
                jobs.put_off(job.queue_id, worker_id=worker_id, due_at=outcome.due_at)
            else:
                jobs.finish(job.queue_id, worker_id=worker_id)
        except (Exception, Interrupted) as exc:
            # The worker begins again as another one, and the job goes back into the queue.
            logger.info("What became of job %s could not be written down.", dict(job.arguments), exc_info=exc)
            self._lost = exc if isinstance(exc, StoreError) else StoreError(str(exc))
        finally:
            with self._lock:
                # Only now may another job of its source begin.
                del self._running[job.queue_id]
                self.finished += job.task == TASK
            done.set_result(None)
            self._told.put("")

    def _outcome(self, job: QueuedJob, interruption: RunInterruption) -> Outcome:
        if job.task == TASK:
            return self._runner.run(
                job.arguments["tenant_id"],
                job.arguments["job_id"],
                queue_id=job.queue_id,
                interruption=interruption,
                place=Place(stopping=self._stopping.is_set, wanted=self._is_full, queues=self._options.queues),
            )
        task = self._periodic.get(job.task)
        try:
            if task is not None:
                logger.info("%s: %s", task.name, task.run())
        except Exception as exc:
            logger.warning("What is done every so often failed (%s): %s", job.task, exc, exc_info=exc)
        return Outcome()

    def _look(self, jobs: JobQueue, worker_id: int) -> None:
        """See which jobs are to stop, and what is due; while PostgreSQL is away, that is left to the next time."""
        try:
            if self._running:
                for number in jobs.to_stop(worker_id=worker_id):
                    running = self._running.get(number)
                    if running is not None:
                        _interrupt(running, Ending.CANCELLED)
            self._add_periodic(jobs)
        except StoreError as exc:
            self._reached(exc)

    def _add_periodic(self, jobs: JobQueue) -> None:
        if self._options.queues is not None and UPKEEP not in self._options.queues:
            return
        now = time.time()
        for name, task in self._periodic.items():
            due_at = task.due_at(now)
            if due_at > self._added.get(name, now - _MISSED_SECONDS):
                jobs.add_periodic(name, at=due_at)
                self._added[name] = due_at

    def _let_end(self) -> None:
        """Let those that run come to their end, so long as they may, and interrupt the others."""
        for one in list(self._running.values()):
            # It would not come to an end by itself.
            if one.job.queue == WATCH:
                _interrupt(one, Ending.STOPPING)
        wait([one.done for one in list(self._running.values())], timeout=self._options.stop_seconds)
        for one in list(self._running.values()):
            _interrupt(one, Ending.STOPPING)
        wait([one.done for one in list(self._running.values())])

    @staticmethod
    def _recover(jobs: JobQueue) -> None:
        try:
            jobs.recover()
        except StoreError as exc:
            logger.info("Whether workers have died could not be looked up: %s", exc)

    def _reached(self, error: Exception | None) -> None:
        """Log that PostgreSQL is away, and that it is back: once each, however many statements fail meanwhile."""
        if error is not None and not self._away:
            logger.warning(
                "The worker lost its connection to PostgreSQL. It reconnects and goes on by itself: %s", error
            )
        elif error is None:
            if self._away:
                logger.warning("The worker is connected to PostgreSQL again and goes on with its jobs.")
            self._failures = 0
        self._away = error is not None

    def _wait(self, seconds: float) -> set[str]:
        """Wait until the worker is told something, so long at most; returns what it was told."""
        told: set[str] = set()
        with suppress(queue.Empty):
            told.add(self._told.get(timeout=seconds))
            while True:
                told.add(self._told.get_nowait())
        return told

    @contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        heard = 0

        def heed(number: int, _: object) -> None:
            nonlocal heard
            heard += 1
            if heard == 1:
                logger.warning("The worker ends when its jobs have; a second signal ends it at once.")
                self.stop()
                return
            self.stop(at_once=True)
            # Like a worker that was killed: nothing that it had acknowledged is lost.
            ending = threading.Timer(_AT_ONCE_SECONDS, os._exit, [128 + number])
            ending.daemon = True
            ending.start()

        before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _interrupt(running: _Running, ending: Ending) -> None:
    # In a thread: to cancel a statement takes a connection to the server.
    if running.interruption.ending is None:
        threading.Thread(target=running.interruption.end, args=(ending,), daemon=True).start()
