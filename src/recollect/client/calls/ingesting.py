"""Whatever is ingested: texts one after the other, files and folders in as many requests as they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.client.calls.base import Pause, Steps
from recollect.client.calls.documents import IngestCalls
from recollect.client.calls.work import JobCalls
from recollect.client.uploads import FileToSend
from recollect.errors import ParseError, QuotaExceededError, RecollectError, UsageError
from recollect.ingest.report import FileError, IngestProgress, Tally
from recollect.model import Document, IngestResult
from recollect.model.arguments import require_no_path
from recollect.model.job import Job

if TYPE_CHECKING:
    from recollect.documents.walk import FoundFile, SkippedFile
    from recollect.ingest.report import IngestReport, ProgressCallback

# Of one request: whatever the server's limit is, what breaks off is not much.
_MOST_FILES = 50
_MOST_BYTES = 32 * 1024 * 1024

_FIRST_LOOK = 0.05
_SELDOM_LOOK = 2.0


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


def waited(
    jobs: JobCalls,
    job: Job,
    *,
    timeout_seconds: float | None = None,
    on_progress: Callable[[Job], None] | None = None,
    settled: Callable[[Job], bool] | None = None,
) -> Steps[Job]:
    """A job when it has ended (or is ``settled``), or when it has been waited for so long."""
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    wait, seen = _FIRST_LOOK, None
    while True:
        if job != seen:
            seen, wait = job, _FIRST_LOOK
            if on_progress is not None:
                on_progress(job)
        over = job.ended if settled is None else settled(job)
        if over or (deadline is not None and time.monotonic() >= deadline):
            return job
        yield Pause(wait if deadline is None else max(0.0, min(wait, deadline - time.monotonic())))
        wait = min(wait * 1.5, _SELDOM_LOOK)
        job = yield jobs.get(job.job_id)


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
