"""Everything that is read from outside, read anew at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, SourceError
from recollect.pipeline.ingesting import FileOptions, store_files
from recollect.pipeline.refreshing import refresh
from recollect.pipeline.standpoint import EVERY_COLLECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recollect.ingest.report import IngestReport
    from recollect.model.job import Job
    from recollect.model.source import SourceRecord
    from recollect.pipeline.standpoint import Standpoint

_JOBS = 1_000


def reload(at: Standpoint, records: Sequence[SourceRecord]) -> list[IngestReport]:
    """Refresh sources, and read the folders that jobs watch; what each gave.

    Args:
        at: Whose.
        records: The sources of the view's collections.

    Raises:
        SourceError: Some could not be read; the message names them.
    """
    reports: list[IngestReport] = []
    failed: dict[str, str] = {}
    for name, read in [*_sources(at, records), *_watched(at)]:
        try:
            reports.append(read())
        except RecollectError as exc:
            failed[name] = str(exc)
    if failed:
        raise SourceError(", ".join(failed), " ".join(failed.values()).rstrip("."), retryable=True)
    return reports


def _sources(at: Standpoint, records: Sequence[SourceRecord]) -> Iterator[tuple[str, Callable[[], IngestReport]]]:
    for record in records:
        if record.connector is not None:
            place = replace(at, collections=(record.collection,))
            yield (
                record.name,
                partial(refresh, place, record, confirm_removals=False, anew=False, on_progress=None),
            )


def _watched(at: Standpoint) -> Iterator[tuple[str, Callable[[], IngestReport]]]:
    """Folders that a worker is to watch, where they are no source that is refreshed anyway."""
    jobs = at.store.jobs.page(at.present(), statuses=("pending", "running"), kind="watch", limit=_JOBS)
    for job in jobs:
        within = EVERY_COLLECTION in at.names or job.collection in at.names
        if job.source is None and within:
            yield ", ".join(job.arguments["folders"]), partial(_read, at, job)


def _read(at: Standpoint, job: Job) -> IngestReport:
    given = job.arguments
    options = FileOptions(tags=given.get("tags", ()), permissions=given.get("permissions"))
    place = at if job.collection is None else replace(at, collections=(job.collection,))
    return store_files(place, [Path(folder) for folder in given["folders"]], options, sync=True)
