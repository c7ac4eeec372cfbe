"""``recollect reembed`` and ``contextualise``: another model, or a model's sentences, for what a collection holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._progress import WorkBar
from recollect.cli._terminal import plain
from recollect.cli.jobs import result_of, tell_queued
from recollect.errors import UsageError
from recollect.model.record import adapter_of, json_of

if TYPE_CHECKING:
    from recollect.ingest.reembedding import FillProgress
    from recollect.model.contexts import ContextEstimate
    from recollect.model.job import Job
    from recollect.model.space import Space
    from recollect.pipeline import View
    from recollect.pipeline.spaces import ReembedReport


# What a comparison by sampled questions calls the share that both models find.
_OVERLAP = "overlap@10"


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
    if background and (drop or status):
        raise UsageError("--background is for --model MODEL and --rollback: the others take no time.")
    wanted: dict[str, Any] = {
        "provider": provider,
        "dimensions": dimensions,
        "cases": cases,
        "samples": samples,
        "minimum": _minimum(minimum or []),
        "switch": not no_switch,
        "rest": pause,
    }
    with ctx.view(collections=ctx.collection) as view:
        if status:
            return _status(ctx, view)
        if drop:
            return _drop(ctx, view, yes=yes)
        if background or ctx.server is not None:
            job = _asked(view, model, wanted)
            if background:
                return tell_queued(ctx, job)
            told = result_of(ctx, view, job, title="Embedding", unit="chunks")
        else:
            told = _changed(ctx, view, model, wanted).as_json()
    return ctx.tell(told, lambda: _show(ctx, told), status=1 if told["refused"] else 0)


def _asked(view: View, model: str | None, wanted: Mapping[str, Any]) -> Job:
    """The job that changes to a model; None: back to the one before."""
    if model is None:
        return view.jobs.rollback(rest=wanted["rest"])
    return view.jobs.reembed(model, **wanted)


def _changed(ctx: CommandContext, view: View, model: str | None, wanted: Mapping[str, Any]) -> ReembedReport:
    """The change to a model, made here; None: back to the one before."""
    if not ctx.json:
        to = "the model before" if model is None else model
        ctx.note(f"Embedding {view.standpoint.collection} with {to}. Searches use the present model until it is done.")
    with WorkBar(ctx.err, "Embedding", unit="chunks") as bar:

        def tell(state: FillProgress) -> None:
            bar.update(state.filled, state.total)

        if model is None:
            return view.spaces.rollback(rest=wanted["rest"], on_progress=tell)
        return view.spaces.reembed(model, **wanted, on_progress=tell)


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
        ctx.emit(report)
        return 0
    ctx.out.print(plain(f"{report.collection}: embedded with {_named(report.used)}."))
    for one in report.beside:
        until = "" if one.kept_until is None else f" until {one.kept_until:%Y-%m-%d}"
        words = {
            "filling": "being filled",
            "kept": f"kept for --rollback{until}",
            "dropping": "half removed: --drop removes it",
        }
        what = words[one.status]
        ctx.out.print(plain(f"  {_named(one)}: {what}, {one.filled:,} of {one.total:,} chunks."))
    return 0


def _drop(ctx: CommandContext, view: View, *, yes: bool) -> int:
    beside = view.spaces.status().beside
    if beside:
        named = ", ".join(_named(one) for one in beside)
        ctx.confirm(f"Remove the vectors of {named} for good? There is no way back to them then.", yes=yes)
    dropped = view.spaces.drop()
    if ctx.json:
        ctx.emit(dropped)
    elif dropped:
        ctx.out.print(plain(f"Removed the vectors of {', '.join(map(_named, dropped))}."))
    else:
        ctx.out.print("There is nothing beside the model that is used.")
    return 0


def _show(ctx: CommandContext, told: Mapping[str, Any]) -> None:
    for space in told["dropped"]:
        ctx.out.print(plain(f"Removed what was kept of {_told(space)}."))
    ctx.out.print(plain(f"{told['collection']}: {told['embedded']:,} chunks embedded with {_told(told['to'])}."))
    if told["comparison"] is not None:
        _show_comparison(ctx, told["comparison"])
    before = _told(told["from"])
    if told["switched"]:
        ctx.out.print(
            plain(
                f"It is used from now on. {before} is kept: recollect reembed --rollback goes back to it, --drop "
                "removes it."
            ),
            soft_wrap=True,
        )
    elif told["refused"]:
        ctx.note(f"Not changed to it: {'; '.join(told['refused'])}. {before} is used as before.")
    else:
        ctx.out.print(plain(f"{before} is used as before: without --no-switch it is changed."))


def _show_comparison(ctx: CommandContext, told: Mapping[str, Any]) -> None:
    first, second = told["systems"]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("", first["name"], second["name"], "Difference"):
        table.add_column(Text(title), justify="left" if not title else "right", overflow="fold")
    before, after = first["metrics"], second["metrics"]
    for one in told["comparisons"]:
        name = one["metric"]
        words = " (significant)" if one["significant"] else ""
        table.add_row(Text(name), f"{before[name]:.3f}", f"{after[name]:.3f}", f"{one['difference']:+.3f}{words}")
    ctx.out.print(table)
    asked = f"{told['queries']:,} {'test cases' if told['of'] == 'cases' else 'sampled questions'}"
    shared = f"; {told[_OVERLAP]:.0%} of the best ten are the same" if _OVERLAP in told else ""
    ctx.out.print(f"{asked}{shared}", style="dim")


def _named(space: Space) -> str:
    return f"{space.model} ({space.dimension})"


def _told(space: Mapping[str, Any]) -> str:
    return f"{space['model']} ({space['dimensions']})"


def _contextualise(
    ctx: CommandContext,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    estimate: Annotated[bool, typer.Option("--estimate", help="Say what it would take, and do nothing.")] = False,
    background: Annotated[bool, typer.Option("--background", help="As a job, for a worker.")] = False,
) -> int:
    """Have a language model situate each chunk in its document by a sentence, which is indexed with it.

    The model is that of [rag.ingest] contextualise. What it would take is said before it begins. What is situated
    already is passed over, so it can be interrupted and run again.
    """
    with ctx.view() as view:
        needed = view.maintenance.estimate_contexts()
        if estimate:
            return ctx.tell({"estimate": json_of(needed)}, _estimated(needed))
        if needed.chunks:
            ctx.note(_estimated(needed))
            ctx.confirm("Ask the model?", yes=yes)
        if background:
            return tell_queued(ctx, view.jobs.contextualise())
        return _write(ctx, view)


def _estimated(needed: ContextEstimate) -> str:
    """An estimate in words."""
    if not needed.chunks:
        return "Every chunk is situated already."
    cost = "at prices that are not configured" if needed.cost is None else f"for about {needed.cost:,.2f}"
    return (
        f"{needed.chunks:,} chunks of {needed.documents:,} documents: about {needed.input_tokens:,} tokens to "
        f"{needed.model} and {needed.output_tokens:,} from it, {cost}."
    )


def _write(ctx: CommandContext, view: View) -> int:
    """Situate what is missing, with progress; returns the exit status."""
    from recollect.model.contexts import ContextReport

    if ctx.server is None:
        with WorkBar(ctx.err, "Situating", unit="documents") as bar:
            done = view.maintenance.write_contexts(on_progress=bar.update)
    else:
        told = result_of(ctx, view, view.jobs.contextualise(), title="Situating", unit="documents")
        done = adapter_of(ContextReport).validate_python(told)
    if ctx.json:
        ctx.emit(json_of(done))
    else:
        without = f", {done.without:,} without a usable sentence" if done.without else ""
        ctx.out.print(f"{done.chunks:,} chunks of {done.documents:,} documents situated{without}.")
    return 0


def situate(ctx: CommandContext, view: View, *, yes: bool) -> None:
    """Say what situating the chunks would take, and do it where that is wanted."""
    at = view.standpoint
    if ctx.config.ingest.contextualise is None or at.session is not None or not at.is_owner:
        return
    needed = view.maintenance.estimate_contexts()
    if not needed.chunks:
        return
    ctx.note(_estimated(needed) if yes else f"{_estimated(needed)} To do it: recollect contextualise, or ingest --yes.")
    if yes:
        with WorkBar(ctx.err, "Situating", unit="documents") as bar:
            view.maintenance.write_contexts(on_progress=bar.update)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "reembed", collection=True, remote=True)(_reembed)
    command(app, "contextualise", collection=True, remote=True)(_contextualise)
