"""``recollect remember``, ``recall``, ``consolidate`` and ``facts``: what was said, and what memory makes of it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext
from recollect.cli._options import Mode, command
from recollect.cli._terminal import Highlighter, moment_words, one_line, print_indented, shortened
from recollect.errors import NotFoundError, UsageError
from recollect.memory.turn_files import read_turns
from recollect.model.memory import RecallOptions, Turn
from recollect.model.page import MOST_OF_A_PAGE
from recollect.model.record import json_of
from recollect.model.time import read_time
from recollect.operations.conversations import FactOperations
from recollect.retrieval.analysis import Analyzer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model.facts import ConsolidationReport, Fact
    from recollect.model.memory import Episode, Recollection


_STDIN = "-"


def _remember(
    ctx: CommandContext,
    *,
    conversation: Annotated[str, typer.Argument(metavar="SESSION", help="Your id of the conversation.")],
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="What was said.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="Turns as JSON Lines in place of TEXT; - reads the input."),
    ] = None,
    role: Annotated[str, typer.Option(help="Who said it: user, assistant, or a name.")] = "user",
    user: Annotated[str | None, typer.Option(help="Whose conversation it is.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it was said: a date, a time (without a zone: UTC), or 2h ago as 2h."),
    ] = None,
    turn_id: Annotated[
        str | None, typer.Option("--id", help="Your id of the turn: the same one is stored once.")
    ] = None,
) -> int:
    """Remember what was said in a conversation, which begins with its first turn.

    A line of FILE is an object with content, and as far as they are known role, at, id and metadata. A file is stored
    in batches, and may be stored again if its turns have ids.
    """
    turns = _turns(text, file, role=role, at=at, turn_id=turn_id)
    with ctx.view(session=conversation, user=user) as view:
        done = view.remember(turns)
    if ctx.json:
        ctx.emit(done)
        return 0
    known = len(turns) - done.added
    already = f", {known:,} known already" if known else ""
    ctx.out.print(f"Remembered {done.added:,} {'turn' if done.added == 1 else 'turns'} of {done.session}{already}.")
    return 0


def _turns(text: str | None, file: Path | None, *, role: str, at: str | None, turn_id: str | None) -> list[Turn]:
    if (text is None) == (file is None):
        raise UsageError("Give either TEXT or --file: what was said, or a file of turns (- for the input).")
    if text is not None:
        # Who says something on the command line says it now.
        moment = datetime.now(UTC) if at is None else read_time(at, name="--at")
        return [Turn(content=text, role=role, at=moment, turn_id=turn_id)]
    assert file is not None
    if at is not None or turn_id is not None:
        raise UsageError("--at and --id are a single turn's: with --file, every line has its own.")
    return _read(file, role)


def _read(file: Path, role: str) -> list[Turn]:
    if str(file) == _STDIN:
        return read_turns(sys.stdin.buffer, where="input", role=role)
    try:
        with file.open("rb") as lines:
            return read_turns(lines, where=str(file), role=role)
    except (FileNotFoundError, IsADirectoryError) as exc:
        raise NotFoundError(f"{file} is not a file.") from exc
    except OSError as exc:
        raise UsageError(f"{file} cannot be read: {exc.strerror}.") from exc


_SNIPPET_LINES = 3


_INDENT = 3


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
    options = RecallOptions(
        top_k=top_k,
        mode=mode.value,
        before=neighbours,
        after=neighbours,
        since=None if since is None else read_time(since, name="--since"),
        until=None if until is None else read_time(until, name="--until"),
    )
    with ctx.view(session=conversation, user=user, as_of=as_of) as view:
        found = view.recall(text, options)
        language = ctx.config.language
    return ctx.tell(
        {"query": text, "mode": options.mode, "results": json_of(found)},
        lambda: _show_recalled(ctx, text, language, found),
    )


def _show_recalled(ctx: CommandContext, query: str, language: str, found: Sequence[Recollection]) -> None:
    if not found:
        ctx.out.print("Nothing like it is remembered.")
        return
    highlighter = Highlighter(query, Analyzer(language))
    for one in found:
        _show_recollection(ctx, one, highlighter)


def _show_recollection(ctx: CommandContext, one: Recollection, highlighter: Highlighter) -> None:
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


def _consolidate(
    ctx: CommandContext,
    *,
    min_retrievals: Annotated[
        int | None,
        typer.Option(metavar="N", help="Look at turns that searches found N times or more; by default as configured."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="Only of this user's conversations.")] = None,
    limit: Annotated[int, typer.Option(help="How many turns at most, the most often found first.")] = 100,
) -> int:
    """Draw facts from the turns that are asked for again and again; each turn is looked at once.

    Without a language model, sentences that state something become facts as they are.
    """
    with ctx.view(user=user) as view:
        report = view.facts.consolidate(min_retrievals=min_retrievals, limit=limit)
        least = ctx.config.memory.min_retrievals if min_retrievals is None else min_retrievals
    if ctx.json:
        ctx.emit(report)
    else:
        ctx.out.print(_consolidated(report, least), soft_wrap=True)
    for failure in report.failures:
        ctx.note(f"Sentences were taken as they are, because the language model failed: {failure}")
    return 0


def _consolidated(report: ConsolidationReport, least: int) -> str:
    if not report.examined:
        times = "once" if least == 1 else f"{least:,} times"
        return f"Nothing to look at: no turn was found {times} or more that was not looked at before."
    parts = [f"{report.added:,} new", f"{report.repeated:,} said again", f"{report.superseded:,} superseded"]
    turns = "turn" if report.examined == 1 else "turns"
    return f"Looked at {report.examined:,} {turns}. Facts: {', '.join(parts)}. See: recollect facts list"


facts_app = typer.Typer(
    help="List, search, show, follow and delete facts drawn from conversations.", no_args_is_help=True
)


_Number = Annotated[int, typer.Argument(metavar="FACT", help="Its number.")]


_User = Annotated[str | None, typer.Option(help="Only facts from this user's conversations.")]


_Conversation = Annotated[str | None, typer.Option("--session", help="Only facts from this conversation.")]


_AsOf = Annotated[
    str | None, typer.Option(metavar="TIME", help="As they were known at this time (without a zone: UTC).")
]


def _list_facts(
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
    with ctx.view(user=user, session=conversation, as_of=as_of) as view:
        found = view.facts.list(superseded=superseded, cursor=cursor, limit=limit)
    if ctx.json:
        ctx.emit(found)
        return 0
    if not found:
        ctx.out.print("There are no facts yet. They come from what is asked for: recollect consolidate")
    for fact in found:
        _show_fact(ctx, fact)
    if found.next_cursor is not None:
        ctx.note(f"There are more: recollect facts list --cursor {found.next_cursor}")
    return 0


def _search_facts(
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
    with ctx.view(user=user, session=conversation, as_of=as_of) as view:
        found = view.facts.search(text, top_k=top_k, mode=mode.value)
    if ctx.json:
        ctx.emit({"query": text, "mode": mode.value, "results": json_of(found)})
        return 0
    if not found:
        ctx.out.print("No fact is like it.")
    for fact in found:
        _show_fact(ctx, fact)
    return 0


def _show_facts(ctx: CommandContext, thread: Sequence[Fact]) -> None:
    for fact in thread:
        _show_fact(ctx, fact)
        _show_evidence(ctx, fact)


def _delete_fact(
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
    return ctx.tell({"deleted": number}, f"Removed the fact {number}.")


def _show_fact(ctx: CommandContext, fact: Fact) -> None:
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


command(facts_app, "list", remote=True)(_list_facts)


command(facts_app, "search", remote=True)(_search_facts)


bind(
    facts_app,
    "facts",
    FactOperations,
    lambda view: view.facts,
    {"get": lambda ctx, fact: _show_facts(ctx, [fact]), "history": _show_facts},
    names={"get": "show"},
)


command(facts_app, "delete", remote=True)(_delete_fact)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "remember", remote=True)(_remember)
    command(app, "recall", remote=True)(_recall)
    command(app, "consolidate", remote=True)(_consolidate)
    app.add_typer(facts_app, name="facts")
