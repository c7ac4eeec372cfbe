"""``recollect ingest``: files, folders and pages of the web into a collection."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import ChunkingOptions, command
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import one_line, plain
from recollect.cli.collection_models import situate
from recollect.cli.jobs import tell_queued, wait_for, waiting
from recollect.errors import ConflictError, UsageError
from recollect.model.arguments import did_you_mean, whole_number
from recollect.model.principal import read_permissions
from recollect.model.record import json_of
from recollect.pipeline.collections import unknown_languages

if TYPE_CHECKING:
    from recollect.config import RAGConfig
    from recollect.fetching.crawl import CrawlPlan
    from recollect.ingest.report import IngestReport
    from recollect.model.collection import Collection
    from recollect.model.job import Job
    from recollect.pipeline import View


_ERRORS_SHOWN = 20
_SKIP_REASONS = {
    "hidden": "hidden",
    "too_large": "too large",
    "unsupported": "of a type that is not read",
    "without_text": "pictures without text",
    "link": "linked and not followed",
    "excluded": "excluded by the site",
    "noindex": "not to be found, as its author wishes",
    "needs_request": "stored with headers, a body or another method",
}

_WithoutOcr = Annotated[
    bool, typer.Option("--no-ocr", help="Recognise no text on pages that are pictures; they are counted.")
]
_Ttl = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="Expire these documents after this time: 12h, 30d, never. Tags may preserve them."
    ),
]
_Background = Annotated[bool, typer.Option("--background", help="Only ask for it: a worker does it. Prints the job.")]
_Situated = Annotated[
    bool, typer.Option("--yes", "-y", help="Situate the chunks afterwards, where a model is configured for that.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ingest", collection=True, remote=True, paths=("what", "data"))(_ingest)


def _ingest(
    ctx: CommandContext,
    chunking: ChunkingOptions,
    actor: ActorOptions,
    web: UrlOptions,
    *,
    what: Annotated[
        list[str],
        typer.Argument(metavar="PATH|URL…", help="Folders and files, read recursively; or pages of the web."),
    ],
    sync: Annotated[bool, typer.Option("--sync", help="Close documents whose files have disappeared.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Store every document anew, changed or not.")] = False,
    tag: Annotated[list[str] | None, typer.Option(help="A tag for every document; repeat for more.")] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GRANT",
            help="Who may read the documents: role:hr, user:ann, !group:interns for who may not; repeat for more.",
        ),
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Read what links lead to, wherever it is; else they are skipped.")
    ] = False,
    max_file_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Skip larger files: bytes, or for instance 20MB.")
    ] = None,
    no_ocr: _WithoutOcr = False,
    ttl: _Ttl = None,
    in_session: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="Into this session, which alone finds them."),
    ] = None,
    background: _Background = False,
    yes: _Situated = False,
) -> int:
    """Read files, folders or pages of the web into a collection, or into a session.

    What is unchanged costs next to nothing, what has changed becomes a new version. It can be interrupted at any
    moment: run the same command again to complete it. Exit status 1 if some of it could not be read.
    """
    _require_own_options(ctx, chunking, actor, in_session, others=bool(sync or grant))
    if background:
        _refuse_in_background(max_file_size=max_file_size, ttl=ttl, no_ocr="off" if no_ocr else None)
    urls = _urls(what, web, sync=sync, follow_links=follow_links, max_file_size=max_file_size, ttl=ttl)
    config = _configured(ctx.config, max_file_size=max_file_size, follow_links=follow_links, ttl=ttl, no_ocr=no_ocr)
    how: dict[str, Any] = {"force": force, "tags": tag or ()}
    how["permissions"] = None if grant is None else read_permissions(grant, name="--grant").as_tokens()
    paths = [] if urls else _existing(what)
    principal = actor.actor()
    with ctx.view(config, principal=principal, session=in_session) as view:
        known = _known_collections(ctx, view)
        if in_session is None and principal is None:
            prepare_collection(config, view, without_sizes(chunking) if urls else chunking)
        if urls:
            return ingest_urls(ctx, view, urls, web, chunking, how=how, background=background, yes=yes)
        if background:
            return tell_queued(ctx, view.jobs.ingest(paths, **how, sync=sync, follow_links=follow_links or None))
        with WorkBar(ctx.err, "Ingesting", unit="files") as bar:
            report = view.ingest(paths, **how, sync=sync, on_progress=bar.ingest)
        _tell_new_collection(ctx, known)
        _complete(ctx, view, yes=yes, stored=bool(report.added or report.updated))
    _tell_nothing_read(ctx, what, report)
    return tell(ctx, report)


def _known_collections(ctx: CommandContext, view: View) -> list[str] | None:
    """The collections there are, where one is named that may be made; None: none is."""
    at = view.standpoint
    if ctx.json or not ctx.names_collection or at.session is not None or not at.is_owner:
        return None
    return [one.name for one in view.collections.each()]


def _tell_new_collection(ctx: CommandContext, known: list[str] | None) -> None:
    if known is not None and ctx.collection not in known:
        ctx.note(f"Created the collection {ctx.collection!r}.{did_you_mean(ctx.collection, known)}")


def _tell_nothing_read(ctx: CommandContext, what: list[str], report: IngestReport) -> None:
    if not ctx.json and not (report.added or report.updated or report.unchanged or report.skipped or report.failed):
        ctx.note(f"There is nothing to read in {' '.join(what)}: it has no files, or .recollectignore names them all.")


def _urls(what: list[str], web: UrlOptions, **of_files: object) -> list[str]:
    """The arguments where they are URLs, none where they are paths.

    Raises:
        UsageError: They are both, or options are given that are for the others.
    """
    urls = [one for one in what if is_url(one)]
    if urls and len(urls) < len(what):
        raise UsageError(
            "Files and pages of the web are ingested one after the other: give paths alone, or URLs alone."
        )
    if not urls and web.given:
        raise UsageError(f"{web.given[0]} is for pages of the web: give a URL, or leave it out.")
    for name, value in of_files.items():
        if urls and value:
            raise UsageError(f"--{name.replace('_', '-')} is for files: leave it out with a URL.")
    if urls:
        web.plan()
        web.request()
    return urls


def _refuse_in_background(**given: str | None) -> None:
    """Raises UsageError for what is a setting of the process that ingests, and that a worker has its own of."""
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"With --background, --{name.replace('_', '-')} is the worker's setting: leave it out.")


def _require_own_options(
    ctx: CommandContext, chunking: ChunkingOptions, actor: ActorOptions, in_session: str | None, *, others: bool
) -> None:
    """Raises UsageError where options are given that are not for a session, or not for a writer, to say."""
    if in_session is not None and (ctx.names_collection or chunking.given or others):
        raise UsageError(
            "With --session, leave out --collection, --grant, --sync and how documents are cut: a session's documents "
            "are its own, and go with it."
        )
    if actor.as_ is not None and chunking.given:
        raise UsageError("With --as, leave out how documents are cut: that is the collection's, for its owners to say.")


def _configured(
    config: RAGConfig, *, max_file_size: str | None, follow_links: bool, ttl: str | None, no_ocr: bool
) -> RAGConfig:
    if no_ocr:
        documents = config.documents.model_copy(update={"ocr": "off"})
        config = config.model_copy(update={"documents": documents})
    if follow_links:
        links = config.ingest.model_copy(update={"follow_links": True})
        config = config.model_copy(update={"ingest": links})
    if max_file_size is not None:
        limits = config.ingest.model_copy(update={"max_file_bytes": parse_size(max_file_size)})
        config = config.model_copy(update={"ingest": limits})
    if ttl is not None:
        lifetimes = config.temporal.model_copy(update={"default_ttl": ttl})
        config = config.model_copy(update={"temporal": lifetimes})
    return config


def _existing(what: list[str]) -> list[Path]:
    # Before anything is opened: a slip of the pen should not have to wait for a database.
    paths = [Path(one) for one in what]
    for path in paths:
        if not path.exists() and not path.is_symlink():
            raise UsageError(f"{str(path)!r} does not exist. Give a folder or a file to ingest.")
    return paths


def parse_size(text: str) -> int:
    """A number of bytes, with or without a unit (1 kB = 1024 bytes).

    Raises:
        UsageError: It is no such number.
    """
    units = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}
    digits = text.strip().rstrip("bBkKmMgGiI ")
    unit = text.strip()[len(digits) :].strip().lower().replace("ib", "b")
    number = whole_number(digits)
    if not number or unit not in units:
        raise UsageError(f"--max-file-size takes a number of bytes such as 500000, 800kB or 20MB, not {text!r}.")
    return number * units[unit]


def prepare_collection(config: RAGConfig, view: View, chunking: ChunkingOptions) -> None:
    """Make the view's collection with the chunking given, or see that it is cut that way already.

    Raises:
        UsageError: The collection exists and is cut differently, or the chunking is not valid.
    """
    if not chunking.given:
        return
    name = view.standpoint.collection
    found = next((one for one in view.collections.each() if one.name == name), None)
    if found is None:
        try:
            view.collections.create(name, chunking=chunking_of(config, chunking))
        except ConflictError:  # another process was faster
            found = next(one for one in view.collections.each() if one.name == name)
    if found is not None:
        _require_same(found, chunking)


def chunking_of(config: RAGConfig, chunking: ChunkingOptions) -> dict[str, Any]:
    """The configured chunking with what the options say; another strategy starts from its own defaults."""
    configured = config.chunking
    strategy = chunking.chunking or configured.strategy
    parameters = configured.parameters if strategy == configured.strategy else {}
    return {"strategy": strategy, **parameters, **chunking.parameters(strategy)}


def _require_same(collection: Collection, chunking: ChunkingOptions) -> None:
    has = dict(collection.chunking)
    strategy = str(has.get("strategy"))
    wanted: dict[str, Any] = {"strategy": chunking.chunking or strategy}
    wanted |= chunking.parameters(wanted["strategy"])
    different = [f"{key} {has.get(key)!r}, not {value!r}" for key, value in wanted.items() if has.get(key) != value]
    if different:
        raise UsageError(
            f"The collection {collection.name!r} exists and is cut differently ({'; '.join(different)}). Leave the "
            "chunking options out, or ingest into a new collection (--collection)."
        )


def _complete(ctx: CommandContext, view: View, *, yes: bool, stored: bool) -> None:
    situate(ctx, view, yes=yes)
    at = view.standpoint
    if stored and at.session is None and at.is_owner and not ctx.json:
        suggest_model(ctx, view)


def suggest_model(ctx: CommandContext, view: View) -> None:
    """Name another embedding model where much of a collection is in languages that its own does not know."""
    unknown = unknown_languages(view.standpoint)
    if unknown:
        ctx.err.print(
            plain(
                f"The embedding model does not know {', '.join(unknown)}: words find such texts, their meaning hardly "
                "does. For a model that knows a hundred languages: recollect models pull multilingual, and then "
                f"recollect reembed --collection {view.standpoint.collection} --model multilingual"
            ),
            soft_wrap=True,
        )


def tell(ctx: CommandContext, report: IngestReport) -> int:
    """Print the report; returns the exit status."""
    return ctx.tell(report, lambda: show_report(ctx, report), status=1 if report.failed else 0)


def show_report(ctx: CommandContext, report: IngestReport) -> None:
    """The report for people: what became of the files, and which ones failed and why."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    rows = [
        (report.added, "added", ""),
        (report.updated, "updated", ""),
        (report.unchanged, "unchanged", ""),
        (report.removed, "removed", ""),
        (report.skipped, "skipped", _skips(report)),
        (report.failed, "failed", "red"),
    ]
    for count, name, extra in rows:
        if count or name == "added":
            style = "red" if extra == "red" else ""
            label = Text(name, style=style) if style or not extra else Text(f"{name} ({extra})")
            table.add_row(Text(f"{count:,}", style=style), label)
    ctx.out.print(table)
    rate = f", {report.chunks / report.seconds:,.0f} a second" if report.chunks > report.seconds > 1 else ""
    ctx.out.print(
        f"{report.chunks:,} chunk{'' if report.chunks == 1 else 's'} in {report.seconds:,.1f} s{rate}", style="dim"
    )
    for error in report.errors[:_ERRORS_SHOWN]:
        ctx.err.print(Text.assemble(("✗ ", "red"), one_line(error.path), ": ", one_line(error.error)), soft_wrap=True)
    for skipped in report.too_large[:_ERRORS_SHOWN]:
        told = f"- {one_line(skipped.path)}: {skipped.error}; --max-file-size raises it"
        ctx.note(told)
    for scanned in report.without_text[:_ERRORS_SHOWN]:
        ctx.note(f"- {one_line(scanned.path)}: {scanned.error}")
    for closed in report.closed[:_ERRORS_SHOWN]:
        ctx.note(f"- {one_line(closed.path)}: closed, because {one_line(closed.error)}")
    if (more := len(report.without_text) - _ERRORS_SHOWN) > 0:
        ctx.note(f"… and {more:,} more without text; --json lists the first hundred")
    if report.skip_reasons.get("too_large", 0) > _ERRORS_SHOWN:
        ctx.note(f"… and {report.skip_reasons['too_large'] - _ERRORS_SHOWN:,} more that are too large")
    if more := report.failed - min(len(report.errors), _ERRORS_SHOWN):
        # What a job has kept, as a server's refresh, names the first hundred alone.
        named = len(report.errors)
        listed = "all of them" if named == report.failed else f"the first {named:,} that failed"
        ctx.err.print(f"… and {more:,} more; --json lists {listed}")


def _skips(report: IngestReport) -> str:
    reasons = report.skip_reasons.items()
    return ", ".join(f"{count:,} {_SKIP_REASONS.get(reason, reason.replace('_', ' '))}" for reason, count in reasons)


# Pages of the web for ``recollect ingest``: its options for them, and what it does with them.


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
        ctx.emit({"jobs": [json_of(job) for job in jobs]})
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
    url = one_line(str(job.arguments.get("url", job.document)))
    result = job.result or {}
    if not job.ended:
        ctx.out.print(waiting(job))
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
