"""What is done with jobs, and with the store as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from recollect.model.history import CleanupReport
from recollect.model.job import Job, JobStatus
from recollect.model.page import Page, every
from recollect.model.status import PipelineStatus
from recollect.operations.declaring import operation
from recollect.operations.values import Cursor, Limit, Name, Number


class JobOperations(Protocol):
    """Work in the background: looked at, stopped and tried again."""

    @operation("GET /v1/jobs", "reader", of_view=("collection",))
    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: Name | None = None,
        source: Name | None = None,
        cursor: Cursor | None = None,
        limit: Limit = 100,
    ) -> Page[Job]:
        """List jobs, newest first.

        A user's own, and to the owner of the store those of the tenant; of a view that was given a collection, those
        that write there.

        Args:
            status: Only in this one.
            kind: Only of this kind, for instance ``ingest_url``.
            source: Only those that change documents of this source.
            cursor: ``next_cursor`` of the page before; None: the first page.
            limit: Jobs at most.

        Raises:
            UsageError: The cursor is none of this list.
        """
        ...

    @operation("GET /v1/jobs/{job_id}", "reader")
    def get(self, job_id: Number) -> Job:
        """Show a job as it is now.

        Args:
            job_id: Its number.

        Raises:
            NotFoundError: There is none of that number, or somebody else asked for it.
        """
        ...

    @operation("POST /v1/jobs/{job_id}/cancel", "writer")
    def cancel(self, job_id: Number) -> Job:
        """Cancel a job.

        One that waits does not run; one that runs ends at its next document, and keeps what it stored. One that has
        ended is left as it is.

        Args:
            job_id: Its number.

        Raises:
            NotFoundError: There is none of that number, or somebody else asked for it.
        """
        ...

    @operation("POST /v1/jobs/{job_id}/retry", "writer")
    def retry(self, job_id: Number) -> Job:
        """Try a job again.

        One that has failed or was cancelled, with as many attempts as at first. A worker runs it.

        Args:
            job_id: Its number.

        Raises:
            NotFoundError: There is none of that number, or somebody else asked for it.
            ConflictError: It has succeeded, or has not ended.
        """
        ...

    def each(
        self, *, status: JobStatus | None = None, kind: str | None = None, source: str | None = None
    ) -> Iterator[Job]:
        """All of them, page by page as they are read."""
        return every(self.list, status=status, kind=kind, source=source)


# What is done with the store as a whole.


class MaintenanceOperations(Protocol):
    """The store as a whole: what it holds, and what has passed its time."""

    @operation("GET /v1/stats", "reader", of_view=("collection",))
    def status(self) -> PipelineStatus:
        """Show what the store holds, and how its searches fare.

        Of the tenant's collections, or of the one that the view was given, as far as its principal may read it.

        Raises:
            NotFoundError: There is no such collection.
        """
        ...

    @operation("POST /v1/cleanup", "operator")
    def cleanup(self) -> CleanupReport:
        """Close what has expired.

        Expired sessions are removed, and the audit's partitions kept. The server does it every so many hours anyway.
        Partitions hold what all tenants have.
        """
        ...
