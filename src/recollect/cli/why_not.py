"""``recollect why-not``: what keeps a document out of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._searching import SearchOptions
from recollect.cli._terminal import one_line
from recollect.model.search_options import validate
from recollect.replies.retrieval import why_not_json

if TYPE_CHECKING:
    from recollect.model.why_not import WhyNot


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "why-not", collection=True, remote=True)(_why_not)


def _why_not(
    ctx: CommandContext,
    search: SearchOptions,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The query, as it was searched.")],
    document: Annotated[
        str,
        typer.Argument(metavar="DOCUMENT", help="The document that is missed: id, source, title or end of its path."),
    ],
) -> int:
    """Say where a document stands at every stage of a search, and what keeps it out of the results.

    Give the options of the search that missed it. What is advised has been tried.
    """
    options = search.retrieval(ctx.config)
    question = argument_text(text)
    validate(question, options)
    with ctx.view() as view:
        told = view.why_not(question, argument_text(document), options)
    if ctx.json:
        ctx.emit(why_not_json(told))
    else:
        _show(ctx, told)
    return 0


def _show(ctx: CommandContext, told: WhyNot) -> None:
    document = told.document
    head = Text(one_line(document.source), style="bold cyan")
    if document.title and document.title != document.source:
        head.append(f"  {one_line(document.title)}", "not bold default")
    head.append(f"  (document {document.document_id})", "dim not bold")
    ctx.out.print(head, soft_wrap=not ctx.out.is_terminal)
    ctx.out.print()
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for stage in told.stages:
        mark = Text("ok", "green") if stage.passed else Text("no", "bold red")
        table.add_row(mark, stage.stage, Text(one_line(stage.detail), style="dim" if stage.passed else ""))
    ctx.out.print(table)
    ctx.out.print()
    ctx.out.print(Text(one_line(told.verdict), style="green" if told.found else "bold"))
