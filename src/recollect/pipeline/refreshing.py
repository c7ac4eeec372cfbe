"""Sources read again: their documents updated, and all of them reloaded at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from recollect.documents.walk import printable
from recollect.errors import FetchError, RecollectError, SourceError, StoreUnavailableError, UsageError
from recollect.ingest.report import FileError, ReloadReport, total
from recollect.model.written_files import private_folder
from recollect.pipeline.ingesting import FileOptions, destination, store_changes, store_files
from recollect.pipeline.standpoint import EVERY_COLLECTION, require_refreshable
from recollect.sources.base import MissingSecretError, Surroundings
from recollect.sources.declared import (
    DeclaredSetting,
    connector_class,
    connector_of,
    declared_settings,
    read_settings,
    settings_of_dataclass,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.fetching.crawl import CrawlPlan
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.model.job import Job, JobStatus
    from recollect.model.source import SourceRecord, SourceType
    from recollect.pipeline.standpoint import Standpoint

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
    from recollect.ingest.source import SourceIngest, SourceOptions

    settings = read_settings(record.connector, record.location or "", record.settings)
    store = at.store
    with destination(at, on_progress=on_progress) as place:
        source = store.documents.ensure_source(place.scope, place.collection, record.name, record.type)
        try:
            connector = connector_class(record.connector)(settings, surroundings(at, record))
        except UsageError as exc:
            store.sources.fail(place.scope, source, str(exc))
            raise
        options = SourceOptions(
            include=settings.include,
            exclude=settings.exclude,
            tags=settings.tags,
            max_file_bytes=at.config.ingest.max_file_bytes,
            readers=at.config.ingest.readers,
            max_removed_share=None if confirm_removals else settings.max_removed_share,
            keep_originals=at.config.ingest.keep_originals == "always",
            anew=anew,
        )
        with closing(connector):
            return SourceIngest(
                scope=place.scope,
                collection=place.collection,
                source=source,
                connector=connector,
                options=options,
                sources=store.sources,
                items=store.source_items,
                preparer=place.preparer,
                batch_writer=place.batch_writer,
                documents=store.documents,
                writer=store.writer,
                access=store.access,
                attachments=store.attachments,
                workers=at.assembly.parser_workers,
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
