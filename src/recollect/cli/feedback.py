"""``recollect feedback``: whether what a context showed has helped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command

if TYPE_CHECKING:
    from recollect.context import WeightAdaptation

app = typer.Typer(
    help="Say whether passages of a context helped, and see or forget what that makes of the weights.",
    no_args_is_help=True,
)

_Sources = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE…", help="As the context named them: memory:chat-1, fact:7, hr/leave.md."),
]
_Conversation = Annotated[
    str | None, typer.Option("--session", help="In contexts of this conversation; by default in all.")
]


def _helpful(ctx: CommandContext, *, sources: _Sources, conversation: _Conversation = None) -> int:
    """Say that passages helped."""
    return _give(ctx, sources, conversation, helpful=True)


def _not(ctx: CommandContext, *, sources: _Sources, conversation: _Conversation = None) -> int:
    """Say that passages did not help."""
    return _give(ctx, sources, conversation, helpful=False)


def _give(ctx: CommandContext, sources: list[str], conversation: str | None, *, helpful: bool) -> int:
    with ctx.view(session=conversation) as view:
        return _tell(ctx, view.feedback.give([argument_text(source) for source in sources], helpful=helpful))


def _show(ctx: CommandContext, *, conversation: _Conversation = None) -> int:
    """Show what feedback makes of the weights."""
    with ctx.view(session=conversation) as view:
        return _tell(ctx, view.feedback.weights())


def _reset(ctx: CommandContext, *, conversation: _Conversation = None) -> int:
    """Forget the feedback: the weights are as before it."""
    with ctx.view(session=conversation) as view:
        count = view.feedback.reset()
    if ctx.json:
        ctx.emit({"forgotten": count})
    else:
        ctx.out.print(f"Forgot the feedback on {count:,} {'passage' if count == 1 else 'passages'}.")
    return 0


def _tell(ctx: CommandContext, adaptation: WeightAdaptation) -> int:
    if ctx.json:
        ctx.emit(adaptation)
        return 0
    weights = adaptation.weights
    ctx.out.print(f"documents {weights.rag:.2f}, memory {weights.memory:.2f} ({adaptation.explanation})")
    if not adaptation.on:
        ctx.note("Contexts do not use this: set adaptive_weights = true in [rag.memory].")
    return 0


command(app, "helpful", remote=True)(_helpful)
command(app, "not", remote=True)(_not)
command(app, "show", remote=True)(_show)
command(app, "reset", remote=True)(_reset)
