"""``recollect cleanup``: what has passed its time."""

from __future__ import annotations

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "cleanup", remote=True)(_cleanup)


def _cleanup(ctx: CommandContext) -> int:
    """Close the documents whose time to live is over, remove expired sessions, and drop what the audit need not keep.

    Searches leave out what has expired without it. Closed documents keep their history; `documents erase` removes it.
    """
    with ctx.view() as view:
        report = view.maintenance.cleanup()
    if ctx.json:
        ctx.emit(report)
        return 0
    ctx.out.print(f"{report.expired:,} document{'' if report.expired == 1 else 's'} expired.")
    if report.sessions_ended:
        count = report.sessions_ended
        ctx.out.print(f"{count:,} expired session{'' if count == 1 else 's'} removed, with all documents.")
    if report.partitions_dropped:
        count = len(report.partitions_dropped)
        ctx.out.print(f"{count:,} partition{'' if count == 1 else 's'} of the audit dropped.")
    return 0
