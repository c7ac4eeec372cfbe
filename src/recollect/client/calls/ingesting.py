"""Whatever is ingested: texts, pages of the web, and files and folders in as many requests as they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from recollect.client.calls.base import Call, Calls, FileToSend, Steps, Upload, listed, once, reading, segment
from recollect.client.calls.collections import CollectionCalls
from recollect.client.calls.jobs import JobCalls, SourceCalls, waited
from recollect.client.place import given
from recollect.client.wire import duration_text
from recollect.errors import NotFoundError, ParseError, QuotaExceededError, RecollectError, UsageError
from recollect.ingest.report import FileError, IngestProgress, Tally
from recollect.model import Document, IngestResult, RetrievalOptions
from recollect.model.arguments import require_no_path
from recollect.model.job import Job

if TYPE_CHECKING:
    from recollect.documents.walk import FoundFile, SkippedFile
    from recollect.fetching.client import Method
    from recollect.fetching.crawl import CrawlPlan
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.model.job import JobCallback


T = TypeVar("T")

# Of one request: whatever the server's limit is, what breaks off is not much.
_MOST_FILES = 50
_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """What is said of files."""

    force: bool = False
    tags: Sequence[str] = ()
    permissions: Sequence[str] | None = None
    follow_links: bool = False


def store_documents(
    calls: IngestCalls, documents: Iterable[Document | str], *, force: bool
) -> Steps[list[IngestResult]]:
    """Texts, one request each."""
    results: list[IngestResult] = []
    for one in documents:
        results.append((yield from calls.text(one, force=force)))  # noqa: PERF401 - a comprehension cannot yield
    return results


def send_files(calls: IngestCalls, paths: Sequence[Path], options: FileOptions, tally: Tally) -> Steps[list[Job]]:
    """Send files and what folders hold; returns the jobs. What is left aside, and what is refused, is counted."""
    jobs: list[Job] = []
    for department, files in _batches(paths, options, tally):
        to_send = [FileToSend(path=one.path, name=one.source) for one in files]
        jobs += yield from _sent(calls, to_send, department, options, tally)
    return jobs


def _sent(
    calls: IngestCalls, files: Sequence[FileToSend], department: str | None, options: FileOptions, tally: Tally
) -> Steps[list[Job]]:
    try:
        return (
            yield from calls.files(
                files,
                force=options.force,
                tags=options.tags,
                permissions=options.permissions,
                department=department,
            )
        )
    except RecollectError as exc:
        if not _about_files(exc):
            raise
        return (yield from _one_by_one(calls, files, department, options, tally, str(exc)))


def _one_by_one(
    calls: IngestCalls,
    files: Sequence[FileToSend],
    department: str | None,
    options: FileOptions,
    tally: Tally,
    reason: str,
) -> Steps[list[Job]]:
    """One file of several is refused with all of them: which one is found by sending each alone."""
    if len(files) == 1:
        tally.fail(files[0].name, reason)
        return []
    jobs: list[Job] = []
    for one in files:
        jobs += yield from _sent(calls, [one], department, options, tally)
    return jobs


def _about_files(exc: RecollectError) -> bool:
    """Whether an error is about what was sent, so that other files may be taken."""
    return isinstance(exc, ParseError | QuotaExceededError | UsageError)


def store_files(
    calls: IngestCalls,
    jobs: JobCalls,
    paths: Sequence[Path],
    options: FileOptions,
    on_progress: ProgressCallback | None,
) -> Steps[IngestReport]:
    """Send files, wait until they are stored, and tell what became of them."""
    started, tally = time.monotonic(), Tally()
    asked = yield from send_files(calls, paths, options, tally)
    for done, job in enumerate(asked, start=1):
        ended = yield from waited(jobs, job)
        _count(tally, ended)
        if on_progress is not None:
            on_progress(IngestProgress(done=done, total=len(asked), chunks=tally.chunks))
    return tally.report(time.monotonic() - started)


def _count(tally: Tally, job: Job) -> None:
    result = job.result or {}
    if job.status != "succeeded":
        name = str(job.document or f"job {job.job_id}")
        tally.fail(name, (job.error or job.status).removeprefix(f"{name}: "))
        return
    if told := result.get("without_text"):
        tally.without_text.append(FileError(str(job.document or f"job {job.job_id}"), str(told)))
    tally.count(
        [
            IngestResult(
                document_id=result["document_id"],
                version=result["version"],
                status=result["status"],
                chunk_count=result["chunks"],
            )
        ]
    )


def _batches(
    paths: Sequence[Path], options: FileOptions, tally: Tally
) -> Iterator[tuple[str | None, Sequence[FoundFile]]]:
    """Files of one department, as many as go into one request."""
    for department, alike in groupby(_found(paths, options, tally), key=_department):
        batch: list[FoundFile] = []
        size = 0
        for one in alike:
            if batch and (len(batch) == _MOST_FILES or size + one.size > _MOST_BYTES):
                yield department, batch
                batch, size = [], 0
            batch.append(one)
            size += one.size
        if batch:
            yield department, batch


def _department(file: FoundFile) -> str | None:
    # As an ingest of folders has it: the first folder below the one that was given.
    first, slash, _ = file.source.partition("/")
    return first if slash else None


def _found(paths: Sequence[Path], options: FileOptions, tally: Tally) -> Iterator[FoundFile]:
    from recollect.documents.walk import FoundFile, walk

    seen: dict[str, Path] = {}
    for one in walk([Path(os.fspath(path)) for path in paths], follow_links=options.follow_links):
        if not isinstance(one, FoundFile):
            _skip(one, tally)
        elif one.size == 0:
            tally.fail(one.source, "is empty")
        elif one.source in seen:
            tally.fail(one.source, f"{seen[one.source]} is called the same, and would be one document with it")
        else:
            seen[one.source] = one.path
            yield one


def _skip(one: SkippedFile, tally: Tally) -> None:
    if one.kind == "unreadable":
        tally.fail(one.source, one.reason)
    else:
        tally.skip(one.kind, one.source, one.reason)


def sorted_out(what: Any) -> tuple[list[Document | str], list[Path]]:  # noqa: ANN401 - whatever is ingested
    """Documents and texts, and paths; one of both is empty.

    Raises:
        UsageError: They are mixed, or something is none of them.
    """
    several = [what] if isinstance(what, Document | str | Path) else list(what)
    paths = [one for one in several if isinstance(one, Path)]
    documents = [one for one in several if isinstance(one, Document | str)]
    if (paths and documents) or len(paths) + len(documents) < len(several):
        raise UsageError("Ingest documents and texts, or paths: not both, and nothing else.")
    for one in documents:
        if isinstance(one, str):
            require_no_path(one)
    return documents, paths


class IngestCalls(Calls):
    """Texts, files and pages of the web into the view's collection."""

    def text(self, document: Document | str, *, force: bool = False) -> Steps[IngestResult]:
        """Store a text; it is findable when the reply comes."""
        one = Document(content=document) if isinstance(document, str) else document
        body = given(
            content=one.content,
            source=one.source,
            id=one.id,
            title=one.title,
            metadata=dict(one.metadata),
            tags=list(one.tags),
            department=one.department,
            language=one.language,
            event_time=None if one.event_time is None else one.event_time.isoformat(),
            event_end=None if one.event_end is None else one.event_end.isoformat(),
            ttl=None if one.ttl is None else duration_text(one.ttl),
            permissions=None if one.permissions is None else list(one.permissions),
            force=force,
        )
        return (yield from self._stored("documents", body=body, read=reading(IngestResult)))

    def files(
        self,
        files: Sequence[FileToSend],
        *,
        force: bool = False,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        department: str | None = None,
    ) -> Steps[list[Job]]:
        """Send files, a job each; they are in the store's hands when the reply comes."""
        fields: dict[str, list[str]] = {
            "tag": list(tags),
            "grant": list(permissions or ()),
            "department": [] if department is None else [department],
            "force": ["true"] if force else [],
            "folders": ["true"] if any("/" in one.name for one in files) else [],
        }
        if permissions is not None and not permissions:
            raise UsageError("permissions names nobody: leave it out for the collection's default.")
        return (
            yield from self._stored(
                "files",
                upload=Upload(files=tuple(files), fields=fields),
                read=listed("jobs", reading(Job)),
            )
        )

    def url(
        self,
        url: str,
        *,
        method: Method = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        force: bool = False,
        crawl: CrawlPlan | None = None,
    ) -> Steps[Job]:
        """Have a page of the web stored, or the pages of a site: a job."""
        said = given(
            url=url,
            method=method,
            headers=dict(headers or {}),
            data=_text(body),
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            tag=list(tags),
            grant=None if permissions is None else list(permissions),
            force=force,
        )
        return (yield from self._stored("urls", body={**said, **_crawl(crawl)}, read=reading(Job)))

    def _stored(self, what: str, read: Callable[[Any], T], **how: Any) -> Steps[T]:  # noqa: ANN401 - as of `Call`
        """Store something in the view's collection, which the owner of the store makes where it is missing."""
        self._at.require_present()
        if self._at.session is not None:
            raise UsageError("A server puts documents into collections: leave the session out.")
        name = yield from self._collection()
        call = Call(method="POST", path=f"/v1/collections/{segment(name)}/{what}", read=read, **how)
        try:
            return (yield from once(call))
        except NotFoundError as missing:
            try:
                yield from CollectionCalls(self._at).ensure(name)
            except RecollectError:
                raise missing from None
        return (yield from once(call))


def _text(body: bytes | str | None) -> str | None:
    if not isinstance(body, bytes):
        return body
    try:
        return body.decode()
    except UnicodeDecodeError as exc:
        raise UsageError("A server takes the body of a request to the web as UTF-8 text, and this is none.") from exc


def _crawl(plan: CrawlPlan | None) -> dict[str, Any]:
    if plan is None:
        return {}
    if plan.subdomains or not plan.obey_robots or plan.at_once != 2:
        raise UsageError("subdomains, obey_robots and at_once are of a crawl in this process: leave them out.")
    said = given(
        depth=plan.depth, max_pages=plan.max_pages, below=plan.below, delay=plan.delay_seconds, sitemaps=plan.sitemaps
    )
    return {"crawl": True, **said}


# What is done every day, as several requests where it takes them.


class EverydayCalls(Calls):
    """Writing, and what a server is configured with; see `recollect.View`."""

    def default_options(self) -> Steps[RetrievalOptions]:
        """The options of a search that the server is configured with."""
        settings = yield from self._settings()
        return RetrievalOptions(top_k=settings["top_k"], mode=settings["mode"])

    @overload
    def ingest(self, what: Document | str, *, force: bool = False) -> Steps[IngestResult]: ...  # type: ignore[overload-overlap]

    @overload
    def ingest(
        self,
        what: Path | Sequence[Path],
        *,
        force: bool = False,
        sync: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Steps[IngestReport]: ...

    @overload
    def ingest(self, what: Iterable[Document | str], *, force: bool = False) -> Steps[list[IngestResult]]: ...

    def ingest(
        self,
        what: Document | str | Path | Iterable[Document | str | Path],
        *,
        force: bool = False,
        sync: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Steps[IngestResult | IngestReport | list[IngestResult]]:
        """Store documents, or files and folders; see `recollect.View.ingest`.

        Files are sent, and read by the server's workers; this returns when they are stored. A document is called by the
        path of its file below the folder that was given.

        Raises:
            UsageError: ``sync`` is asked for: a server does not know which files a folder here has lost.
        """
        documents, paths = sorted_out(what)
        if paths:
            return (
                yield from self.ingest_files(
                    paths,
                    force=force,
                    sync=sync,
                    follow_links=follow_links,
                    tags=tags,
                    permissions=permissions,
                    on_progress=on_progress,
                )
            )
        results = yield from store_documents(IngestCalls(self._at), documents, force=force)
        return results[0] if isinstance(what, Document | str) else results

    def ingest_files(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        force: bool = False,
        sync: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> Steps[IngestReport]:
        """Send files and what folders hold, and wait until the server has stored them; see `ingest`."""
        _refuse_sync(sync)
        several = [paths] if isinstance(paths, str | PathLike) else paths
        options = FileOptions(force=force, tags=tags, permissions=permissions, follow_links=bool(follow_links))
        found = [Path(path) for path in several]
        return (yield from store_files(IngestCalls(self._at), JobCalls(self._at), found, options, on_progress))

    def ingest_url(
        self,
        url: str,
        *,
        method: Method = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | str | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        force: bool = False,
        crawl: CrawlPlan | None = None,
        wait: bool = True,
        on_progress: JobCallback | None = None,
    ) -> Steps[Job]:
        """Have a page of the web stored, or the pages of a site; see `recollect.View.ingest_url`."""
        job = yield from IngestCalls(self._at).url(
            url,
            method=method,
            headers=headers,
            body=body,
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            tags=tags,
            permissions=permissions,
            force=force,
            crawl=crawl,
        )
        if not wait:
            return job
        return (yield from waited(JobCalls(self._at), job, on_progress=on_progress))


def _refuse_sync(sync: bool) -> None:
    if sync:
        raise UsageError(
            "Leave sync out: a server does not know which files a folder here has lost. "
            "Close documents with documents.delete."
        )


class UploadCalls(JobCalls):
    """Jobs, those among them that are asked for here."""

    def upload(
        self,
        files: Path | Sequence[Path],
        *,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
        department: str | None = None,
        force: bool = False,
    ) -> Steps[list[Job]]:
        """Send files, a job each; a document is called by the name of its file."""
        paths = [files] if isinstance(files, Path) else files
        to_send = [FileToSend(path=path, name=path.name) for path in paths]
        return (
            yield from IngestCalls(self._at).files(
                to_send, tags=tags, permissions=permissions, department=department, force=force
            )
        )

    def ingest(
        self,
        paths: Path | Sequence[Path],
        *,
        sync: bool = False,
        force: bool = False,
        follow_links: bool | None = None,
        tags: Sequence[str] = (),
        permissions: Sequence[str] | None = None,
    ) -> Steps[list[Job]]:
        """Send files and what folders hold, a job each; workers of the server store them.

        Raises:
            UsageError: ``sync`` is asked for: a server does not know which files a folder here has lost. Or some of it
                is none that is sent; what else there was is sent.
        """
        _refuse_sync(sync)
        tally = Tally()
        options = FileOptions(force=force, tags=tags, permissions=permissions, follow_links=bool(follow_links))
        given = [paths] if isinstance(paths, Path) else paths
        jobs = yield from send_files(IngestCalls(self._at), given, options, tally)
        if tally.errors:
            told = "; ".join(f"{one.path}: {one.error}" for one in tally.errors[:5])
            raise UsageError(f"{len(tally.errors):,} of the files were not sent ({told}); {len(jobs):,} were.")
        return jobs

    def refresh(self, source: str, *, confirm_removals: bool = False, anew: bool = False) -> Call[Job]:
        """Ask for a source to be refreshed; see `recollect.View.jobs`."""
        return SourceCalls(self._at).ask_for_refresh(source, confirm_removals=confirm_removals, anew=anew)

    def wait(
        self,
        job_id: int,
        *,
        timeout_seconds: float | None = None,
        on_progress: JobCallback | None = None,
    ) -> Steps[Job]:
        """A job when it has ended, or when it has been waited for so long. Workers of the server run it."""
        job = yield self.get(job_id)
        return (yield from waited(self, job, timeout_seconds=timeout_seconds, on_progress=on_progress))
