"""``recollect context``: documents, conversations and facts for a prompt; and ``feedback``: whether they helped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import empty_collection, told_besides
from recollect.cli._terminal import plain
from recollect.context import RetrievalWeights
from recollect.context.hybrid import passages_for
from recollect.errors import UsageError
from recollect.model import RetrievalOptions
from recollect.model.search_options import validate
from recollect.replies.contexts import context_assembly_json, context_explain_json

if TYPE_CHECKING:
    from recollect.context import HybridContext, WeightAdaptation


_BUDGET = 2_000


class Strategy(StrEnum):
    """What a context is made of."""

    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    RAG = "rag"
    DOCUMENTS = "documents"
    BM25 = "bm25"


class Focus(StrEnum):
    """What weighs more."""

    BALANCED = "balanced"
    RAG = "rag"
    MEMORY = "memory"


# What a strategy would pass over: it asks no conversations, or weighs nothing against anything.
_WITHOUT_EFFECT = {Strategy.DOCUMENTS: ("--focus", "--session", "--user"), Strategy.EPISODIC: ("--focus",)}


def _context(
    ctx: CommandContext,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is asked, in plain words.")],
    conversation: Annotated[
        str | None, typer.Option("--session", help="The conversation at hand; it may not have begun yet.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Search all of this user's conversations, beside the one named.")
    ] = None,
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="Everything; by meaning, facts first; conversations alone; documents and memory, documents first, or "
            "memory where there are none; documents alone; by words."
        ),
    ] = Strategy.HYBRID,
    focus: Annotated[
        Focus | None,
        typer.Option(
            help="Documents and memory 50/50, 70/30 (rag), or 40/60 (memory); by default as the strategy has it."
        ),
    ] = None,
    min_relevance: Annotated[
        float | None, typer.Option(help="Of documents' passages: drop those of a lower relevance, 0 to 1; 0: none.")
    ] = None,
    token_budget: Annotated[int, typer.Option(help="Tokens of the context at most.")] = _BUDGET,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="What was known at this time (without a zone: UTC).")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what each side weighs, and why.")] = False,
) -> int:
    """Print a context of documents, conversations and facts for a prompt, within a budget of tokens."""
    _require_effect(strategy, {"--focus": focus, "--session": conversation, "--user": user})
    validate(text, RetrievalOptions(top_k=passages_for(token_budget), min_relevance=min_relevance))
    with ctx.view(user=user, as_of=as_of, session=conversation) as view:
        how: dict[str, Any] = {"weights": _weights(focus), "min_relevance": min_relevance}
        found = view.memory.assemble(text, strategy.value, token_budget, **how)
        empty = None if found.passages else empty_collection(view)
    why = [empty] if empty else []
    context = replace(found.context, warnings=told_besides(found.context.warnings, why))
    if ctx.json:
        found = replace(found, context=context)
        ctx.emit(context_assembly_json(text, found, explain=explain, warnings=why))
    else:
        _show(ctx, found, explain=explain)
        for warning in [*context.warnings, *why]:
            ctx.note(warning)
    return 0


def _require_effect(strategy: Strategy, given: Mapping[str, str | None]) -> None:
    for name in _WITHOUT_EFFECT.get(strategy, ()):
        if given[name] is not None:
            raise UsageError(f"{name} has no effect on --strategy {strategy}: leave one of both out.")


def _weights(focus: Focus | None) -> RetrievalWeights | None:
    made = {
        Focus.BALANCED: RetrievalWeights.balanced,
        Focus.RAG: RetrievalWeights.rag_focused,
        Focus.MEMORY: RetrievalWeights.memory_focused,
    }
    return None if focus is None else made[focus]()


def _show(ctx: CommandContext, found: HybridContext, *, explain: bool) -> None:
    if found.text:
        # A terminal would obey what a document holds; a file or a pipe gets the text as it is.
        ctx.out.out(plain(found.text) if ctx.out.is_terminal else found.text, highlight=False)
    kinds = {"document": "from documents", "memory": "from conversations", "fact": "from facts"}
    counts = {kind: sum(one.kind == kind for one in found.passages) for kind in kinds}
    parts = ", ".join(f"{count:,} {kinds[kind]}" for kind, count in counts.items() if count) or "nothing found"
    ctx.note(f"{found.token_count:,} tokens: {parts}")
    if explain:
        told = context_explain_json(found)
        used = found.weights
        ctx.note(f"weights: documents {used.rag:.2f}, memory {used.memory:.2f} ({told['feedback']})")


feedback_app = typer.Typer(
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
        return _tell(ctx, view.feedback.give(sources, helpful=helpful))


def _show_weights(ctx: CommandContext, *, conversation: _Conversation = None) -> int:
    """Show what feedback makes of the weights."""
    with ctx.view(session=conversation) as view:
        return _tell(ctx, view.feedback.weights())


def _reset(ctx: CommandContext, *, conversation: _Conversation = None) -> int:
    """Forget the feedback: the weights are as before it."""
    with ctx.view(session=conversation) as view:
        count = view.feedback.reset()
    return ctx.tell(
        {"forgotten": count}, f"Forgot the feedback on {count:,} {'passage' if count == 1 else 'passages'}."
    )


def _tell(ctx: CommandContext, adaptation: WeightAdaptation) -> int:
    if ctx.json:
        ctx.emit(adaptation)
        return 0
    weights = adaptation.weights
    ctx.out.print(f"documents {weights.rag:.2f}, memory {weights.memory:.2f} ({adaptation.explanation})")
    if not adaptation.on:
        ctx.note("Contexts do not use this: set adaptive_weights = true in [rag.memory].")
    return 0


command(feedback_app, "helpful", remote=True)(_helpful)


command(feedback_app, "not", remote=True)(_not)


command(feedback_app, "show", remote=True)(_show_weights)


command(feedback_app, "reset", remote=True)(_reset)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "context", collection=True, remote=True)(_context)
    app.add_typer(feedback_app, name="feedback")
