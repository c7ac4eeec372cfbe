"""Where documents come from."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Call, Calls, Steps, once, reading
from recollect.client.calls.declared import asked
from recollect.client.calls.ingesting import waited
from recollect.client.calls.work import JobCalls
from recollect.client.options import duration_text
from recollect.client.place import given
from recollect.client.problems import error_of_kind
from recollect.client.reading import Json, read
from recollect.errors import NotFoundError, SourceError
from recollect.ingest.report import FileError, IngestProgress, IngestReport
from recollect.model.job import Job
from recollect.model.page import Page
from recollect.model.source import SourceRecord
from recollect.operations.declaring import operations_of
from recollect.operations.sources import SourceOperations

if TYPE_CHECKING:
    from recollect.ingest.report import ProgressCallback
    from recollect.model.time import Duration


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
        return _report(ended.result or {}, seconds=time.monotonic() - began)

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


def _report(told: Json, *, seconds: float) -> IngestReport:
    def errors(key: str, reason: str) -> tuple[FileError, ...]:
        return tuple(FileError(one["path"], one[reason]) for one in told.get(key, ()))

    return read(
        IngestReport,
        {"skip_reasons": {}, **told},
        seconds=seconds,
        errors=errors("errors", "error"),
        too_large=errors("too_large", "reason"),
        without_text=errors("without_text", "reason"),
        closed=errors("closed", "reason"),
    )
