"""``recollect consolidate``: what is asked for again and again becomes facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command

if TYPE_CHECKING:
    from recollect.model.facts import ConsolidationReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "consolidate", remote=True)(_consolidate)


def _consolidate(
    ctx: CommandContext,
    *,
    min_retrievals: Annotated[
        int | None,
        typer.Option(metavar="N", help="Look at turns that searches found N times or more; by default as configured."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Only of this user's conversations.")] = None,
    limit: Annotated[int, typer.Option(help="How many turns at most, the most often found first.")] = 100,
) -> int:
    """Draw facts from the turns that are asked for again and again; each turn is looked at once.

    Without a language model, sentences that state something become facts as they are.
    """
    with ctx.view(user=user) as view:
        report = view.facts.consolidate(min_retrievals=min_retrievals, limit=limit)
        least = ctx.config.memory.min_retrievals if min_retrievals is None else min_retrievals
    if ctx.json:
        ctx.emit(report)
    else:
        ctx.out.print(_words(report, least), soft_wrap=True)
    for failure in report.failures:
        ctx.note(f"Sentences were taken as they are, because the language model failed: {failure}")
    return 0


def _words(report: ConsolidationReport, least: int) -> str:
    if not report.examined:
        times = "once" if least == 1 else f"{least:,} times"
        return f"Nothing to look at: no turn was found {times} or more that was not looked at before."
    parts = [f"{report.added:,} new", f"{report.repeated:,} said again", f"{report.superseded:,} superseded"]
    turns = "turn" if report.examined == 1 else "turns"
    return f"Looked at {report.examined:,} {turns}. Facts: {', '.join(parts)}. See: recollect facts list"
