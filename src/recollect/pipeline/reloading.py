"""Everything that is read from outside, read anew at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import RecollectError, SourceError, StoreUnavailableError
from recollect.ingest.report import FileError, ReloadReport, total
from recollect.pipeline.ingesting import FileOptions, store_files
from recollect.pipeline.refreshing import FolderGoneError, refresh, require_there
from recollect.pipeline.standpoint import EVERY_COLLECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recollect.ingest.report import IngestReport
    from recollect.model.job import Job
    from recollect.model.source import SourceRecord
    from recollect.pipeline.standpoint import Standpoint

    _Reader = tuple[tuple[str | None, str], Callable[[], IngestReport]]

_JOBS = 1_000


def reload(at: Standpoint, records: Sequence[SourceRecord]) -> ReloadReport:
    """Read every known folder, site and source anew, and the folders that jobs watch; what that gave.

    Args:
        at: Whose.
        records: The sources of the view's collections.

    Raises:
        SourceError: Some could not be read; the message names them.
        StoreUnavailableError: The store cannot be reached.
    """
    reports: list[tuple[str, IngestReport]] = []
    skipped: list[FileError] = []
    failed: dict[str, str] = {}
    # A folder that is watched is known by its ingest too, and is read once.
    readers = dict([*_sources(at, known_roots(records)), *_watched(at)])
    for (_, name), read in readers.items():
        try:
            reports.append((name, read()))
        except FolderGoneError as exc:
            skipped.append(FileError(name, exc.reason))
        except StoreUnavailableError:
            # No source is to blame, and none of the others can be read.
            raise
        except RecollectError as exc:
            failed[name] = str(exc)
    if failed:
        raise SourceError(", ".join(failed), " ".join(failed.values()).rstrip("."), retryable=True)
    return ReloadReport(
        read=tuple(sorted(name for name, _ in reports)),
        skipped=tuple(sorted(skipped, key=lambda one: one.path)),
        files=total([report for _, report in reports]),
    )


def known_roots(records: Sequence[SourceRecord]) -> list[SourceRecord]:
    """The sources that something reads; without folders that a folder around them has taken over."""
    folders = {(one.collection, one.location or one.name) for one in records if one.type == "directory"}

    def taken_over(one: SourceRecord) -> bool:
        around = ((one.collection, str(parent)) in folders for parent in Path(one.name).parents)
        return one.type == "directory" and one.documents == 0 and any(around)

    return [
        one
        for one in records
        if one.connector is not None or (one.type in {"directory", "web"} and not taken_over(one))
    ]


def _sources(at: Standpoint, records: Sequence[SourceRecord]) -> Iterator[_Reader]:
    for record in records:
        place = replace(at, collections=(record.collection,))
        read = partial(refresh, place, record, confirm_removals=False, anew=False, on_progress=None)
        yield (record.collection, record.name), read


def _watched(at: Standpoint) -> Iterator[_Reader]:
    """Folders that a worker is to watch, where they are no source that is refreshed anyway."""
    jobs = at.store.jobs.page(at.present(), statuses=("pending", "running"), kind="watch", limit=_JOBS)
    for job in jobs:
        within = EVERY_COLLECTION in at.names or job.collection in at.names
        if job.source is None and within:
            for folder in job.arguments["folders"]:
                yield (job.collection, folder), partial(_read, at, job, folder)


def _read(at: Standpoint, job: Job, folder: str) -> IngestReport:
    require_there(folder, Path(folder))
    given = job.arguments
    options = FileOptions(tags=given.get("tags", ()), permissions=given.get("permissions"))
    place = at if job.collection is None else replace(at, collections=(job.collection,))
    return store_files(place, [Path(folder)], options, sync=True)
