"""``recollect reembed``: another embedding model for a collection, while it is searched and written to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import plain
from recollect.errors import UsageError

if TYPE_CHECKING:
    from recollect.evaluation.space_comparison import SpaceComparison
    from recollect.model.space import Space, SpaceFill
    from recollect.pipeline import View
    from recollect.pipeline.reembedding import ReembedReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "reembed", collection=True, local="it computes every vector of a collection anew")(_reembed)


def _reembed(
    ctx: CommandContext,
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The new one, as its provider names it.")
    ] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose model it is.", show_default="as configured")
    ] = None,
    dimensions: Annotated[int | None, typer.Option(min=1, help="The length of a vector.")] = None,
    cases: Annotated[
        Path | None, typer.Option("--cases", metavar="FILE", help="Test cases to compare by; else sampled questions.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, max=1000, help="Questions that are sampled; 0: no comparison.")] = 100,
    minimum: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="FIGURE=VALUE", help="Change only if this figure of the new model is reached."),
    ] = None,
    no_switch: Annotated[bool, typer.Option("--no-switch", help="Only fill and compare.")] = False,
    pause: Annotated[
        float, typer.Option(min=0, max=1000, help="Rest after each batch, in multiples of what it took.")
    ] = 1.0,
    rollback: Annotated[bool, typer.Option("--rollback", help="Back to the model before.")] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Remove what is kept of the model before, or half made.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Say which models there are, and how far each is.")] = False,
    background: Annotated[bool, typer.Option("--background", help="As a job, for a worker.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before --drop.")] = False,
) -> int:
    """Embed a collection with another model while it is searched, compare both, and change to it.

    It can be interrupted and goes on where it was. The vectors before are kept for --rollback, until --drop, the next
    reembed, or for [rag.embedding] keep_previous_days. Exit status 1 if a figure of --min is not reached.
    """
    if sum((model is not None, rollback, drop, status)) != 1:
        raise UsageError("Give one of --model MODEL, --rollback, --drop and --status.")
    if background and model is None:
        raise UsageError("--background is for --model MODEL: the others take no time.")
    with ctx.view(collections=ctx.collection) as view:
        if status:
            return _status(ctx, view)
        if drop:
            return _drop(ctx, view, yes=yes)
        if model is None:
            report = _changed(ctx, partial(view.spaces.rollback, rest=pause))
        else:
            wanted: dict[str, Any] = {
                "provider": provider,
                "dimensions": dimensions,
                "cases": cases,
                "samples": samples,
                "minimum": _minimum(minimum or []),
                "switch": not no_switch,
                "rest": pause,
            }
            if background:
                return _asked(ctx, view, argument_text(model), wanted)
            change = partial(view.spaces.reembed, argument_text(model), **wanted)
            report = _changed(ctx, change)
    if ctx.json:
        ctx.emit(_report_json(report))
    else:
        _show(ctx, report)
    return 1 if report.refused else 0


def _changed(ctx: CommandContext, change: Callable[..., ReembedReport]) -> ReembedReport:
    from recollect.cli._progress import WorkBar
    from recollect.cli.history import whoever

    with WorkBar(ctx.err, "Embedding", unit="chunks") as bar:
        return change(actor=whoever(), on_progress=lambda state: bar.update(state.filled, state.total))


def _asked(ctx: CommandContext, view: View, model: str, wanted: Mapping[str, Any]) -> int:
    from recollect.cli.history import whoever
    from recollect.replies.jobs import job_json

    job = view.jobs.reembed(model, **wanted, actor=whoever())
    if ctx.json:
        ctx.emit(job_json(job))
    else:
        ctx.out.print(f"Job {job.job_id} waits for a worker: recollect worker. recollect jobs show {job.job_id}")
    return 0


def _minimum(given: list[str]) -> dict[str, float]:
    wanted: dict[str, float] = {}
    for one in given:
        name, _, value = one.partition("=")
        try:
            wanted[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"--min takes FIGURE=VALUE, for instance recall=0.8, not {one!r}.") from None
    return wanted


def _status(ctx: CommandContext, view: View) -> int:
    report = view.spaces.status()
    if ctx.json:
        beside = [_fill_json(one) for one in report.beside]
        ctx.emit({"collection": report.collection, "used": _space_json(report.used), "beside": beside})
        return 0
    ctx.out.print(plain(f"{report.collection}: embedded with {_named(report.used)}."))
    for one in report.beside:
        until = "" if one.kept_until is None else f" until {one.kept_until:%Y-%m-%d}"
        words = {
            "filling": "being filled",
            "kept": f"kept for --rollback{until}",
            "dropping": "half removed: --drop removes it",
        }
        what = words[one.space.status]
        ctx.out.print(plain(f"  {_named(one.space)}: {what}, {one.filled:,} of {one.total:,} chunks."))
    return 0


def _drop(ctx: CommandContext, view: View, *, yes: bool) -> int:
    beside = view.spaces.status().beside
    if beside:
        named = ", ".join(_named(one.space) for one in beside)
        ctx.confirm(f"Remove the vectors of {named} for good? There is no way back to them then.", yes=yes)
    dropped = view.spaces.drop()
    if ctx.json:
        ctx.emit({"collection": view.standpoint.collection, "dropped": [_space_json(one) for one in dropped]})
    elif dropped:
        ctx.out.print(plain(f"Removed the vectors of {', '.join(map(_named, dropped))}."))
    else:
        ctx.out.print("There is nothing beside the model that is used.")
    return 0


def _show(ctx: CommandContext, report: ReembedReport) -> None:
    for space in report.dropped:
        ctx.out.print(plain(f"Removed what was kept of {_named(space)}."))
    ctx.out.print(plain(f"{report.collection}: {report.embedded:,} chunks embedded with {_named(report.after)}."))
    if report.comparison is not None:
        _show_comparison(ctx, report.comparison)
    if report.switched:
        ctx.out.print(
            plain(
                f"It is used from now on. {_named(report.before)} is kept: recollect reembed --rollback goes back "
                "to it, --drop removes it."
            ),
            soft_wrap=True,
        )
    elif report.refused:
        ctx.note(f"Not changed to it: {'; '.join(report.refused)}. {_named(report.before)} is used as before.")
    else:
        ctx.out.print(plain(f"{_named(report.before)} is used as before: without --no-switch it is changed."))


def _show_comparison(ctx: CommandContext, comparison: SpaceComparison) -> None:
    from rich.table import Table
    from rich.text import Text

    first, second = comparison.comparison.runs
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("", first.name, second.name, "Difference"):
        table.add_column(Text(title), justify="left" if not title else "right", overflow="fold")
    before, after = first.means(), second.means()
    for verdict in comparison.comparison.verdicts:
        name = verdict.metric
        words = "" if verdict.winner is None else " (significant)"
        table.add_row(
            Text(name), f"{before[name]:.3f}", f"{after[name]:.3f}", f"{verdict.result.difference:+.3f}{words}"
        )
    ctx.out.print(table)
    asked = f"{len(first.outcomes):,} {'test cases' if comparison.of == 'cases' else 'sampled questions'}"
    shared = "" if comparison.overlap is None else f"; {comparison.overlap:.0%} of the best ten are the same"
    ctx.out.print(f"{asked}{shared}", style="dim")


def _named(space: Space) -> str:
    return f"{space.model} ({space.dimension})"


def _space_json(space: Space) -> dict[str, Any]:
    return {
        "space": space.space_id,
        "model": space.model,
        "dimensions": space.dimension,
        "status": space.status,
        "since": space.since,
    }


def _fill_json(fill: SpaceFill) -> dict[str, Any]:
    return {**_space_json(fill.space), "filled": fill.filled, "total": fill.total, "kept_until": fill.kept_until}


def _report_json(report: ReembedReport) -> Mapping[str, Any]:
    return {**report.as_json(), "dropped": [_space_json(one) for one in report.dropped]}
