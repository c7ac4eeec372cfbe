"""``recollect facts``: what memory holds as facts, and the words that they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import Mode, command
from recollect.cli._terminal import one_line, print_indented
from recollect.cli._turns import moment_words
from recollect.model.page import MOST_OF_A_PAGE
from recollect.model.record import json_of
from recollect.model.time import read_time
from recollect.operations.conversations import FactOperations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.model.facts import Fact

app = typer.Typer(help="List, search, show, follow and delete facts drawn from conversations.", no_args_is_help=True)

_Number = Annotated[int, typer.Argument(metavar="FACT", help="Its number.")]
_User = Annotated[str | None, typer.Option(help="Only facts from this user's conversations.")]
_Conversation = Annotated[str | None, typer.Option("--session", help="Only facts from this conversation.")]
_AsOf = Annotated[
    str | None, typer.Option(metavar="TIME", help="As they were known at this time (without a zone: UTC).")
]


def _list(
    ctx: CommandContext,
    *,
    user: _User = None,
    conversation: _Conversation = None,
    superseded: Annotated[bool, typer.Option("--all", help="Also those that others have taken the place of.")] = False,
    cursor: Annotated[str | None, typer.Option(help="Where the page before said that the next one begins.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_OF_A_PAGE, help="How many at most, the latest first.")] = 100,
    as_of: _AsOf = None,
) -> int:
    """List the facts that are current, what was said last first."""
    with ctx.view(user=user, session=conversation, as_of=_moment(as_of)) as view:
        found = view.facts.list(superseded=superseded, cursor=cursor, limit=limit)
    if ctx.json:
        ctx.emit(found)
        return 0
    if not found:
        ctx.out.print("There are no facts yet. They come from what is asked for: recollect consolidate")
    for fact in found:
        _show_one(ctx, fact)
    if found.next_cursor is not None:
        ctx.note(f"There are more: recollect facts list --cursor {found.next_cursor}")
    return 0


def _search(
    ctx: CommandContext,
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for, in plain words.")],
    user: _User = None,
    conversation: _Conversation = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Facts to find, 1 to 1,000.")] = 10,
    mode: Annotated[Mode, typer.Option(help="Words and meaning, meaning only, or words only.")] = Mode.HYBRID,
    as_of: _AsOf = None,
) -> int:
    """Find the facts that answer a question."""
    query = argument_text(text)
    with ctx.view(user=user, session=conversation, as_of=_moment(as_of)) as view:
        found = view.facts.search(query, top_k=top_k, mode=mode.value)
    if ctx.json:
        ctx.emit({"query": query, "mode": mode.value, "results": json_of(found)})
        return 0
    if not found:
        ctx.out.print("No fact is like it.")
    for fact in found:
        _show_one(ctx, fact)
    return 0


def _show_all(ctx: CommandContext, thread: Sequence[Fact]) -> None:
    for fact in thread:
        _show_one(ctx, fact)
        _show_evidence(ctx, fact)


def _delete(
    ctx: CommandContext,
    *,
    number: _Number,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove a fact; the turns that it rests on stay, and what it superseded is current again."""
    with ctx.view() as view:
        fact = view.facts.get(number)
        ctx.confirm(f"Remove the fact {fact.statement!r}?", yes=yes)
        view.facts.delete(number)
    if ctx.json:
        ctx.emit({"deleted": number})
    else:
        ctx.out.print(f"Removed the fact {number}.")
    return 0


def _show_one(ctx: CommandContext, fact: Fact) -> None:
    line = Text(f"{fact.fact_id:>4} ", style="bold cyan")
    line.append(f"{one_line(fact.role)}: ", style="bold").append(one_line(fact.statement), style="not dim not bold")
    print_indented(ctx.out, line, by=0)
    until = "" if fact.superseded_by is None else f" until {moment_words(fact.superseded_at)} ({fact.superseded_by})"
    written = "" if fact.made_by == "extractive" else f", written by {one_line(fact.made_by)}"
    where = f"{moment_words(fact.at or fact.said_at)}{until}, {one_line(fact.session)}{written}"
    print_indented(ctx.out, Text(where, style="dim"), by=5)


def _show_evidence(ctx: CommandContext, fact: Fact) -> None:
    for one in fact.evidence:
        again = "again: " if one.kind == "repeat" else ""
        place = f"{again}{one_line(one.session)}, turn {one.position}, characters {one.start_offset}-{one.end_offset}: "
        line = Text(place, style="dim").append(f'"{one_line(one.quote)}"', style="not dim")
        print_indented(ctx.out, line, by=5)


def _moment(as_of: str | None) -> datetime | None:
    return None if as_of is None else read_time(as_of, name="--as-of")


command(app, "list", remote=True)(_list)
command(app, "search", remote=True)(_search)
bind(
    app,
    "facts",
    FactOperations,
    lambda view: view.facts,
    {"get": lambda ctx, fact: _show_all(ctx, [fact]), "history": _show_all},
    names={"get": "show"},
)
command(app, "delete", remote=True)(_delete)
