"""The worker: takes jobs from the queue and runs several at once, until it is told to stop.

Procrastinate does the taking: it waits for jobs to come, hears of those to be stopped, and asks for what is due every
so often. `JobRunner` runs them. A worker whose database went away begins again, as another worker, when it is back:
what it had taken and not finished is then put back into the queue, like the jobs of one that died.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from procrastinate import App, JobContext
from procrastinate.job_context import AbortReason
from procrastinate.worker import Worker as QueueWorker

from recollect.errors import StoreError
from recollect.jobs.manager import WATCH, Manager
from recollect.jobs.periodic import QUEUE, PeriodicTask
from recollect.jobs.progress import Ending, RunInterruption
from recollect.jobs.running import JobRunner, Outcome
from recollect.jobs.together import Place
from recollect.store.database import Database
from recollect.store.job_connector import JobConnector
from recollect.store.job_queue import Heartbeats, JobQueue

logger = logging.getLogger(__name__)

#: The name of tenants' jobs in the queue (`store/sql/routines/jobs.sql`).
TASK = "recollect"

# Whether a job that runs was asked to stop is looked up so often, in memory.
_WATCH_SECONDS = 0.2

# Waits before a worker that lost the store begins again.
_AGAIN_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)

# After a second signal, what does not end by itself within this time is left to other workers.
_AT_ONCE_SECONDS = 3.0

_CONNECTIONS = 8

# So many jobs that go on until somebody ends them are run beside the others: each is a thread that waits.
_WATCHES = 64


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
        self._database, self._runner, self._periodic = database, runner, tuple(periodic)
        self._prepare = prepare
        self._stopping = threading.Event()
        self._at_once = False
        self._signals = 0
        #: How many jobs it has run, in any way.
        self.finished = 0
        self._running: dict[int, RunInterruption] = {}
        self._lock = threading.Lock()
        self._worker: QueueWorker | None = None
        self._away = False

    def run(self) -> None:
        """Work until `stop`, or as long as the options say; in the main thread also until a signal.

        The first signal lets what runs come to its end, within ``stop_seconds``; a second one ends it at once. Either
        way other workers go on with what has not ended.

        Raises:
            StoreError: Nothing can be written there: it is a read replica.
        """
        asyncio.run(self._main())

    def stop(self, *, at_once: bool = False) -> None:
        """Take no more jobs, and end; from any thread.

        Args:
            at_once: Do not wait for those that run.
        """
        self._stopping.set()
        worker = self._worker
        if worker is not None:
            worker.stop()  # type: ignore[no-untyped-call]
        if at_once:
            with self._lock:
                self._at_once = True
                running = list(self._running.values())
            for interruption in running:
                threading.Thread(target=interruption.end, args=(Ending.STOPPING,), daemon=True).start()

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        # Jobs run in the loop's own threads, and nothing else does.
        threads = self._options.concurrency + _WATCHES
        loop.set_default_executor(ThreadPoolExecutor(threads, thread_name_prefix="recollect-job"))
        database = self._database.separate(max_connections=_CONNECTIONS)
        await loop.run_in_executor(None, JobQueue(database).require_writable)
        preparing = threading.Thread(target=self._prepare_for, args=(JobQueue(database),), name="recollect-prepare")
        preparing.start()
        heeded = self._heed_signals(loop)
        failures = 0
        try:
            while not self._stopping.is_set():
                try:
                    if await self._serve(database):
                        return
                    failures = 0
                except (StoreError, OSError) as exc:
                    self._reached(exc)
                    await self._pause(_AGAIN_SECONDS[min(failures, len(_AGAIN_SECONDS) - 1)])
                    failures += 1
        finally:
            for number in heeded:
                loop.remove_signal_handler(number)
            await loop.run_in_executor(None, preparing.join)
            await loop.run_in_executor(None, database.close)

    def _prepare_for(self, queue: JobQueue) -> None:
        # What is wrong is said where the first job meets it.
        with suppress(StoreError):
            if self._prepare is not None and queue.left(self._options.queues, due=False, without=[WATCH]):
                self._prepare()

    async def _serve(self, database: Database) -> bool:
        """Work as one worker of the queue; returns whether there is nothing more to be done."""
        options = self._options
        queue = JobQueue(database, options.heartbeats)
        connector = JobConnector(database)
        app = App(connector=connector)
        app.job_manager = manager = Manager(
            connector,
            queue,
            stopping=self._stopping.is_set,
            concurrency=options.concurrency,
            watches=options.ends == "never",
        )
        app.task(name=TASK, pass_context=True)(partial(self._run_one, manager))
        if options.queues is None or QUEUE in options.queues:
            self._schedule(app, manager)
        # Before anything is taken: what a worker left that has ended just now may be all there is to do.
        await self._recover(queue, connector)
        recovering = asyncio.create_task(self._keep_recovering(queue, connector))
        try:
            listens = await connector.run(database.has_sessions)
            worker = self._worker = self._queue_worker(app, listens=listens)
            manager.on_lost = worker.stop
            manager.on_reached = self._reached
            if not self._stopping.is_set():
                await worker.run()  # type: ignore[no-untyped-call]
            if manager.lost is not None:
                raise manager.lost
            if options.ends == "never" or self._stopping.is_set():
                return self._stopping.is_set()
            left = await connector.run(partial(queue.left, options.queues, due=options.ends == "once", without=[WATCH]))
            if left:
                await self._pause(_WATCH_SECONDS)
            return not left
        finally:
            self._worker = None
            recovering.cancel()
            with suppress(asyncio.CancelledError):
                await recovering
            await connector.run(manager.presence.close)
            await connector.close_async()

    def _queue_worker(self, app: App, *, listens: bool) -> QueueWorker:
        options = self._options
        return QueueWorker(
            app,
            queues=options.queues,
            name=f"worker-{os.getpid()}",
            concurrency=options.concurrency + _WATCHES,
            wait=options.ends == "never",
            fetch_job_polling_interval=options.poll_seconds,
            abort_job_polling_interval=options.poll_seconds,
            shutdown_graceful_timeout=options.stop_seconds,
            listen_notify=listens,
            install_signal_handlers=False,
            # Its heart beats elsewhere (`Presence`), and whose does not is looked up elsewhere (`_recover`).
            update_heartbeat_interval=3600.0,
            worker_middleware=[self._watch],
        )

    def _schedule(self, app: App, manager: Manager) -> None:
        for one in self._periodic:
            name = f"{TASK}:{one.name}"
            task = app.task(name=name, queue=QUEUE, lock=name, queueing_lock=name, priority=1, pass_context=True)(
                partial(_run_periodic, manager, one)
            )
            app.periodic(cron=one.cron, periodic_id=one.name)(task)

    def _run_one(self, manager: Manager, context: JobContext, *, tenant_id: int, job_id: int) -> None:
        """A job of a tenant, in a thread of its own."""
        number = _number(context)
        with self._lock:
            interruption = self._running[number] = RunInterruption()
            if self._at_once:
                interruption.end(Ending.STOPPING)
        try:
            place = Place(stopping=self._stopping.is_set, wanted=manager.is_full, queues=self._options.queues)
            manager.outcomes[number] = self._runner.run(
                tenant_id, job_id, queue_id=number, interruption=interruption, place=place
            )
        except StoreError as exc:
            # Without an outcome, the worker begins again and the job goes back into the queue.
            logger.info("Job %d could not be written down: %s", job_id, exc)
        finally:
            with self._lock:
                del self._running[number]
                self.finished += 1

    async def _watch(
        self,
        call_next: Callable[[], Awaitable[Any]],
        context: JobContext,
        worker: QueueWorker,  # noqa: ARG002
    ) -> object:
        """Around every job: it is interrupted when it is to end."""
        running = asyncio.ensure_future(call_next())
        while not running.done():
            await asyncio.wait({running}, timeout=_WATCH_SECONDS)
            reason = context.abort_reason()
            if context.job.queue == WATCH and self._stopping.is_set():
                # It would not come to an end by itself.
                reason = reason or AbortReason.SHUTDOWN
            interruption = self._running.get(_number(context))
            if reason is not None and interruption is not None and interruption.ending is None:
                ending = Ending.CANCELLED if reason is AbortReason.USER_REQUEST else Ending.STOPPING
                # In a thread: to cancel a statement takes a connection to the server.
                threading.Thread(target=interruption.end, args=(ending,), daemon=True).start()
        return await running

    async def _keep_recovering(self, queue: JobQueue, connector: JobConnector) -> None:
        while True:
            await asyncio.sleep(queue.heartbeats.every_seconds)
            await self._recover(queue, connector)

    @staticmethod
    async def _recover(queue: JobQueue, connector: JobConnector) -> None:
        try:
            await connector.run(queue.recover)
        except StoreError as exc:
            logger.info("Whether workers have died could not be looked up: %s", exc)

    def _reached(self, error: Exception | None) -> None:
        """Log that PostgreSQL is away, and that it is back: once each, however many statements fail meanwhile."""
        if error is not None and not self._away:
            logger.warning(
                "The worker lost its connection to PostgreSQL. It reconnects and goes on by itself: %s", error
            )
        elif error is None and self._away:
            logger.warning("The worker is connected to PostgreSQL again and goes on with its jobs.")
        self._away = error is not None

    async def _pause(self, seconds: float) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._stopping.wait, seconds)

    def _heed_signals(self, loop: asyncio.AbstractEventLoop) -> tuple[int, ...]:
        if threading.current_thread() is not threading.main_thread():
            return ()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, loop, number)
        return numbers

    def _on_signal(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        self._signals += 1
        if self._signals == 1:
            logger.warning("The worker ends when its jobs have; a second signal ends it at once.")
            self.stop()
            return
        self.stop(at_once=True)
        # Like a worker that was killed: nothing that it had acknowledged is lost.
        loop.call_later(_AT_ONCE_SECONDS, os._exit, 128 + number)


def _number(context: JobContext) -> int:
    assert context.job.id is not None, "it comes from the queue"
    return context.job.id


def _run_periodic(manager: Manager, task: PeriodicTask, context: JobContext, *, timestamp: int) -> None:  # noqa: ARG001
    try:
        result = task.run()
        logger.info("%s: %s", task.name, result)
    except Exception as exc:
        logger.warning("What is done every so often failed (%s): %s", task.name, exc, exc_info=exc)
    manager.outcomes[_number(context)] = Outcome()
