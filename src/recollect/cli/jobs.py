"""``recollect jobs``: what is done in the background; and how a command waits for a job of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from recollect.cli._bound import bind
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import one_line
from recollect.errors import ServerError
from recollect.model.job import Job
from recollect.model.record import json_of
from recollect.operations.jobs import JobOperations

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.model.page import Page
    from recollect.pipeline import View


def line_of(job: Job) -> str:
    """A job on one line."""
    what = job.document or job.source or ""
    parts = [str(job.job_id), job.status, job.kind, *([what] if what else []), progress_of(job)]
    if job.attempts > 1:
        parts.append(f"attempt {job.attempts} of {job.max_attempts}")
    if job.due_at is not None:
        parts.append(f"again at {job.due_at:%H:%M:%S}")
    if job.error:
        parts.append(job.error.removeprefix(f"{what}: "))
    return "  ".join(one_line(part) for part in parts if part)


def progress_of(job: Job) -> str:
    """How far a job has come, in words."""
    come = [stage for stage in job.stages if stage.done or stage.total]
    if not come or job.status not in {"running", "pending"}:
        return ""
    stage = come[-1]
    return f"{stage.name} {stage.done:,}{'' if stage.total is None else f'/{stage.total:,}'}"


def waiting(job: Job) -> str:
    """What is said of a job that was asked for."""
    return f"Job {job.job_id} waits for a worker: recollect worker. recollect jobs show {job.job_id}"


def tell_queued(ctx: CommandContext, asked: Job | Sequence[Job]) -> int:
    """Print a job that was asked for, or those that a server has made of files; returns the exit status."""
    if isinstance(asked, Job):
        return ctx.tell(asked, waiting(asked))
    return ctx.tell({"jobs": json_of(asked)}, "\n".join(map(waiting, asked)))


def result_of(ctx: CommandContext, view: View, job: Job, *, title: str, unit: str) -> Mapping[str, Any]:
    """What a job of a server gave, waited for as by `wait_for`.

    Raises:
        ServerError: It failed, or somebody else cancelled it.
    """
    ended = wait_for(ctx, view, job, title=title, unit=unit)
    if ended.status != "succeeded":
        url = "" if ctx.server is None else ctx.server.url
        raise ServerError(f"Job {ended.job_id} was {ended.status}: {ended.error or 'it does not say why.'}", url=url)
    return ended.result or {}


def wait_for(ctx: CommandContext, view: View, job: Job, *, title: str, unit: str) -> Job:
    """Wait for a command's own job, showing how far it has come; an interrupt cancels it.

    Args:
        ctx: The command.
        view: Whose job.
        job: Which.
        title: What is being done.
        unit: What its stages count, in the plural.
    """

    def tell(now: Job) -> None:
        come = [stage for stage in now.stages if stage.done or stage.total]
        if come:
            bar.update(come[-1].done, come[-1].total)

    try:
        with WorkBar(ctx.err, title, unit=unit) as bar:
            return view.jobs.wait(job.job_id, on_progress=tell)
    except (KeyboardInterrupt, SystemExit):
        view.jobs.cancel(job.job_id)
        raise


app = typer.Typer(
    help="What is done in the background: listed, looked at, stopped and tried again.", no_args_is_help=True
)


def _listed(ctx: CommandContext, jobs: Page[Job]) -> None:
    for job in jobs:
        ctx.out.print(line_of(job), soft_wrap=True)
    if not jobs:
        ctx.out.print("There are no such jobs.")


def _told(ctx: CommandContext, job: Job) -> None:
    ctx.out.print(line_of(job), soft_wrap=True)
    if job.status == "running" and job.cancel_requested:
        ctx.note("It ends at its next document.")


def _shown(ctx: CommandContext, job: Job) -> None:
    _told(ctx, job)
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


bind(
    app,
    "jobs",
    JobOperations,
    lambda view: view.jobs,
    {"list": _listed, "get": _shown, "cancel": _told, "retry": _told},
    names={"get": "show"},
)
