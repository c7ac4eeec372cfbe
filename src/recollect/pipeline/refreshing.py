"""Sources brought up to date: refreshed, all of them read again, and folders watched as they change."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from recollect.documents.walk import printable, require_roots
from recollect.errors import FetchError, NotFoundError, RecollectError, SourceError, StoreUnavailableError, UsageError
from recollect.ingest.report import FileError, IngestReport, ProgressCallback, ReloadReport, total
from recollect.model.job import Job, JobStatus, NewJob
from recollect.model.principal import read_permissions
from recollect.model.written_files import private_folder
from recollect.pipeline.ingesting import FileOptions, destination, store_changes, store_files
from recollect.pipeline.jobs import enqueue
from recollect.pipeline.standpoint import EVERY_COLLECTION, Standpoint, require_refreshable
from recollect.sources.base import MissingSecretError, Surroundings
from recollect.sources.declared import (
    DeclaredSetting,
    connector_class,
    connector_of,
    declared_settings,
    read_settings,
    settings_of_dataclass,
)
from recollect.sources.watching import FolderChanges, FolderWatch

if TYPE_CHECKING:
    from recollect.fetching.crawl import CrawlPlan
    from recollect.model.source import SourceRecord, SourceType

    _Reader = tuple[tuple[str | None, str], Callable[[], IngestReport]]


#: The connectors of folders and of pages of the web, which are read by what reads them otherwise.
DIRECTORY, WEB = "directory", "web"


# A refresh ends at its next document, which may be a long one.
_ENDING_SECONDS = 30.0


class FolderGoneError(SourceError):
    """A folder is not there to be read; nothing of it is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConnection:
    """A source that is to be read, checked."""

    connector: str
    type: SourceType
    name: str
    location: str
    settings: Mapping[str, Any]


def reader_of(location: str, *, connector: str | None) -> str | None:
    """The connector that reads a location: the one that is named, or that it looks like; None: it looks like none."""
    found = connector or connector_of(location)
    if found is None and "://" not in location:
        return DIRECTORY
    if found is None and location.lower().startswith(("https://", "http://")):
        return WEB
    return found


def uses_machine(location: str, *, connector: str | None, settings: Mapping[str, Any]) -> bool:
    """Whether a source is read with what the machine has that reads it: its files, its variables, its keys.

    Of sources that everybody could read it is not; of connectors of other packages it is not known, so it is.
    """
    reader = reader_of(location, connector=connector)
    if reader == WEB:
        return False
    if any(isinstance(value, str) and value.startswith("env:") for value in settings.values()):
        return True
    if reader == "s3":
        return settings.get("anonymous") is not True
    public = location.lower().startswith(("https://", "http://", "git://", "git+https://", "git+http://"))
    return not (reader == "git" and public and settings.get("ssh_key") is None)


def settings_declared_by(reader: str) -> tuple[DeclaredSetting, ...]:
    """The settings that what reads a location declares; none where it declares none."""
    from recollect.fetching.crawl import CrawlPlan

    if reader == DIRECTORY:
        return (DeclaredSetting(name="watch", kind="switch", default=False),)
    return settings_of_dataclass(CrawlPlan) if reader == WEB else declared_settings(reader)


def connection_of(location: str, *, connector: str | None, settings: Mapping[str, Any]) -> NewConnection:
    """What a location and settings mean.

    Raises:
        UsageError: The location is no connector's, or a setting is not valid.
    """
    found = reader_of(location, connector=connector)
    if found == DIRECTORY:
        return _folder(location, settings)
    if "watch" in settings:
        raise UsageError(
            "Only a folder can be watched. What is elsewhere is refreshed every so often: every (--every)."
        )
    if found == WEB:
        return _site(location, settings)
    if found is None:
        raise UsageError(
            f"No connector reads {location!r}. Name a bucket (s3://…), a repository (https://….git, ssh://…), a "
            "page (https://…) or a folder, or say which connector it is for."
        )
    checked = read_settings(found, location, settings)
    given = checked.model_dump(mode="json", exclude_defaults=True, exclude={"location"})
    return NewConnection(connector=found, type="api", name=location, location=location, settings=given)


def _folder(location: str, settings: Mapping[str, Any]) -> NewConnection:
    path = Path(location)
    if set(settings) - {"watch"} or settings.get("watch") not in {None, True, False}:
        raise UsageError(
            "A folder has no settings but watch, which is true or false: what is left out of it stands in its "
            ".recollectignore."
        )
    try:
        found = path.is_dir()
    except OSError as exc:
        # As where a name is longer than the file system allows.
        raise UsageError(f"{location[:200]!r} cannot be looked for: {exc.strerror}.") from exc
    if not found:
        raise UsageError(
            f"{location!r} is no folder here, and no connector reads it. Give a folder that is there, "
            "s3://BUCKET/PREFIX, imaps://USER@HOST, the address of a repository, or say the connector."
        )
    full = printable(path.resolve())
    watch = {"watch": True} if settings.get("watch") else {}
    return NewConnection(connector=DIRECTORY, type="directory", name=full, location=full, settings=watch)


def _site(location: str, settings: Mapping[str, Any]) -> NewConnection:
    from recollect.fetching.urls import parse_url

    try:
        url = parse_url(location)
        _plan(settings)
    except FetchError as exc:
        raise UsageError(str(exc)) from exc
    return NewConnection(connector=WEB, type="web", name=url.host, location=str(url), settings=dict(settings))


def _plan(settings: Mapping[str, Any]) -> CrawlPlan:
    from recollect.fetching.crawl import CrawlPlan

    known = {one.name: one.type for one in fields(CrawlPlan)}
    for name, value in settings.items():
        if name not in known:
            raise UsageError(f"There is no setting {name!r} of a site; there are {', '.join(known)}.")
        if type(value).__name__ != known[name] and not (known[name] == "float" and type(value) is int):
            raise UsageError(f"The setting {name} of a site is of type {known[name]}.")
    return CrawlPlan(**settings).checked()


def refresh(
    at: Standpoint, record: SourceRecord, *, confirm_removals: bool, anew: bool, on_progress: ProgressCallback | None
) -> IngestReport:
    """Bring the store to what a source holds; the arguments are those of `Sources.refresh`."""
    if record.type == "directory":
        return _refresh_folder(at, record, on_progress=on_progress)
    if record.type == "web":
        return _refresh_site(at, record, confirm_removals=confirm_removals, anew=anew, on_progress=on_progress)
    require_refreshable(record)
    assert record.connector is not None, "what is neither a folder nor a site has a connector"
    from recollect.ingest.source import SourceIngest

    settings = read_settings(record.connector, record.location or "", record.settings)
    store = at.store
    with destination(at, on_progress=on_progress) as place:
        source = store.documents.ensure_source(place.scope, place.collection, record.name, record.type)
        try:
            connector = connector_class(record.connector)(settings, surroundings(at, record))
        except UsageError as exc:
            store.sources.fail(place.scope, source, str(exc))
            raise
        with closing(connector):
            return SourceIngest(
                scope=place.scope,
                collection=place.collection,
                source=source,
                connector=connector,
                include=settings.include,
                exclude=settings.exclude,
                tags=settings.tags,
                max_file_bytes=at.config.ingest.max_file_bytes,
                max_removed_share=None if confirm_removals else settings.max_removed_share,
                keep_originals=at.config.ingest.keep_originals == "always",
                anew=anew,
                sources=store.sources,
                items=store.source_items,
                preparer=place.preparer,
                batch_writer=place.batch_writer,
                documents=store.documents,
                writer=store.writer,
                access=store.access,
                attachments=store.attachments,
                workers=at.assembly.parser_workers,
                readers=at.config.ingest.readers,
                on_progress=on_progress,
            ).run()


def _refresh_folder(at: Standpoint, record: SourceRecord, *, on_progress: ProgressCallback | None) -> IngestReport:
    folder = Path(record.location or record.name)
    with _noted(at, record):
        require_there(record.name, folder)
        if record.connector is None:
            return _read_again(at, record, folder, on_progress=on_progress)
        return store_files(at, [folder], FileOptions(on_progress=on_progress, apart=()), sync=True)


def require_there(name: str, folder: Path) -> None:
    """Refuse to read a folder that is not there.

    Raises:
        FolderGoneError: It is not. It may come back: what it holds is not known, so its documents are not gone.
    """
    if not folder.is_dir():
        raise FolderGoneError(name, "the folder is not there; its documents stay", retryable=False)


def _read_again(
    at: Standpoint, record: SourceRecord, folder: Path, *, on_progress: ProgressCallback | None
) -> IngestReport:
    """Read what an ingest has read of a folder, as it was read then; nothing else of the folder was ever asked for."""
    from recollect.ingest.report import FileError, total
    from recollect.ingest.roots import Reading, readings

    scope = at.owner()
    source = at.store.documents.ensure_source(scope, at.place(scope), record.name, record.type)
    read = readings(at.store.documents.source_metadata(scope, source))
    if not read:
        why = "it is not known which of its files were read. Ingest it once more; its documents stay"
        raise FolderGoneError(record.name, why, retryable=False)
    # What is mounted there may be missing: an empty folder tells nothing of its documents.
    gone = [path for path in read if path[-1:] in {"", "/"} and not _holds_something(folder / path)]
    files = [path for path in read if not path.endswith("/") and path and not (folder / path).exists()]
    if "" in gone:
        raise FolderGoneError(record.name, "the folder is empty; its documents stay", retryable=False)
    by_reading: dict[Reading, list[str]] = {}
    for path, how in read.items():
        by_reading.setdefault(how, []).append(path)
    reports = []
    for how, paths in by_reading.items():
        options = FileOptions(
            tags=how.tags,
            permissions=how.permissions,
            follow_links=how.follow_links,
            on_progress=on_progress,
            apart=[path for path in read if path not in paths or path in gone],
        )
        there = [folder / path for path in paths if path not in gone and path not in files]
        if there:
            reports.append(store_files(at, there, options, sync=True))
        if closed := [folder / path for path in paths if path in files]:
            reports.append(store_changes(at, folder, closed, options))
    if len(gone) == len(read):
        raise FolderGoneError(record.name, "the folder is not there or empty; its documents stay", retryable=False)
    report = total(reports)
    left = tuple(FileError(str(folder / path), "the folder is not there or empty; its documents stay") for path in gone)
    return replace(report, failed=report.failed + len(left), errors=(*report.errors, *left))


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _refresh_site(
    at: Standpoint, record: SourceRecord, *, confirm_removals: bool, anew: bool, on_progress: ProgressCallback | None
) -> IngestReport:
    from recollect.fetching.client import PageRequest
    from recollect.pipeline import web

    with _noted(at, record):
        if record.location is None or record.refreshed_at is not None:
            return web.refresh(at, record.name, confirm_removals=confirm_removals, anew=anew, on_progress=on_progress)
        request = web.UrlRequest(page=PageRequest(url=record.location), plan=_plan(record.settings))
        return web.store_site(at, request.checked(), on_progress=on_progress)


def read_no_more(at: Standpoint, record: SourceRecord) -> None:
    """End the jobs that read a source; those that refresh it are waited for, since what they store is to go as well."""
    from recollect.pipeline.jobs import followed

    jobs, scope = at.store.jobs, at.present()
    statuses: tuple[JobStatus, ...] = ("pending", "running")
    for kind in ("watch", "refresh_source"):
        for job in jobs.page(scope, statuses=statuses, kind=kind, collection=record.collection, source=record.name):
            jobs.cancel(scope, job.job_id, reason=f"The source {record.name!r} was removed.")
            if kind == "refresh_source":
                deque(followed(at, job.job_id, timeout_seconds=_ENDING_SECONDS), maxlen=0)


@contextmanager
def _noted(at: Standpoint, record: SourceRecord) -> Iterator[None]:
    """How a refresh goes is noted of a source that was added as one."""
    scope, sources = at.owner(), at.store.sources
    source = at.store.documents.ensure_source(scope, at.place(scope), record.name, record.type)
    if record.connector is not None:
        sources.begin(scope, source)
    try:
        yield
    except RecollectError as exc:
        if not isinstance(exc, StoreUnavailableError):
            sources.fail(scope, source, str(exc))
        raise
    sources.end(scope, source)


def require_openable(at: Standpoint, new: NewConnection) -> None:
    """Open what a connector would read, without contacting it, so that nothing is added that no refresh could open.

    Raises:
        UsageError: The connector refuses the location or a setting.
    """
    if new.connector in {DIRECTORY, WEB}:
        return
    settings = read_settings(new.connector, new.location, new.settings)
    with TemporaryDirectory() as folder:
        try:
            connector_class(new.connector)(settings, _surroundings(at, new.name, Path(folder))).close()
        except MissingSecretError:
            return  # it may be set where the source is refreshed


def surroundings(at: Standpoint, record: SourceRecord) -> Surroundings:
    """What a source's connector may use of this machine, as configured."""
    # Copies of private repositories are in it: nobody else reads them, whatever they were made with.
    private_folder(own_folder(at, record).parent)
    return _surroundings(at, record.name, private_folder(own_folder(at, record)))


def _surroundings(at: Standpoint, name: str, folder: Path) -> Surroundings:
    from recollect.fetching.urls import parse_url

    settings = at.config.sources
    guard = at.assembly.fetcher.guard

    def addresses(url: str) -> list[str]:
        try:
            return guard.addresses(parse_url(url), timeout_seconds=settings.timeout_seconds)
        except FetchError as exc:
            raise SourceError(name, exc.reason, retryable=exc.retryable) from exc

    return Surroundings(
        folder=folder,
        addresses=addresses,
        environment=os.environ,
        timeout_seconds=settings.timeout_seconds,
        allow_local=settings.allow_local_repositories,
    )


def own_folder(at: Standpoint, record: SourceRecord) -> Path:
    """What a source's connector keeps on this machine; it may be emptied at any time."""
    return at.config.storage.data_dir / "sources" / f"{at.owner().tenant_id}-{record.source_id}"


# Everything that is read from outside, read anew at once.

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


# Folders that are watched: what changes in them is stored as it settles.


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
