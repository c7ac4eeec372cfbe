"""``recollect jobs``: what is done in the background."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._jobs import line_of
from recollect.cli._options import command
from recollect.cli._terminal import one_line
from recollect.replies.jobs import job_json, job_list_json

if TYPE_CHECKING:
    from recollect.model.job import Job

app = typer.Typer(
    help="What is done in the background: listed, looked at, stopped and tried again.", no_args_is_help=True
)

_JobId = Annotated[int, typer.Argument(metavar="JOB", min=1, help="The job's number.")]


class _Status(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


def _list(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    status: Annotated[_Status | None, typer.Option(help="Only in this one.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only of this kind, for instance ingest_url.")] = None,
    source: Annotated[str | None, typer.Option(help="Only those that change documents of this source.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Jobs at most.")] = 100,
    before: Annotated[int | None, typer.Option(min=1, help="Only jobs before this number: the next page.")] = None,
) -> int:
    """List jobs, newest first."""
    with ctx.view(principal=actor.actor()) as view:
        found = view.jobs.list(
            status=None if status is None else status.value,
            kind=None if kind is None else argument_text(kind),
            source=None if source is None else argument_text(source),
            before=before,
            limit=min(limit + 1, 10_000),
        )
    page, more = found[:limit], len(found) > limit
    if ctx.json:
        ctx.emit(job_list_json(page, more=more))
        return 0
    for job in page:
        ctx.out.print(line_of(job), soft_wrap=True)
    if not page:
        ctx.out.print("There are no such jobs.")
    if more:
        ctx.note(f"There are more: recollect jobs list --before {page[-1].job_id}")
    return 0


def _show(ctx: CommandContext, actor: ActorOptions, *, job_id: _JobId) -> int:
    """Show a job: how far each of its stages has come, what it was asked to do, and what became of it."""
    with ctx.view(principal=actor.actor()) as view:
        job = view.jobs.get(job_id)
    return _tell(ctx, job, whole=True)


def _cancel(ctx: CommandContext, actor: ActorOptions, *, job_id: _JobId) -> int:
    """Cancel a job: one that waits does not run, one that runs ends at its next document."""
    with ctx.view(principal=actor.actor()) as view:
        job = view.jobs.cancel(job_id)
    return _tell(ctx, job)


def _retry(ctx: CommandContext, actor: ActorOptions, *, job_id: _JobId) -> int:
    """Try a job again that has failed or was cancelled. A worker runs it."""
    with ctx.view(principal=actor.actor()) as view:
        job = view.jobs.retry(job_id)
    return _tell(ctx, job)


def _tell(ctx: CommandContext, job: Job, *, whole: bool = False) -> int:
    if ctx.json:
        ctx.emit(job_json(job))
        return 0
    ctx.out.print(line_of(job), soft_wrap=True)
    if job.status == "running" and job.cancel_requested:
        ctx.note("It ends at its next document.")
    if not whole:
        return 0
    for stage in job.stages:
        ctx.out.print(
            one_line(f"  {stage.name}: {stage.done:,}{'' if stage.total is None else f' of {stage.total:,}'}")
        )
    told = {"collection": job.collection, "asked by": job.asked_by, **job.arguments, **(job.result or {})}
    for name, value in told.items():
        if value not in (None, "", [], {}):
            ctx.out.print(one_line(f"  {name}: {value}"), soft_wrap=True)
    times = (("asked for", job.created_at), ("begun", job.started_at), ("ended", job.finished_at))
    for name, at in times:
        if at is not None:
            ctx.out.print(f"  {name}: {at:%Y-%m-%d %H:%M:%S}")
    return 0


command(app, "list", remote=True)(_list)
command(app, "show", remote=True)(_show)
command(app, "cancel", remote=True)(_cancel)
command(app, "retry", remote=True)(_retry)
