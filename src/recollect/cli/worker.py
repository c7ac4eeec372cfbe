"""``recollect worker``: runs jobs in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.errors import UsageError
from recollect.pipeline.working import worker_of

if TYPE_CHECKING:
    from recollect.jobs.worker import Worker


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "worker",
        local="a worker takes its jobs from the database, and a server has one of its own unless it was started with "
        "--no-worker",
    )(_worker)


def _worker(
    ctx: CommandContext,
    *,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Jobs that run at the same time.")] = 1,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queues", metavar="QUEUE", help="Only jobs of this queue; repeat for more."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is due any more.")] = False,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when nothing is left, also of what is to be tried again later.")
    ] = False,
) -> int:
    """Run the jobs of every tenant, and what is done every so often, until it is interrupted.

    Several workers share the work, on one machine or many. Interrupted (or told to end by SIGTERM), a worker takes no
    more jobs and lets those that it runs come to their end; a second time, it ends at once. What a worker leaves
    unfinished, also one that was killed, another one does.
    """
    if once and until_empty:
        raise UsageError("--once and --until-empty are two answers to when to end: give one.")
    ends: Literal["never", "once", "empty"] = "once" if once else "empty" if until_empty else "never"
    named = None if queues is None else [argument_text(name) for name in queues]
    with ctx.pipeline() as rag:
        worker: Worker = worker_of(rag.standpoint.assembly, concurrency=concurrency, queues=named, ends=ends)
        ctx.note(f"Running jobs, {concurrency} at a time.")
        worker.run()
    if ctx.json:
        ctx.emit({"finished": worker.finished})
    else:
        ctx.note(f"{worker.finished:,} job{'' if worker.finished == 1 else 's'} run.")
    return 0
