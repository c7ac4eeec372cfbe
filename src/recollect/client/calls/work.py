"""Jobs, what the store holds, and who asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, EventStream, as_it_is, reading
from recollect.client.calls.declared import asked
from recollect.model.job import Job
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


def _job_event(event: Event) -> Sequence[Job]:
    return [reading(Job)(event.json())] if event.name in {"job", "done"} else []


def length_of(seconds: float | None) -> timedelta | None:
    """A length of time that a reply tells in seconds."""
    return None if seconds is None else timedelta(seconds=seconds)
