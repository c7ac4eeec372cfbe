"""``recollect watch``: folders whose changes are stored as they happen."""

from __future__ import annotations

import signal
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import ChunkingOptions, command
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import one_line
from recollect.cli.ingest import prepare_collection, tell_queued
from recollect.errors import UsageError
from recollect.model.principal import read_permissions
from recollect.model.record import json_of
from recollect.pipeline.watching import ask_to_watch

if TYPE_CHECKING:
    from recollect.ingest.report import IngestReport
    from recollect.pipeline.watching import Watching, WatchPass

_ERRORS_SHOWN = 5


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "watch",
        collection=True,
        local="it reads the folders of the machine that it runs on. Files of this one are sent with recollect ingest; "
        "folders of the server's are watched with recollect sources add FOLDER --watch",
    )(_watch)


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
                _tell(ctx, done)
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


def _tell(ctx: CommandContext, done: WatchPass) -> None:
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
