"""Jobs, waited for, and sources, whose refreshes are jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, EventStream, Pause, Steps, as_it_is, asked, once, reading
from recollect.client.place import given
from recollect.client.requests import error_of_kind
from recollect.client.wire import duration_text
from recollect.errors import NotFoundError, SourceError
from recollect.ingest.report import IngestProgress, IngestReport
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.source import SourceRecord
from recollect.operations.collections import SourceOperations
from recollect.operations.declaring import operations_of
from recollect.operations.jobs import JobOperations

if TYPE_CHECKING:
    from recollect.client.calls.base import Event
    from recollect.ingest.report import ProgressCallback
    from recollect.model.time import Duration


class JobCalls(Calls):
    """Work in the background; see `recollect.View.jobs`. Workers of the server run it, and nobody who waits here."""

    get = asked(operations_of(JobOperations)["get"])
    cancel = asked(operations_of(JobOperations)["cancel"])

    def events(self, job_id: int) -> EventStream[Job]:
        """A job as it is, and whenever it has come further, until it has ended.

        A connection that breaks is made anew, and goes on where it was.
        """
        self._at.require_present()
        call: Call[Any] = Call(method="GET", path=f"/v1/jobs/{job_id}/events", read=as_it_is)
        return EventStream(call=call, read=_job_event, ends=frozenset({"done"}), resumes="restarted")


def _job_event(event: Event) -> Sequence[Job]:
    return [reading(Job)(event.json())] if event.name in {"job", "done"} else []


def length_of(seconds: float | None) -> timedelta | None:
    """A length of time that a reply tells in seconds."""
    return None if seconds is None else timedelta(seconds=seconds)


_FIRST_LOOK = 0.05
_SELDOM_LOOK = 2.0


def waited(
    jobs: JobCalls,
    job: Job,
    *,
    timeout_seconds: float | None = None,
    on_progress: Callable[[Job], None] | None = None,
    settled: Callable[[Job], bool] | None = None,
) -> Steps[Job]:
    """A job when it has ended (or is ``settled``), or when it has been waited for so long."""
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    wait, seen = _FIRST_LOOK, None
    while True:
        if job != seen:
            seen, wait = job, _FIRST_LOOK
            if on_progress is not None:
                on_progress(job)
        over = job.ended if settled is None else settled(job)
        if over or (deadline is not None and time.monotonic() >= deadline):
            return job
        yield Pause(wait if deadline is None else max(0.0, min(wait, deadline - time.monotonic())))
        wait = min(wait * 1.5, _SELDOM_LOOK)
        job = yield jobs.get(job.job_id)


# Where documents come from.


class SourceCalls(Calls):
    """Where the documents of the view's collection come from; see `recollect.View.sources`."""

    list: Callable[..., Call[Page[SourceRecord]]] = asked(operations_of(SourceOperations)["list"])

    def add(
        self,
        location: str,
        *,
        connector: str | None = None,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        every: Duration | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Call[SourceRecord]:
        """Have a place outside read into the view's collection, with the files and credentials of the server."""
        self._at.require_present()
        body = given(
            collection=self._at.named,
            location=location,
            connector=connector,
            name=name,
            settings=dict(settings or {}),
            every=None if every is None else duration_text(every),
            metadata=None if metadata is None else dict(metadata),
        )
        return Call(method="POST", path="/v1/sources", body=body, read=reading(SourceRecord))

    def get(self, source: str) -> Steps[SourceRecord]:
        """A source, with what is known of its refreshing."""
        found = yield from once(self.list(name=source))
        if not found:
            name = yield from self._collection()
            raise NotFoundError(
                f"There is no source {source!r} in the collection {name!r}. `recollect sources list` shows what there "
                "is."
            )
        return found[0]

    def refresh(
        self,
        source: str,
        *,
        confirm_removals: bool = False,
        anew: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> Steps[IngestReport]:
        """Have a worker of the server bring the store to what a source holds now, and wait until it has.

        Raises:
            SourceError: It cannot be read; the server may try it again, which its job shows.
        """
        began = time.monotonic()
        job = yield from once(self.ask_for_refresh(source, confirm_removals=confirm_removals, anew=anew))
        ended = yield from waited(
            JobCalls(self._at),
            job,
            on_progress=None if on_progress is None else lambda now: on_progress(_progress(now)),
            settled=_settled,
        )
        if ended.status != "succeeded":
            raise error_of_kind(SourceError, ended.error or f"Job {ended.job_id} was {ended.status}.", location=source)
        return reading(IngestReport)({**(ended.result or {}), "seconds": round(time.monotonic() - began, 3)})

    def ask_for_refresh(self, source: str, *, confirm_removals: bool = False, anew: bool = False) -> Call[Job]:
        """As `refresh`, without waiting: a job."""
        self._at.require_present()
        body = given(collection=self._at.named, source=source, confirm_removals=confirm_removals, anew=anew)
        return Call(method="POST", path="/v1/sources/refresh", body=body, read=reading(Job))


def _settled(job: Job) -> bool:
    # One that failed waits for its next attempt: whoever waits here is told why.
    return job.ended or (job.status == "pending" and job.error is not None)


def _progress(job: Job) -> IngestProgress:
    come = [stage for stage in job.stages if stage.done or stage.total]
    done, total = (come[-1].done, come[-1].total) if come else (0, None)
    return IngestProgress(done=done, total=total or 0, chunks=0)
