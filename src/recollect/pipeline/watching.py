"""Folders that are watched: what changes in them is stored as it settles."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.documents.walk import require_roots
from recollect.errors import NotFoundError, StoreUnavailableError, UsageError
from recollect.model.job import NewJob
from recollect.model.principal import read_permissions
from recollect.pipeline.ingesting import FileOptions, store_changes, store_files
from recollect.pipeline.jobs import enqueue
from recollect.sources.watching import FolderWatch

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport
    from recollect.model.job import Job
    from recollect.model.source import SourceRecord
    from recollect.pipeline.standpoint import Standpoint
    from recollect.sources.watching import FolderChanges

#: Of jobs that watch folders: a worker runs them beside those that come to an end (`recollect.jobs.worker.WATCH`).
WATCH_QUEUE = "watch"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPass:
    """What was done about changes of a watched folder.

    Attributes:
        folder: As it was given.
        report: What became of its files; None: nothing could be done.
        whole: Whether the whole folder was looked through, as at the beginning.
        problem: Why nothing could be done, in words; it is tried again.
    """

    folder: Path
    report: IngestReport | None = None
    whole: bool = False
    problem: str | None = None


class Watching(Iterator[WatchPass]):
    """Folders while they are watched: an iterator over what is done, which waits for changes.

    It ends when `stop` is called, from another thread or a signal handler.

    Args:
        at: Where documents go.
        folders: Which.
        options: How files are stored.
        polling: See `Sources.watch`.
    """

    def __init__(self, at: Standpoint, folders: Sequence[Path], options: FileOptions, *, polling: bool | None) -> None:
        self._at = at
        self._options = options
        self._stopped = threading.Event()
        self._watch = FolderWatch(folders, stop=self._stopped, polling=polling)
        self._passes = self._run()

    def __next__(self) -> WatchPass:
        return next(self._passes)

    def stop(self) -> None:
        """End the iteration after what it is at."""
        self._stopped.set()

    def close(self) -> None:
        """End the iteration; what it is at is done to its end first."""
        self.stop()
        self._passes.close()

    def _run(self) -> Generator[WatchPass]:
        for changes in self._watch.changes():
            done = self._take_up(changes)
            if done is not None:
                yield done

    def _take_up(self, changes: FolderChanges) -> WatchPass | None:
        folder = changes.folder
        if changes.gone:
            return WatchPass(folder=folder, problem="the folder is not there; its documents stay until it is back")
        try:
            if changes.whole:
                report = store_files(self._at, [folder], self._options, sync=True)
            else:
                report = store_changes(self._at, folder, changes.paths, self._options)
        except (NotFoundError, StoreUnavailableError) as exc:
            if isinstance(exc, NotFoundError) and folder.is_dir():
                raise  # the collection or the tenant is gone, and will not come back by waiting
            self._watch.again(folder)
            return WatchPass(folder=folder, whole=changes.whole, problem=str(exc))
        if changes.whole or _did_something(report):
            return WatchPass(folder=folder, report=report, whole=changes.whole)
        return None


def _did_something(report: IngestReport) -> bool:
    return bool(report.added or report.updated or report.removed or report.failed)


def ask_to_watch(
    at: Standpoint,
    folders: Sequence[Path],
    *,
    tags: Sequence[str] = (),
    permissions: Sequence[str] | None = None,
    polling: bool | None = None,
    source: str | None = None,
) -> Job:
    """Have a worker watch folders until the job is cancelled; the arguments are those of `Sources.watch`.

    A worker runs it beside the jobs that it runs at a time; where that worker ends, another one goes on.

    Args:
        at: Where documents go.
        folders: Which.
        tags: As there.
        permissions: As there.
        polling: As there.
        source: For which source they are watched; None: for whoever asks.

    Raises:
        NotFoundError: A folder does not exist.
        UsageError: One of them is a file, or a permission is none.
    """
    given = {
        "folders": [str(folder.resolve()) for folder in require_folders(folders)],
        "tags": list(tags),
        "permissions": None if permissions is None else list(read_permissions(permissions).as_tokens()),
        "polling": polling,
    }
    lock = None if source is None else f"watch {source}"
    return enqueue(at, NewJob(kind="watch", arguments=given, source=source, lock=lock, queue=WATCH_QUEUE))


def keep_watched(at: Standpoint, record: SourceRecord) -> bool:
    """Have a worker watch a folder that is a source to be watched, unless one is to already; whether that was asked."""
    folder = Path(record.location or record.name)
    watched = at.store.jobs.page(
        at.present(),
        statuses=("pending", "running"),
        kind="watch",
        collection=record.collection,
        source=record.name,
        limit=1,
    )
    if watched or not record.settings.get("watch") or not folder.is_dir():
        return False
    ask_to_watch(at, [folder], source=record.name)
    return True


def require_folders(folders: Sequence[Path]) -> list[Path]:
    """The folders to watch, none inside another.

    Raises:
        NotFoundError: One does not exist.
        UsageError: None is given, or one is a file.
    """
    if not folders:
        raise UsageError("Name at least one folder to watch.")
    require_roots(folders)
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{str(folder)!r} is no folder: watch the folder that it is in, or ingest it.")
    distinct = {folder.resolve(): folder for folder in folders}
    return [folder for full, folder in distinct.items() if not any(outer in distinct for outer in full.parents)]
