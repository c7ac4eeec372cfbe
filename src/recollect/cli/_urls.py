"""Pages of the web for ``recollect ingest``: its options for them, and what it does with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.cli._options import ChunkingOptions
    from recollect.fetching.crawl import CrawlPlan
    from recollect.model.job import Job
    from recollect.pipeline import View

_PANEL = "Web pages"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class _Method(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"


@dataclass(frozen=True)
class UrlOptions:
    """How pages of the web are asked for, and how far their links are followed."""

    method: Annotated[_Method | None, typer.Option(help="How it is asked for.", rich_help_panel=_PANEL)] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME: VALUE'",
            help="Sent with the request, shown nowhere; repeat for more.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    data: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE", help="Sent as the request's body.", rich_help_panel=_PANEL),
    ] = None
    crawl: Annotated[
        bool,
        typer.Option("--crawl", help="Store the pages that it leads to within its site too.", rich_help_panel=_PANEL),
    ] = False
    depth: Annotated[
        int | None, typer.Option(help="Links followed one after the other; 2 by default.", rich_help_panel=_PANEL)
    ] = None
    max_pages: Annotated[
        int | None, typer.Option(help="Pages fetched at most; 1,000 by default.", rich_help_panel=_PANEL)
    ] = None
    below: Annotated[
        str | None, typer.Option(metavar="PATH", help="Only pages whose path begins so.", rich_help_panel=_PANEL)
    ] = None
    sitemaps: Annotated[
        bool, typer.Option("--sitemaps", help="The pages of the site's sitemaps too.", rich_help_panel=_PANEL)
    ] = False
    delay: Annotated[
        float | None,
        typer.Option(help="Seconds between two requests of a crawl; 0.5 by default.", rich_help_panel=_PANEL),
    ] = None

    @property
    def given(self) -> list[str]:
        """The options that were given, as they are called."""
        return [
            f"--{field.name.replace('_', '-')}"
            for field in fields(self)
            if getattr(self, field.name) not in (None, False, [])
        ]

    def plan(self) -> CrawlPlan | None:
        """How far links are followed; None: not at all.

        Raises:
            UsageError: A number is out of range, or options of a crawl are given without one.
        """
        from recollect.fetching.crawl import CrawlPlan

        said = {
            "depth": self.depth,
            "max_pages": self.max_pages,
            "below": self.below,
            "delay_seconds": self.delay,
            "sitemaps": self.sitemaps or None,
        }
        if not self.crawl:
            lone = [
                name for name in ("--depth", "--max-pages", "--below", "--sitemaps", "--delay") if name in self.given
            ]
            if lone:
                raise UsageError(f"{lone[0]} is for a crawl: add --crawl.")
            return None
        chosen: dict[str, Any] = {"depth": 2, **{name: value for name, value in said.items() if value is not None}}
        return CrawlPlan(**chosen).checked()

    def request(self) -> dict[str, Any]:
        """Method, headers and body, as `View.ingest_url` takes them.

        Raises:
            UsageError: A header has no colon, or the file of the body cannot be read.
        """
        headers = {}
        for one in self.header or ():
            name, colon, value = one.partition(":")
            if not colon:
                # What stands there may be the secret itself.
                raise UsageError("--header takes 'NAME: VALUE', with a colon between them.")
            headers[name.strip()] = value.strip()
        body = None if self.data is None else _body(self.data)
        method = self.method.value if self.method else "GET" if body is None else "POST"
        return {"method": method, "headers": headers, "body": body}


def is_url(argument: str) -> bool:
    """Whether an argument is a URL rather than a path."""
    return _URL.match(argument) is not None


def ingest_urls(
    ctx: CommandContext,
    view: View,
    urls: list[str],
    options: UrlOptions,
    chunking: ChunkingOptions,
    *,
    how: dict[str, Any],
    background: bool,
    yes: bool = False,
) -> int:
    """Store pages, one job each, and tell what became of them; returns the exit status.

    What situating them would take is said where they were waited for, and done with ``yes``.
    """
    from recollect.cli._jobs import wait_for
    from recollect.cli.contextualise import situate
    from recollect.replies.jobs import job_json

    asked = {
        **options.request(),
        **how,
        "crawl": options.plan(),
        "chunk_size": chunking.chunk_size,
        "chunk_overlap": chunking.chunk_overlap,
        "wait": False,
    }
    jobs: list[Job] = []
    for url in urls:
        job = view.ingest_url(url, **asked)
        if not background:
            job = wait_for(ctx, view, job, title="Fetching", unit="pages" if options.crawl else "steps")
        jobs.append(job)
        if not ctx.json:
            _show(ctx, job)
    if ctx.json:
        ctx.emit({"jobs": [job_json(job) for job in jobs]})
    if not background:
        situate(ctx, view, yes=yes)
    return 0 if background or all(job.status == "succeeded" for job in jobs) else 1


def without_sizes(chunking: ChunkingOptions) -> ChunkingOptions:
    """What is said of the collection: sizes are the request's."""
    return replace(chunking, chunk_size=None, chunk_overlap=None)


def _body(data: str) -> bytes:
    if not data.startswith("@"):
        return data.encode("utf-8", "surrogateescape")
    try:
        return Path(data[1:]).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"--data: {data[1:]!r} cannot be read: {getattr(error, 'strerror', error)}.") from error


def _show(ctx: CommandContext, job: Job) -> None:
    from rich.text import Text

    from recollect.cli._terminal import one_line

    url = one_line(str(job.arguments.get("url", job.document)))
    result = job.result or {}
    if not job.ended:
        ctx.out.print(f"Job {job.job_id} waits for a worker: recollect worker. recollect jobs show {job.job_id}")
    elif job.status != "succeeded":
        told = one_line(job.error or job.status)
        ctx.err.print(
            Text.assemble(("✗ ", "red"), told if told.startswith("http") else f"{url}: {told}"), soft_wrap=True
        )
    elif job.kind == "crawl":
        counts = ("added", "updated", "unchanged", "removed", "skipped", "failed")
        said = ", ".join(f"{result[name]:,} {name}" for name in counts if result.get(name)) or "nothing new"
        ctx.out.print(one_line(f"{url}: {said}; {result.get('chunks', 0):,} chunks"), soft_wrap=True)
        shown = result.get("errors", ())[:20]
        for error in shown:
            ctx.err.print(Text.assemble(("✗ ", "red"), one_line(f"{error['path']}: {error['error']}")), soft_wrap=True)
        if more := result.get("failed", 0) - len(shown):
            ctx.err.print(f"… and {more:,} more; recollect jobs show {job.job_id} --json names the first hundred")
    else:
        chunks = result.get("chunks", 0)
        said = f"{result.get('status')}  {result.get('title')}  ({chunks:,} chunk{'' if chunks == 1 else 's'})  {url}"
        ctx.out.print(one_line(said), soft_wrap=True)
