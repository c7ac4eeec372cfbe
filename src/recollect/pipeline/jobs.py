"""Work in the background: asked for, looked at, waited for, stopped and tried again."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from recollect.errors import UsageError
from recollect.evaluation.case_files import load_suite
from recollect.interruption import Interrupted, check, stoppable
from recollect.jobs.progress import Ending, RunInterruption
from recollect.jobs.running import JobRunner, RetryPolicy
from recollect.jobs.tasks import imported, task_of
from recollect.model.arguments import checked
from recollect.model.job import Asker, Job, JobCallback, JobRun, JobStage, JobStatus, NewJob
from recollect.model.original import Original
from recollect.model.page import Page, number_at
from recollect.model.principal import read_permissions
from recollect.operations.declaring import implements
from recollect.operations.jobs import JobOperations
from recollect.pipeline.contexts import require_contextualising
from recollect.pipeline.preparing import admit_job, ensure_collection, make_door
from recollect.pipeline.spaces import Reembedding, require_other_model, require_reembedding
from recollect.pipeline.standpoint import Group, Standpoint, require_refreshable, source_record
from recollect.pipeline.uploading import ask_for
from recollect.store.job_queue import Heartbeats, JobQueue

if TYPE_CHECKING:
    from recollect.config.server import JobsConfig
    from recollect.model import Scope
    from recollect.model.collection import Collection
    from recollect.pipeline.assembly import Assembly
    from recollect.store.database import Connection


_MOST = 10_000


def enqueue(at: Standpoint, job: NewJob, *, connection: Connection | None = None) -> Job:
    """Ask for a job as a view's principal, in the view's tenant and collection or session; see `enqueue_all`."""
    return enqueue_all(at, [job], connection=connection)[0]


def enqueue_all(at: Standpoint, jobs: Sequence[NewJob], *, connection: Connection | None = None) -> list[Job]:
    """Ask for jobs, all or none of them.

    Args:
        at: Where the view stands.
        jobs: What is to be done.
        connection: Of a transaction of the view's tenant, which they are committed with; None: one of their own.

    Raises:
        UsageError: There is no such kind of job, or the view is of the past.
        PersonalDataError: A job's arguments hold personal data, which the tenant's policy refuses.
        NotFoundError: A job is about a document, and for the principal there is no such collection.
        PermissionDeniedError: A job is about a document, and the principal may not write there.
    """
    scope = at.present()
    door = make_door(at.assembly, scope)
    jobs = [admit_job(door, job) for job in jobs]
    stages = [[JobStage(name=name) for name in task_of(job.kind).stages] for job in jobs]
    most = at.config.jobs.max_attempts
    about_documents = at.session is None and any(job.source and job.document for job in jobs)
    numbers = at.store.jobs.add(
        scope,
        jobs,
        asker_of(at),
        stages=stages,
        max_attempts=most,
        collection=_place(at, scope) if about_documents else None,
        connection=connection,
    )
    return at.store.jobs.several(scope, numbers, connection=connection)


def _place(at: Standpoint, scope: Scope) -> Collection:
    """The collection whose documents jobs are about, which the unrestricted caller makes where it is missing."""
    if scope.principal is None:
        return ensure_collection(at, at.collection)
    place = at.place(scope)
    at.store.collections.require_writer(scope, place)
    return place


def asker_of(at: Standpoint) -> Asker:
    """For whom and where a view's jobs are done."""
    return Asker(
        collection=None if at.session is not None else at.collection,
        session=at.session,
        principal=None if at.principal is None else asdict(at.principal),
    )


@implements(JobOperations)
@checked
class Jobs(Group, JobOperations):
    """Work in the background; see `recollect.View`. A principal sees, stops and retries the jobs it has asked for.

    Where no worker runs (``recollect worker``), a job is run by whoever waits for it.
    """

    def contextualise(self, *, priority: int = 0) -> Job:
        """Ask for what `Maintenance.write_contexts` does, in the view's collection.

        Args:
            priority: Higher ones are begun first.

        Raises:
            UsageError: No language model is configured for it.
            NotFoundError: There is no such collection.
            PermissionDeniedError: Somebody in particular asks.
        """
        require_contextualising(self._at)
        return enqueue(self._at, NewJob(kind="contextualise", source="contexts", priority=priority))

    def reembed(
        self,
        model: str,
        *,
        provider: str | None = None,
        dimensions: int | None = None,
        cases: Path | str | None = None,
        samples: int = 100,
        minimum: Mapping[str, float] | None = None,
        switch: bool = True,
        rest: float = 1.0,
        priority: int = 0,
    ) -> Job:
        """Ask for what `Spaces.reembed` does, in the view's collection; the arguments are its own.

        A worker that is killed leaves what it has embedded, and the next one goes on there. A job that is cancelled
        does too: the same model asked for again goes on, `Spaces.drop` gives it up.

        Args:
            model: As there.
            provider: As there.
            dimensions: As there.
            cases: As the worker finds it: it is made absolute, and read once, here.
            samples: As there.
            minimum: As there.
            switch: As there.
            rest: As there.
            priority: Jobs of a higher one run first.

        Raises:
            UsageError: The model is not known here or is the collection's, or an argument is not valid.
            NotFoundError: There is no such collection or file.
            PermissionDeniedError: Somebody in particular asks.
        """
        require_reembedding(cases, samples=samples, minimum=minimum, rest=rest)
        spec = self._at.assembly.embedders.spec_of_name(model, provider=provider, dimensions=dimensions)
        require_other_model(self._at, self._at.place(self._at.owner()), spec)
        path = None if cases is None else Path(cases).absolute()
        if path is not None:
            load_suite(path)
        arguments = {
            "model": model,
            "provider": provider,
            "dimensions": dimensions,
            "cases": None if path is None else str(path),
            "samples": samples,
            "minimum": dict(minimum or {}),
            "switch": switch,
            "rest": rest,
            "actor": self._at.actor,
        }
        job = NewJob(kind="reembed", arguments=arguments, source="spaces", priority=priority)
        return enqueue(self._at, job)

    def rollback(self, *, rest: float = 0.0, priority: int = 0) -> Job:
        """Ask for what `Spaces.rollback` does, in the view's collection: back to the model that is kept now.

        Args:
            rest: As there.
            priority: Jobs of a higher one run first.

        Raises:
            UsageError: ``rest`` is out of range.
            NotFoundError: There is no such collection, or nothing is kept of a model that it had.
            PermissionDeniedError: Somebody in particular asks.
        """
        require_reembedding(None, samples=0, minimum=None, rest=rest)
        kept = Reembedding(at=self._at).kept()
        # Which one is settled here: a run after one that was killed behind the change must not change again.
        arguments = {"back_to": kept.space_id, "model": kept.model, "rest": rest, "actor": self._at.actor}
        return enqueue(self._at, NewJob(kind="reembed", arguments=arguments, source="spaces", priority=priority))

    def ingest(
        self,
        paths: Path | Sequence[Path],
        *,
        sync: bool = False,
        force: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        priority: int = 0,
    ) -> list[Job]:
        """Ask for files and folders to be ingested: one job here, one for each file over a server.

        The arguments are those of `View.ingest`.

        Args:
            paths: As the worker finds them: they are made absolute here.
            sync: As there.
            force: As there.
            follow_links: As there.
            tags: As there.
            permissions: As there.
            priority: Jobs of a higher one run first.

        Raises:
            UsageError: There is no path, a permission is none, or the view is of the past.
        """
        given = [Path(one) for one in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
        if not given:
            raise UsageError("Name a file or a folder.")
        if not -_MOST <= priority <= _MOST:
            raise UsageError(f"priority must lie between -{_MOST:,} and {_MOST:,}, not {priority}.")
        absolute = [str(path.absolute()) for path in given]
        arguments = {
            "paths": absolute,
            "sync": sync,
            "force": force,
            "follow_links": follow_links,
            "tags": list(tags),
            "permissions": None if permissions is None else list(read_permissions(permissions).as_tokens()),
        }
        source = absolute[0] if len(given) == 1 else None
        return [enqueue(self._at, NewJob(kind="ingest", arguments=arguments, source=source, priority=priority))]

    def upload(
        self,
        files: Original | Sequence[Original],
        *,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        department: str | None = None,
        force: bool = False,
        folders: bool = False,
        priority: int = 0,
    ) -> Sequence[Job]:
        """Ask for files to be stored whose bytes are here: kept in the store at once, so that any worker can read them.

        A file is the document of its name in the source ``upload``; sent again, it becomes a new version where it has
        changed. When this returns nothing of it can be lost; the bytes stay as the document's original, where
        ``[rag.ingest] keep_originals`` does not say otherwise.

        Args:
            files: `Original.of_file`, `Original.of_bytes` or `Original.of_open_file`.
            tags: Given to every document.
            permissions: Who may read them; None: what a file says of itself, or the collection's default.
            department: Of files that name none themselves.
            force: Store them anew even if they are unchanged.
            folders: Whether documents are called by the paths in the files' names, and not by their last parts alone.
            priority: Jobs of a higher one run first.

        Returns:
            The jobs, one a file, in their order.

        Raises:
            UsageError: There is no file, one has no name, two have the same, or an option is not allowed.
            ParseError: A file is empty, or larger than files may be.
            NotFoundError: For the principal there is no such collection.
            PermissionDeniedError: The principal may not write there.
            QuotaExceededError: The tenant would have more than it may.
        """
        return ask_for(
            self._at,
            [files] if isinstance(files, Original) else files,
            enqueue=lambda jobs, connection: enqueue_all(self._at, jobs, connection=connection),
            tags=tags,
            permissions=permissions,
            department=department,
            force=force,
            folders=folders,
            priority=priority,
        )

    def refresh(self, source: str, *, confirm_removals: bool = False, anew: bool = False) -> Job:
        """Ask for a source to be refreshed; the arguments are those of `Sources.refresh`.

        Of one source, one refresh runs at a time.

        Raises:
            NotFoundError: There is no such source.
            UsageError: Nothing refreshes it: documents are put there.
            PermissionDeniedError: The view has a principal.
        """
        record = require_refreshable(source_record(self._at, source))
        given = {"confirm_removals": confirm_removals, "anew": anew}
        arguments = {"source": record.name, **{name: True for name, wanted in given.items() if wanted}}
        return enqueue(self._at, NewJob(kind="refresh_source", arguments=arguments, source=record.name))

    @override
    def get(self, job_id: int) -> Job:
        return self._at.store.jobs.get(self._at.present(), job_id)

    def wait(self, job_id: int, *, timeout_seconds: float | None = None, on_progress: JobCallback | None = None) -> Job:
        """Wait until a job has ended; where nobody runs it, it is run here.

        Args:
            job_id: Which.
            timeout_seconds: How long to wait; what runs here is not stopped by it. None: without end.
            on_progress: Told the job whenever it has come further.

        Returns:
            The job as it is then; look at its ``status``. It has not ended where the time was over before.

        Raises:
            NotFoundError: There is none of that number, or somebody else asked for it.
        """
        job = None
        for job in self.events(job_id, timeout_seconds=timeout_seconds):
            if on_progress is not None:
                on_progress(job)
        assert job is not None, "a job has one state at least"
        return job

    def events(self, job_id: int, *, timeout_seconds: float | None = None) -> Iterator[Job]:
        """The job as it is now, and whenever it has come further, until it has ended; as `wait`.

        Yields:
            The job, the last time as it has ended.

        Raises:
            NotFoundError: There is none of that number, or somebody else asked for it.
        """
        yield from followed(self._at, job_id, timeout_seconds=timeout_seconds)

    @override
    def cancel(self, job_id: int) -> Job:
        at, scope = self._at, self._at.present()
        who = "its owner" if at.principal is None else at.principal.user_id or "whoever asked"
        at.store.jobs.cancel(scope, job_id, reason=f"It was cancelled by {who}.")
        return at.store.jobs.get(scope, job_id)

    @override
    def retry(self, job_id: int) -> Job:
        at, scope = self._at, self._at.present()
        at.store.jobs.retry(scope, job_id)
        return at.store.jobs.get(scope, job_id)

    @override
    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: str | None = None,
        source: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Job]:
        found = self._at.store.jobs.page(
            self._at.present(),
            statuses=None if status is None else [status],
            kind=kind,
            collection=self._at.named,
            source=source,
            before=number_at(cursor),
            limit=limit + 1,
        )
        return Page.of(found, limit, lambda job: job.job_id)


# Following a job to its end, and running it where nobody else does.


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
                here = held.enter_context(_here(at))
            # Also one that runs: its worker may be gone, and the queue have it again.
            if here.claims(job, scope):
                yield from here.run(job, scope, deadline)
                continue
            here.recover()
            check()
            time.sleep(LOOK_SECONDS)


def heartbeats_of(settings: JobsConfig) -> Heartbeats:
    """How a worker shows that it is alive, as configured."""
    return Heartbeats(every_seconds=settings.heartbeat_seconds, stalled_seconds=settings.stalled_seconds)


def runner_of(assembly: Assembly, *, together: int = 0) -> JobRunner:
    """What runs the jobs of a store; with one that is taken up to so many that are alike."""
    settings = assembly.config.jobs
    policy = RetryPolicy(max_attempts=settings.max_attempts, backoff_seconds=settings.backoff_seconds)
    view_of: Callable[[Assembly, JobRun], Any] = imported(_VIEW_OF)
    return JobRunner(assembly.store.jobs, partial(view_of, assembly), policy, together=together)


@contextmanager
def _here(at: Standpoint) -> Iterator[_Here]:
    with closing(at.store.database.separate(max_connections=_CONNECTIONS)) as database:
        jobs = JobQueue(database, heartbeats_of(at.config.jobs))
        with jobs.presence() as worker_id:
            yield _Here(at, jobs, worker_id)


class _Here:
    """This process as a worker for single jobs."""

    def __init__(self, at: Standpoint, jobs: JobQueue, worker_id: int) -> None:
        self._runner, self._jobs = runner_of(at.assembly), at.store.jobs
        self._queue, self._worker_id = jobs, worker_id
        self._looked_at = 0.0

    def recover(self) -> None:
        if time.monotonic() - self._looked_at >= _RECOVER_SECONDS:
            self._looked_at = time.monotonic()
            self._queue.recover()

    def claims(self, job: Job, scope: Scope) -> bool:
        self._number = self._jobs.queue_number(scope, job.job_id)
        return self._number is not None and self._queue.claim(self._number, worker_id=self._worker_id)

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
                self._queue.put_off(number, worker_id=self._worker_id, due_at=outcome.due_at)
            else:
                self._queue.finish(number, worker_id=self._worker_id)
            told.put(None)
        except (Exception, Interrupted) as exc:  # noqa: BLE001 - raised by whoever waits
            told.put(exc)
