"""Jobs, what the store holds, and who asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, EventStream, Pages, Steps, as_it_is
from recollect.client.reading import Json, read
from recollect.model.history import CleanupReport
from recollect.model.job import Job, JobStatus
from recollect.model.search_health import RetrieverRecall, SearchHealth
from recollect.model.status import PipelineStatus
from recollect.replies.cursors import cursor_at

if TYPE_CHECKING:
    from recollect.client.calls.base import Event


class JobCalls(Calls):
    """Work in the background; see `recollect.View.jobs`. Workers of the server run it, and nobody who waits here."""

    def get(self, job_id: int) -> Call[Job]:
        """A job as it is at this moment."""
        self._at.require_present()
        return Call(method="GET", path=f"/v1/jobs/{job_id}", read=read_job)

    def cancel(self, job_id: int) -> Call[Job]:
        """Have it stop: one that waits does not run, one that runs ends at its next document."""
        self._at.require_present()
        return Call(method="POST", path=f"/v1/jobs/{job_id}/cancel", read=read_job)

    def retry(self, job_id: int) -> Call[Job]:
        """Try one again that has failed or was cancelled."""
        self._at.require_present()
        return Call(method="POST", path=f"/v1/jobs/{job_id}/retry", read=read_job)

    def list(
        self,
        *,
        status: JobStatus | None = None,
        kind: str | None = None,
        source: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Steps[list[Job]]:
        """Jobs, newest first; those before one."""
        pages = self.each(status=status, kind=kind, source=source)
        cursor = None if before is None else cursor_at(before)
        return (yield from Pages(call=pages.call, items=pages.items, cursor=cursor).first(limit))

    def each(
        self, *, status: JobStatus | None = None, kind: str | None = None, source: str | None = None
    ) -> Pages[Job]:
        """All of them, page by page as they are read."""
        self._at.require_present()
        query = {"status": status, "kind": kind, "source": source, "collection": self._at.named}
        call: Call[Json] = Call(method="GET", path="/v1/jobs", query=query, read=dict)
        return Pages(call=call, items=lambda page: [read_job(one) for one in page["jobs"]])

    def events(self, job_id: int) -> EventStream[Job]:
        """A job as it is, and whenever it has come further, until it has ended.

        A connection that breaks is made anew, and goes on where it was.
        """
        self._at.require_present()
        call: Call[Any] = Call(method="GET", path=f"/v1/jobs/{job_id}/events", read=as_it_is)
        return EventStream(call=call, read=_job_event, ends=frozenset({"done"}), resumes="restarted")


class StoreCalls(Calls):
    """What the store holds, and who asks."""

    def status(self) -> Call[PipelineStatus]:
        """What may be read of it, and how searches fare; of a view of one collection, of that."""
        self._at.require_present()
        return Call(method="GET", path="/v1/stats", query={"collection": self._at.named}, read=_status)


class UpkeepCalls(Calls):
    """What has passed its time."""

    def cleanup(self) -> Call[CleanupReport]:
        """Close what has expired, remove expired sessions, and keep the audit's partitions."""
        self._at.require_present()
        return Call(method="POST", path="/v1/cleanup", read=lambda told: read(CleanupReport, told))


def read_job(told: Json) -> Job:
    """A job."""
    return read(Job, told)


def _job_event(event: Event) -> Sequence[Job]:
    return [read_job(event.json())] if event.name in {"job", "done"} else []


def _status(told: Json) -> PipelineStatus:
    from recollect.client.calls.collections import read_collection

    search = told["search"]
    return read(
        PipelineStatus,
        told,
        collections=tuple(read_collection(one) for one in told["collections"]),
        search=_health(search),
        search_by_collection={name: _health(one) for name, one in search["collections"].items()},
        search_days=search["days"],
    )


def _health(told: Json) -> SearchHealth:
    return read(
        SearchHealth,
        told,
        dense=_recall(told["recall_dense"], told["recall_dense_worst"]),
        lexical=_recall(told["recall_lexical"], told["recall_lexical_worst"]),
    )


def _recall(mean: float | None, worst: float | None) -> RetrieverRecall:
    # Of how many searches it is the mean is not told.
    return RetrieverRecall() if mean is None else RetrieverRecall(probes=1, total=mean, worst=worst)


def length_of(seconds: float | None) -> timedelta | None:
    """A length of time that a reply tells in seconds."""
    return None if seconds is None else timedelta(seconds=seconds)
