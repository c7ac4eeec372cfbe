"""``recollect why-not`` and ``diff``: what keeps a document out of the results, and what changed in them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import SearchOptions
from recollect.cli._terminal import moment_text, one_line, print_indented, shortened
from recollect.cli.query import place
from recollect.model.search_options import validate
from recollect.replies.retrieval import why_not_json

if TYPE_CHECKING:
    from recollect.model import RetrievedContext
    from recollect.model.history import EvidenceDiff
    from recollect.model.why_not import WhyNot


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
    validate(text, options)
    with ctx.view() as view:
        told = view.why_not(text, document, options)
    return ctx.tell(why_not_json(told), lambda: _show_why_not(ctx, told))


def _show_why_not(ctx: CommandContext, told: WhyNot) -> None:
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


_SHOWN_CHARACTERS = 300


def _diff(
    ctx: CommandContext,
    search: SearchOptions,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A question, in plain words.")],
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="The earlier moment: a date, a time, or how long ago (7d).")
    ],
    to: Annotated[str, typer.Option("--to", metavar="TIME", help="The later moment.")] = "now",
) -> int:
    """Show how the evidence for a question changed from one moment to another: what came, went, changed and stayed."""
    options = search.retrieval(ctx.config)
    validate(text, options)
    with ctx.view() as view:
        diff = view.documents.diff_evidence(
            text, from_time=from_, to_time=None if to.strip().lower() == "now" else to, options=options
        )
    return ctx.tell(diff, lambda: _show_diff(ctx, diff))


def _show_diff(ctx: CommandContext, diff: EvidenceDiff) -> None:
    out = ctx.out
    out.print(f"{moment_text(diff.from_time)} → {moment_text(diff.to_time)} UTC", style="dim", highlight=False)
    for one in diff.came:
        why = "known before, but others were better" if one.outranked else ""
        _show_passage(ctx, "+", one.passage, "green", why)
    for old, new in diff.changed:
        _show_passage(ctx, "~", new, "yellow", "")
        _show_words(ctx, old.content, new.content)
    for one in diff.went:
        why = "still known, but others are better" if one.outranked else ""
        _show_passage(ctx, "-", one.passage, "red", why)
    for stayed in diff.stayed:
        out.print(Text("= ", style="dim").append_text(_where(stayed)))
    if not (diff.came or diff.changed or diff.went):
        out.print("The evidence is the same." if diff.stayed else "Nothing was found at either moment.")


def _where(passage: RetrievedContext) -> Any:  # noqa: ANN401 - rich's Text, which is imported late
    return place(passage.source, passage.section, passage.page)


def _show_passage(ctx: CommandContext, sign: str, passage: RetrievedContext, style: str, note: str) -> None:
    head = Text(f"{sign} ", style=f"bold {style}").append_text(_where(passage))
    ctx.out.print(head.append(f"  ({note})" if note else "", "dim"))
    if sign != "~":
        print_indented(ctx.out, Text(shortened(passage.content, _SHOWN_CHARACTERS), style=style), by=4)


def _show_words(ctx: CommandContext, before: str, after: str) -> None:
    """The lines that differ between two forms of a passage."""
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if line[:2] in {"- ", "+ "} and line[2:].strip():
            style = "red" if line[0] == "-" else "green"
            print_indented(ctx.out, Text(shortened(line, _SHOWN_CHARACTERS), style=style), by=4)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "why-not", collection=True, remote=True)(_why_not)
    command(app, "diff", collection=True, remote=True)(_diff)
