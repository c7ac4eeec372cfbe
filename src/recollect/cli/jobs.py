"""``recollect jobs``: what is done in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from recollect.cli._bound import bind
from recollect.cli._jobs import line_of
from recollect.cli._terminal import one_line
from recollect.operations.jobs import JobOperations

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.model.job import Job
    from recollect.model.page import Page

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
