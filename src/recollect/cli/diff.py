"""``recollect diff``: how the evidence for a question changed between two moments."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._searching import SearchOptions
from recollect.cli._terminal import print_indented, shortened
from recollect.cli.history import moment_text
from recollect.cli.query import place
from recollect.model.search_options import validate

if TYPE_CHECKING:
    from recollect.model import RetrievedContext
    from recollect.model.history import EvidenceDiff

_SHOWN_CHARACTERS = 300


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "diff", collection=True, remote=True)(_diff)


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
    question = argument_text(text)
    validate(question, options)
    with ctx.view() as view:
        diff = view.documents.diff_evidence(
            question, from_time=from_, to_time=None if to.strip().lower() == "now" else to, options=options
        )
    if ctx.json:
        ctx.emit(diff)
    else:
        _show(ctx, diff)
    return 0


def _show(ctx: CommandContext, diff: EvidenceDiff) -> None:
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
