"""What is done every day, as several requests where it takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, overload

from recollect.client.calls.base import Call, Calls, Steps
from recollect.client.calls.conversations import SessionCalls
from recollect.client.calls.documents import IngestCalls
from recollect.client.calls.ingesting import FileOptions, send_files, sorted_out, store_documents, store_files, waited
from recollect.client.calls.sources import SourceCalls
from recollect.client.calls.work import JobCalls
from recollect.client.uploads import FileToSend
from recollect.errors import UsageError
from recollect.ingest.report import Tally
from recollect.model import Document, IngestResult, RetrievalOptions
from recollect.model.document_session import SessionConfig
from recollect.model.job import Job

if TYPE_CHECKING:
    from recollect.fetching.client import Method
    from recollect.fetching.crawl import CrawlPlan
    from recollect.ingest.report import IngestReport, ProgressCallback
    from recollect.model.job import JobCallback


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


class ConfiguredSessionCalls(SessionCalls):
    """Sessions with documents, as the server is configured to make them."""

    def default_config(self) -> Steps[SessionConfig]:
        """The life of a session that the server is configured with."""
        told = (yield from self._settings())["session"]
        known = {one.name: told[one.name] for one in fields(SessionConfig) if one.name in told}  # type: ignore[literal-required]
        seconds = told["ttl_seconds"]
        return SessionConfig(ttl=None if seconds is None else timedelta(seconds=seconds), **known)
