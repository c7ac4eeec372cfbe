"""Jobs as commands show them, and a command's wait for its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from recollect.cli._progress import WorkBar
from recollect.cli._terminal import one_line
from recollect.errors import ServerError

if TYPE_CHECKING:
    from recollect.cli._command_context import CommandContext
    from recollect.model.job import Job
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


def tell_asked(ctx: CommandContext, job: Job) -> int:
    """Say which job does what was asked for; returns the exit status."""
    if ctx.json:
        ctx.emit(job)
    else:
        ctx.out.print(f"Job {job.job_id} waits for a worker: recollect worker. recollect jobs show {job.job_id}")
    return 0


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
