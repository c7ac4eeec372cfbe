"""Jobs: what is done in the background, how far it has come, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from recollect.model.record import Public, Record

JobStatus = Literal["pending", "running", "succeeded", "failed", "cancelled"]

#: Every status, in the order in which a job comes to them.

#: Those that a job does not leave unless it is tried again.
ENDED: frozenset[JobStatus] = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStage(Record):
    """A part of a job.

    Attributes:
        name: For instance ``fetch``.
        done: How much of it is done.
        total: Of how much; None: not known.
    """

    name: Public[str]
    done: Public[int] = 0
    total: Public[int | None] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Record):
    """A job as it was when it was read.

    Attributes:
        job_id: Within its tenant.
        kind: What is done, for instance ``ingest_url``.
        status: ``pending`` (waits to be run, or to be tried again), ``running``, ``succeeded``, ``failed`` (every
            attempt failed) or ``cancelled`` (by somebody, or because no attempt could succeed).
        stages: Its parts, in order, with how far each has come.
        arguments: What it was asked to do, without contents and credentials.
        attempts: How often it was begun, the one under way included.
        max_attempts: How often it is begun at most.
        priority: Jobs of a higher one run first.
        collection: Where it writes; None: nowhere in particular.
        source: The source whose documents it changes; of jobs with the same one, one runs at a time.
        document: The one document that it is about, by its URI.
        asked_by: The user who asked for it; None: the store's owner, or nobody by name.
        error: Why the last attempt failed, or why it was cancelled.
        result: What it gave, where it succeeded.
        cancel_requested: Whether it was asked to stop.
        created_at: When it was asked for.
        due_at: When it is tried next; None: as soon as a worker is free, or never.
        started_at: When it was first begun.
        finished_at: When it ended.
    """

    job_id: Public[int]
    kind: Public[str]
    status: Public[JobStatus]
    stages: Public[tuple[JobStage, ...]] = ()
    arguments: Public[Mapping[str, Any]] = field(default_factory=dict)
    attempts: Public[int] = 0
    max_attempts: Public[int] = 3
    priority: Public[int] = 0
    collection: Public[str | None] = None
    source: Public[str | None] = None
    document: Public[str | None] = None
    asked_by: Public[str | None] = None
    error: Public[str | None] = None
    result: Public[Mapping[str, Any] | None] = None
    cancel_requested: Public[bool] = False
    created_at: Public[datetime]
    due_at: Public[datetime | None] = None
    started_at: Public[datetime | None] = None
    finished_at: Public[datetime | None] = None

    @property
    def ended(self) -> bool:
        """Whether it has succeeded, failed or been cancelled."""
        return self.status in ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job that is asked for.

    Attributes:
        kind: A name of `recollect.jobs.tasks`.
        arguments: What it is to do; whoever may see the job is shown them.
        withheld: Further arguments, which are shown to nobody and removed when the job has ended for good: contents,
            headers, anything that may be a secret.
        source: The source whose documents it changes; of jobs with the same one, one runs at a time.
        lock: What only one job has at a time in the place of its source; None: its source.
        source_type: Of the source, where it is to be made.
        document: The one document that it is about, by its URI within the source. It is seen as pending until it is
            stored, and as an error where the job fails.
        priority: Higher ones run first.
        queue: Which workers take it.
        max_attempts: How often it is begun at most; None: as configured.
    """

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    withheld: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None
    lock: str | None = None
    source_type: Literal["manual", "upload", "web", "api", "directory"] = "manual"
    document: str | None = None
    priority: int = 0
    queue: str = "default"
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """For whom, and where, a job is done: what a view says, in a form that outlives it.

    Attributes:
        collection: By name; None: the configured one.
        session: Of the view, where it has one.
        principal: The fields of a `Principal`; None: the store's owner.
    """

    collection: str | None = None
    session: str | None = None
    principal: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A job that has been begun, with everything that its task needs.

    Attributes:
        tenant_id: Whose it is.
        job_id: Within the tenant.
        run: Which start of it this is; an earlier one can write nothing any more.
        kind: A name of `recollect.jobs.tasks`.
        arguments: The ones that are shown and those that are withheld, together.
        asker: For whom and where.
        attempts: How often it was begun, this time included.
        max_attempts: How often it is begun at most.
        deaths: How many workers died while they ran it.
        cancel_requested: Whether it was asked to stop before it began.
        started_at: When it was begun for the first time.
        since_seconds: How long ago that was.
    """

    tenant_id: int
    job_id: int
    run: int
    kind: str
    arguments: Mapping[str, Any]
    asker: Asker
    attempts: int
    max_attempts: int
    deaths: int
    cancel_requested: bool
    started_at: datetime
    since_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What became of a run.

    Attributes:
        run: Which.
        status: Of its job from now on; ``pending``: it goes on later.
        stages: How far it came.
        error: Why it failed.
        result: What it gave.
        due_at: When the next run begins at the earliest; None: at once.
        counts: Whether it was an attempt.
    """

    run: JobRun
    status: JobStatus
    stages: tuple[JobStage, ...] = ()
    error: str | None = None
    result: Mapping[str, Any] | None = None
    due_at: datetime | None = None
    counts: bool = True


#: Called with a job whenever it has come further.
JobCallback: TypeAlias = Callable[[Job], None]
