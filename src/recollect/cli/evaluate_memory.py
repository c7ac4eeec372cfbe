"""``recollect eval memory``: how well memory finds the turns that answer questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import Mode, command

if TYPE_CHECKING:
    from rich.table import Table

    from recollect.evaluation.memory import MemoryReport


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "memory", local="it measures what searches and answers do in its own process")(_memory)


def _memory(
    ctx: CommandContext,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Conversations with questions, in JSON.")],
    mode: Annotated[Mode, typer.Option(help="Words and meaning, meaning only, or words only.")] = Mode.HYBRID,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the sessions made for this run.")] = False,
) -> int:
    """Find turns: recall of the turns that answer, on a file of conversations with questions.

    FILE holds {"conversations": [{"id", "sessions": [{"id", "date", "turns": [{"id", "speaker", "text"}]}],
    "questions": [{"question", "category", "evidence": ["turn id", …]}]}]}. Every conversation is remembered as one
    user's, its questions are asked, and the sessions are removed again.
    """
    from recollect.cli._measuring import Measuring
    from recollect.evaluation.memory_files import load_memory
    from recollect.model import RetrievalOptions

    dataset = load_memory(file)
    report = Measuring(ctx=ctx, options=RetrievalOptions(), keep=keep).memory(dataset, mode.value)
    if ctx.json:
        ctx.emit(report.as_json())
    else:
        _show(ctx, report)
    if dataset.undated:
        ctx.note(f"{dataset.undated:,} sessions have no date that can be read: their turns have none.")
    return 0


def _show(ctx: CommandContext, report: MemoryReport) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in report.metrics:
        table.add_column(name.replace("evidence_recall", "recall").replace("session_hit", "session"), justify="right")
    _add(table, "all", report.metrics)
    for category, figures in report.by_category.items():
        _add(table, f"category {category}" if category else "no category", figures)
    for conversation, figures in report.by_conversation.items():
        _add(table, conversation, figures)
    out = ctx.out
    out.print(table)
    out.print(f"{report.questions:,} questions on {report.turns:,} turns in {report.seconds:,.1f} s")
    out.print(f"a question: {report.query_ms.p50:,.1f} ms (median), {report.query_ms.p95:,.1f} ms (95th percentile)")
    if report.unanswered:
        out.print(f"left out: {report.unanswered:,} questions that name no evidence")
    if report.unknown_evidence:
        out.print(f"not found because there is no such turn: {report.unknown_evidence:,} pieces of evidence")


def _add(table: Table, name: str, figures: Mapping[str, float]) -> None:
    from recollect.cli._terminal import one_line

    table.add_row(one_line(name), *(f"{value:.4f}" for value in figures.values()))
