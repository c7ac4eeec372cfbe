"""Jobs: what is done in the background, how far it has come, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.model.job import JobStatus
from recollect.replies._shape import Shape, Timestamp, iso

if TYPE_CHECKING:
    from recollect.model.job import Job


class JobStageJson(Shape):
    """A part of a job."""

    name: str
    """For instance `fetch`."""
    done: int
    """How much of it is done."""
    total: int | None
    """Of how much; null: not known."""


class JobJson(Shape):
    """A job as it is at this moment."""

    job_id: int
    kind: str
    """What is done, for instance `ingest_url`."""
    status: JobStatus
    collection: str | None
    """Where it writes; null: nowhere in particular."""
    source: str | None
    """The source whose documents it changes; of jobs with the same one, one runs at a time."""
    document: str | None
    """The one document that it is about, by its URI."""
    asked_by: str | None
    """The user who asked for it; null: the store's owner, or nobody by name."""
    priority: int
    """Jobs of a higher one run first."""
    attempts: int
    """How often it was begun, the one under way included."""
    max_attempts: int
    """How often it is begun at most."""
    stages: list[JobStageJson]
    """Its parts, in order, with how far each has come."""
    arguments: dict[str, Any]
    """What it was asked to do, without contents and credentials."""
    result: dict[str, Any] | None
    """What it gave, where it succeeded."""
    error: str | None
    """Why the last attempt failed, or why it was cancelled."""
    cancel_requested: bool
    """Whether it was asked to stop."""
    created_at: Timestamp
    due_at: Timestamp | None
    """When it is tried next; null: as soon as a worker is free, or never."""
    started_at: Timestamp | None
    """When it was first begun."""
    finished_at: Timestamp | None
    """When it ended."""


class JobListJson(Shape):
    """Jobs, newest first."""

    jobs: list[JobJson]
    next_before: int | None
    """Where the next page begins; null: there is none."""


def job_json(job: Job) -> JobJson:
    """A job."""
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "status": job.status,
        "collection": job.collection,
        "source": job.source,
        "document": job.document,
        "asked_by": job.asked_by,
        "priority": job.priority,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "stages": [{"name": stage.name, "done": stage.done, "total": stage.total} for stage in job.stages],
        "arguments": dict(job.arguments),
        "result": None if job.result is None else dict(job.result),
        "error": job.error,
        "cancel_requested": job.cancel_requested,
        "created_at": iso(job.created_at),
        "due_at": iso(job.due_at),
        "started_at": iso(job.started_at),
        "finished_at": iso(job.finished_at),
    }


def job_list_json(jobs: Sequence[Job], *, more: bool) -> JobListJson:
    """A page of jobs, newest first.

    Args:
        jobs: Of the page.
        more: Whether another page follows.
    """
    return {"jobs": [job_json(job) for job in jobs], "next_before": jobs[-1].job_id if jobs and more else None}
