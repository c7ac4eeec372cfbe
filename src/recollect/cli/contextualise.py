"""``recollect contextualise``: a sentence for each chunk that situates it in its document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._jobs import result_of, tell_asked
from recollect.cli._options import command
from recollect.cli._progress import WorkBar
from recollect.model.record import adapter_of, json_of

if TYPE_CHECKING:
    from recollect.model.contexts import ContextEstimate
    from recollect.pipeline import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "contextualise",
        collection=True,
        remote=True,
    )(_contextualise)


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
            if ctx.json:
                ctx.emit({"estimate": json_of(needed)})
            else:
                ctx.out.print(told(needed))
            return 0
        if needed.chunks:
            ctx.note(told(needed))
            ctx.confirm("Ask the model?", yes=yes)
        if background:
            return tell_asked(ctx, view.jobs.contextualise())
        return write(ctx, view)


def told(needed: ContextEstimate) -> str:
    """An estimate in words."""
    if not needed.chunks:
        return "Every chunk is situated already."
    cost = "at prices that are not configured" if needed.cost is None else f"for about {needed.cost:,.2f}"
    return (
        f"{needed.chunks:,} chunks of {needed.documents:,} documents: about {needed.input_tokens:,} tokens to "
        f"{needed.model} and {needed.output_tokens:,} from it, {cost}."
    )


def write(ctx: CommandContext, view: View) -> int:
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
    ctx.note(told(needed) if yes else f"{told(needed)} To do it: recollect contextualise, or ingest --yes.")
    if yes:
        with WorkBar(ctx.err, "Situating", unit="documents") as bar:
            view.maintenance.write_contexts(on_progress=bar.update)
