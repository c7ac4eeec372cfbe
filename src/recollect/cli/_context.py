"""``recollect query --context``: what a language model would be shown, for other programs to show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.cli._command_context import CommandContext
    from recollect.context import AssembledContext

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
        from recollect.replies.contexts import assembled_context_json

        ctx.emit(assembled_context_json(question, context, collection=collection, warnings=warnings))
        return
    if context.text:
        # A terminal would obey what a document holds; a file or a pipe gets the text as it is.
        shown = plain(context.text) if ctx.out.is_terminal else context.text
        ctx.out.out(shown, highlight=False)
    count = len(context.blocks)
    omitted = f", {context.omitted:,} more found no room" if context.omitted else ""
    for warning in [*context.warnings, *warnings]:
        ctx.note(warning)
    ctx.note(f"{count:,} passage{'' if count == 1 else 's'}, {context.token_count:,} tokens{omitted}")
