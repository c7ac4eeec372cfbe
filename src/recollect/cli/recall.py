"""``recollect recall``: what was said about something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import Mode, command
from recollect.cli._terminal import Highlighter, one_line, print_indented, shortened
from recollect.cli._turns import moment_words
from recollect.model.memory import RecallOptions
from recollect.model.record import json_of
from recollect.model.time import read_time
from recollect.retrieval.analysis import Analyzer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model.memory import Episode, Recollection

_SNIPPET_LINES = 3
_INDENT = 3


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "recall", remote=True)(_recall)


def _recall(
    ctx: CommandContext,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in plain words.")],
    conversation: Annotated[str | None, typer.Option("--session", help="Search this conversation.")] = None,
    user: Annotated[
        str | None, typer.Option(help="Search all of this user's conversations, beside the one named.")
    ] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Turns to find, 1 to 1,000.")] = 10,
    mode: Annotated[Mode, typer.Option(help="Words and meaning, meaning only, or words only.")] = Mode.HYBRID,
    neighbours: Annotated[int, typer.Option(help="Turns to show before and after each, 0 to 50.")] = 1,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only what was said then or later: a date, a time, or 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Only what was said before this time.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="TIME", help="What was known at this time (without a zone: UTC).")
    ] = None,
) -> int:
    """Find what was said: the turns that answer, with those around them.

    Without --session and --user, every conversation is searched.
    """
    query = argument_text(text)
    options = RecallOptions(
        top_k=top_k,
        mode=mode.value,
        before=neighbours,
        after=neighbours,
        since=None if since is None else read_time(since, name="--since"),
        until=None if until is None else read_time(until, name="--until"),
    )
    moment = None if as_of is None else read_time(as_of, name="--as-of")
    with ctx.view(session=conversation, user=user, as_of=moment) as view:
        found = view.recall(query, options)
        language = ctx.config.language
    if ctx.json:
        ctx.emit({"query": query, "mode": options.mode, "results": json_of(found)})
    else:
        _show(ctx, query, language, found)
    return 0


def _show(ctx: CommandContext, query: str, language: str, found: Sequence[Recollection]) -> None:
    if not found:
        ctx.out.print("Nothing like it is remembered.")
        return
    highlighter = Highlighter(query, Analyzer(language))
    for one in found:
        _show_one(ctx, one, highlighter)


def _show_one(ctx: CommandContext, one: Recollection, highlighter: Highlighter) -> None:
    out, episode = ctx.out, one.episode
    whose = f" ({one_line(one.user)})" if one.user else ""
    head = Text(f"{one.rank}. ", style="bold")
    head.append(one_line(episode.session), style="bold cyan")
    head.append(f"{whose}, turn {episode.position}, {moment_words(episode.at)}", style="dim")
    out.print(head, soft_wrap=True)
    for turn in one.before:
        _show_neighbour(ctx, turn)
    said = Text(f"{one_line(episode.role)}: ", style="bold")
    said.append_text(highlighter.snippet(episode.content, length=out.width * _SNIPPET_LINES))
    print_indented(out, said, by=_INDENT)
    for turn in one.after:
        _show_neighbour(ctx, turn)
    out.print()


def _show_neighbour(ctx: CommandContext, turn: Episode) -> None:
    room = max(20, ctx.out.width - _INDENT - len(turn.role) - 2)
    line = Text(f"{' ' * _INDENT}{one_line(turn.role)}: {shortened(turn.content, room)}", style="dim")
    ctx.out.print(line, soft_wrap=True)
