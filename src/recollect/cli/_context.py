"""``recollect query --context``: what a language model would be shown, for other programs to show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._notes import notes_as_json
from recollect.cli._passages import where_as_json
from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.cli._command_context import CommandContext
    from recollect.context import AssembledContext, ContextBlock

_PANEL = "Context"


@dataclass(frozen=True, kw_only=True)
class ContextOptions:
    """Whether passages are printed as a prompt's context, and how long it may be."""

    context: Annotated[
        bool,
        typer.Option(
            "--context", help="Print numbered passages for a prompt, within a budget.", rich_help_panel=_PANEL
        ),
    ] = False
    token_budget: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the context at most.", rich_help_panel=_PANEL)
    ] = None
    max_context_length: Annotated[
        int | None, typer.Option(min=1, help="Characters of the context at most.", rich_help_panel=_PANEL)
    ] = None

    def require_consistent(self, *, explain: bool) -> None:
        """Raises UsageError where a limit is given, and no context is wanted, or ranks are to be explained of one."""
        if self.context and explain:
            raise UsageError(
                "--explain says how passages came to their ranks, which a context leaves out: one of both."
            )
        if not self.context and (self.token_budget or self.max_context_length):
            name = "--token-budget" if self.token_budget else "--max-context-length"
            raise UsageError(f"{name} limits a context: give --context with it.")


def show_context(
    ctx: CommandContext, question: str, context: AssembledContext, *, collection: str, warnings: Sequence[str] = ()
) -> None:
    """Print a context: its text alone on standard output, what is to be known about it beside it."""
    from recollect.cli._terminal import plain

    if ctx.json:
        told = {"warnings": list(warnings)} if warnings else {}
        ctx.emit({**context_as_json(question, context, collection=collection), **told})
        return
    if context.text:
        # A terminal would obey what a document holds; a file or a pipe gets the text as it is.
        shown = plain(context.text) if ctx.out.is_terminal else context.text
        ctx.out.out(shown, highlight=False)
    count = len(context.blocks)
    omitted = f", {context.omitted:,} more found no room" if context.omitted else ""
    for warning in warnings:
        ctx.note(warning)
    ctx.note(f"{count:,} passage{'' if count == 1 else 's'}, {context.token_count:,} tokens{omitted}")


def context_as_json(question: str, context: AssembledContext, *, collection: str) -> dict[str, Any]:
    """The context as ``--json`` prints it."""
    return {
        "query": question,
        "collection": collection,
        "context": context.text,
        "token_count": context.token_count,
        "omitted": context.omitted,
        "passages": [_block(block) for block in context.blocks],
    }


def _block(block: ContextBlock) -> dict[str, Any]:
    passage = block.passage
    values = {"chunk_id": passage.chunk_id, "relevance": passage.relevance, **where_as_json(passage)}
    date = passage.event_time.isoformat() if passage.event_time else None
    shown = {"number": block.number, **values, "event_time": date, "shortened": block.shortened}
    return {**shown, "notes": notes_as_json(passage.notes)} if passage.notes else shown
