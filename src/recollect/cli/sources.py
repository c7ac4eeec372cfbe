"""``recollect sources`` and ``watch``: where documents come from, and how what changes there changes here."""

from __future__ import annotations

import json
import signal
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import ChunkingOptions, command
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import one_line, print_list
from recollect.cli.ingest import prepare_collection, show_report
from recollect.cli.jobs import tell_queued
from recollect.errors import RecollectError, SourceError, UsageError
from recollect.model.page import MOST_OF_A_PAGE, Page
from recollect.model.principal import read_permissions
from recollect.model.record import json_of
from recollect.pipeline.refreshing import ask_to_watch

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport
    from recollect.model.job import Job
    from recollect.model.source import SourceRecord
    from recollect.pipeline.refreshing import Watching, WatchPass


sources_app = typer.Typer(
    help="Buckets, repositories, mailboxes and folders that are read, and refreshed: list, add, refresh, remove.",
    no_args_is_help=True,
)


_Name = Annotated[str, typer.Argument(metavar="SOURCE", help="Its name.")]


def _list_sources(
    ctx: CommandContext,
    *,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Of all collections.")] = False,
    cursor: Annotated[str | None, typer.Option(help="next_cursor of the page before.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_OF_A_PAGE, help="Sources at most.")] = 100,
) -> int:
    """List where the documents come from, with how their last refresh went."""
    with ctx.view(collections="*" if everywhere else None) as view:
        found = view.sources.list(cursor=cursor, limit=limit)
    if ctx.json:
        ctx.emit(found)
    elif found:
        _show_sources(ctx, found, everywhere=everywhere)
        if found.next_cursor is not None:
            ctx.note(f"There are more: recollect sources list --cursor {found.next_cursor}")
    else:
        ctx.out.print("No source yet. Try: recollect sources add s3://BUCKET/PREFIX, or ingest a folder.")
    return 0


def _add(
    ctx: CommandContext,
    *,
    location: Annotated[
        str,
        typer.Argument(metavar="LOCATION", help="s3://BUCKET/PREFIX, imaps://USER@HOST, a repository or a folder."),
    ],
    connector: Annotated[
        str | None,
        typer.Option(help="What reads it: git, imap, s3, directory; by default what it looks like."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What it is called; by default the location.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A setting of the connector; repeat for more. Credentials: env:NAME."
        ),
    ] = None,
    grants: Annotated[
        list[str] | None,
        typer.Option(
            "--grants",
            metavar="'PATH GRANT…'",
            help="Who may read what: 'hr/** role:hr'; the last that matches counts.",
        ),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag for every document; repeat for more.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Metadata for every document, unless it has the key itself; repeat for more."
        ),
    ] = None,
    every: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How often a worker refreshes it: 15m, 6h, 1d.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Have a worker watch it, where it is a folder: changes are seen at once.")
    ] = False,
    refresh: Annotated[bool, typer.Option("--refresh/--no-refresh", help="Whether to read it at once.")] = True,
) -> int:
    """Have a place outside read into a collection, and read it. Where the first reading fails, it is not added."""
    settings = _settings(setting or [])
    settings |= {"grants": list(grants)} if grants else {}
    settings |= {"tags": list(tag)} if tag else {}
    settings |= {"watch": True} if watch else {}
    given = _settings(metadata or [], option="--metadata")
    with ctx.view() as view:
        places = {place.name for place in view.collections.each()}
        record = view.sources.add(
            location, connector=connector, name=name, settings=settings, every=every, metadata=given
        )
    if refresh:
        return _read_first(ctx, record, new_place=record.collection not in places)
    return ctx.tell(record, f"Added {one_line(record.name)}. To read it: recollect sources refresh")


def _read_first(ctx: CommandContext, record: SourceRecord, *, new_place: bool) -> int:
    """Read a new source; one that cannot be read is removed, with the collection that was made for it."""
    try:
        return _refresh(ctx, sources=[record.name])
    except RecollectError:
        _undo(ctx, record, new_place=new_place)
        raise


def _undo(ctx: CommandContext, record: SourceRecord, *, new_place: bool) -> None:
    """Remove a source without documents, and the collection that was made for it."""
    with ctx.view() as view:
        if view.sources.get(record.name).documents:
            return
        view.sources.remove(record.name, documents="keep")
        if new_place and view.collections.get(record.collection).document_count == 0:
            view.collections.delete(record.collection)
    ctx.note(f"The source {one_line(record.name)} was not added. (--no-refresh adds it without reading it.)")


def _refresh(
    ctx: CommandContext,
    *,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE…", help="Their names; by default all that can be refreshed.")
    ] = None,
    confirm_removals: Annotated[
        bool, typer.Option("--confirm-removals", help="Close what has gone, however much it is.")
    ] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="Look at every item, not only at what changed since the last time.")
    ] = False,
    background: Annotated[
        bool, typer.Option("--background", help="Only ask for it: a worker does it. Prints the jobs.")
    ] = False,
) -> int:
    """Bring the store to what sources hold now. Exit status 1 where some of it could not be read."""
    reports: list[dict[str, Any]] = []
    problems: list[str] = []
    status = 0
    with ctx.view(embeds=not background) as view:
        names = sources or [one.name for one in view.sources.each() if one.connector is not None]
        if background:
            jobs = [view.jobs.refresh(name, confirm_removals=confirm_removals, anew=anew) for name in names]
            return _tell_queued(ctx, jobs)
        for name in names:
            with WorkBar(ctx.err, f"Refreshing {one_line(name)}", unit="documents") as bar:
                try:
                    report = view.sources.refresh(
                        name, confirm_removals=confirm_removals, anew=anew, on_progress=bar.ingest
                    )
                except SourceError as exc:
                    if len(names) == 1:
                        raise
                    status = 1
                    problems.append(str(exc))
                    reports.append({"source": name, "problem": str(exc)})
                    continue
            status = status or (1 if report.failed else 0)
            reports.append({"source": name, **json_of(report)})
            if not ctx.json:
                ctx.out.print(one_line(name), style="bold")
                show_report(ctx, report)
    _tell_refreshed(ctx, reports, problems)
    return status


def _tell_queued(ctx: CommandContext, jobs: list[Job]) -> int:
    if ctx.json:
        ctx.emit({"jobs": [json_of(one) for one in jobs]})
        return 0
    for one in jobs:
        ctx.out.print(f"Job {one.job_id} refreshes {one_line(one.source or '')} once a worker runs: recollect worker")
    return 0


def _tell_refreshed(ctx: CommandContext, reports: list[dict[str, Any]], problems: list[str]) -> None:
    if ctx.json:
        ctx.emit({"refreshed": reports})
        return
    for problem in problems:
        ctx.note(f"✗ {problem}")
    if not reports:
        ctx.out.print("There is no source that can be refreshed.")


def _remove(
    ctx: CommandContext,
    *,
    source: _Name,
    keep: Annotated[bool, typer.Option("--keep", help="Leave its documents as they are.")] = False,
    erase: Annotated[bool, typer.Option("--erase", help="Erase its documents, with every version.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Have a source read no longer; its documents are closed: searches find them no more, their history stays."""
    if keep and erase:
        raise UsageError("Give --keep or --erase, not both.")
    with ctx.view() as view:
        record = view.sources.get(source)
        if not keep:
            verb = "Erase" if erase else "Close"
            ctx.confirm(f"{verb} {record.documents:,} documents of {one_line(record.name)}?", yes=yes)
        done = view.sources.remove(source, documents="keep" if keep else "erase" if erase else "close")
    return ctx.tell(
        {"documents": done}, f"Removed {one_line(source)}; {done:,} documents {'erased' if erase else 'closed'}."
    )


def _settings(given: list[str], *, option: str = "--set") -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key:
            # The rest is not repeated: it may be a secret.
            raise UsageError(f"{option} takes KEY=VALUE, not {key!r} alone.")
        settings[key] = _value(value)
    return settings


def _value(text: str) -> Any:  # noqa: ANN401 - JSON where it is JSON, else the text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float | list) else text


def _show_sources(ctx: CommandContext, found: Page[SourceRecord], *, everywhere: bool) -> None:
    rows = []
    for one in found:
        state = {"error": "error", "refreshing": "being refreshed", "new": "never"}.get(one.state or "", "")
        when = state or _moment(one.refreshed_at)
        place = (one_line(one.collection),) if everywhere else ()
        kind = one.connector or one.type
        rows.append([*map(Text, (*place, one_line(one.name), kind, f"{one.documents:,}", when))])
    names = dict.fromkeys((*(("collection",) if everywhere else ()), "source", "type"), "fold")
    print_list(ctx.out, {**names, "documents": "right", "refreshed": ""}, rows)
    for one in found:
        if one.problem:
            ctx.note(f"✗ {one_line(one.name)}: {one_line(one.problem)}")


def _moment(when: datetime | None) -> str:
    return "" if when is None else when.astimezone().strftime("%Y-%m-%d %H:%M")


command(sources_app, "list", collection=True, remote=True)(_list_sources)


command(sources_app, "add", collection=True, remote=True, paths=("location",))(_add)


command(sources_app, "refresh", collection=True, remote=True)(_refresh)


command(sources_app, "remove", collection=True, remote=True)(_remove)


_ERRORS_SHOWN = 5


def _watch(
    ctx: CommandContext,
    chunking: ChunkingOptions,
    actor: ActorOptions,
    *,
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER…", help="Folders, read and watched recursively.")],
    tag: Annotated[list[str] | None, typer.Option(help="A tag for every document; repeat for more.")] = None,
    grant: Annotated[
        list[str] | None,
        typer.Option(metavar="GRANT", help="Who may read the documents: role:hr, !group:interns; repeat for more."),
    ] = None,
    poll: Annotated[
        bool, typer.Option("--poll", help="Compare files now and then, rather than be told by the system.")
    ] = False,
    background: Annotated[
        bool, typer.Option("--background", help="Only ask for it: a worker does it. Prints the job.")
    ] = False,
) -> int:
    """Ingest folders, and from then on whatever changes in them, until it is interrupted.

    A changed file is found a moment after it was saved, and a deleted one no longer. With --json, each pass is a line
    of JSON.
    """
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{str(folder)!r} is no folder: name the folders to watch.")
    permissions = None if grant is None else read_permissions(grant, name="--grant").as_tokens()
    principal = actor.actor()
    with ctx.view(principal=principal, embeds=not background) as view:
        if principal is None:
            prepare_collection(ctx.config, view, chunking)
        if background:
            how: dict[str, Any] = {"tags": tag or (), "permissions": permissions, "polling": poll or None}
            return tell_queued(ctx, ask_to_watch(view.standpoint, folders, **how))
        if not ctx.json:
            ctx.note("Reading the folders. From then on changes are stored as they happen, until Ctrl-C.")
        with WorkBar(ctx.err, "Reading", unit="files") as bar:
            watching = view.sources.watch(
                folders,
                tags=tag or (),
                permissions=permissions,
                polling=poll or None,
                on_progress=None if ctx.json else bar.ingest,
            )
            _stop_on_signals(watching)
            for done in watching:
                bar.hide()
                _tell_pass(ctx, done)
    return 0


def _stop_on_signals(watching: Watching) -> None:
    """An interrupt ends watching once what is being stored is stored; a second one ends that too."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a signal handler's signature
        watching.stop()
        for known, handler in before.items():
            signal.signal(known, handler)

    for known in before:
        signal.signal(known, stop)


def _tell_pass(ctx: CommandContext, done: WatchPass) -> None:
    if ctx.json:
        ctx.emit_line(_as_json(done))
        return

    name = one_line(str(done.folder))
    if done.report is None:
        ctx.note(f"{_clock()} {name}: {one_line(done.problem or '')}")
        return
    ctx.out.print(f"{_clock()} {name}: {_counts(done.report)} ({done.report.seconds:,.1f} s)", soft_wrap=True)
    for error in done.report.errors[:_ERRORS_SHOWN]:
        ctx.note(f"✗ {one_line(error.path)}: {one_line(error.error)}")


def _clock() -> str:
    return datetime.now().astimezone().strftime("%H:%M:%S")


def _counts(report: IngestReport) -> str:
    names = ("added", "updated", "removed", "unchanged", "failed")
    told = [f"{count:,} {name}" for name in names if (count := getattr(report, name))]
    return ", ".join(told) or "nothing to read"


def _as_json(done: WatchPass) -> dict[str, Any]:
    return {
        "folder": str(done.folder),
        "whole": done.whole,
        **({"problem": done.problem} if done.report is None else json_of(done.report)),
    }


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(sources_app, name="sources")
    command(
        app,
        "watch",
        collection=True,
        local="it reads the folders of the machine that it runs on. Files of this one are sent with recollect ingest; "
        "folders of the server's are watched with recollect sources add FOLDER --watch",
    )(_watch)
