"""Jobs, what the store holds, and who asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, EventStream, as_it_is, reading
from recollect.client.calls.declared import asked
from recollect.client.reading import Json, read
from recollect.model.collection import Collection
from recollect.model.history import CleanupReport
from recollect.model.job import Job
from recollect.model.search_health import RetrieverRecall, SearchHealth
from recollect.model.status import PipelineStatus
from recollect.operations.declaring import operations_of
from recollect.operations.jobs import JobOperations

if TYPE_CHECKING:
    from recollect.client.calls.base import Event


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


def _job_event(event: Event) -> Sequence[Job]:
    return [reading(Job)(event.json())] if event.name in {"job", "done"} else []


def _status(told: Json) -> PipelineStatus:
    search = told["search"]
    return read(
        PipelineStatus,
        told,
        collections=reading(tuple[Collection, ...])(told["collections"]),
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
