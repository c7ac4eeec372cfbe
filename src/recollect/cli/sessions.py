"""``recollect sessions``: the conversations that are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._options import command
from recollect.cli._session import Session, argument_text
from recollect.cli._turns import moment_json, moment_words, turn_json

if TYPE_CHECKING:
    from recollect.model.memory import SessionRecord

app = typer.Typer(help="List, show and delete remembered conversations.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="SESSION", help="Its id.")]


def _list(
    session: Session,
    *,
    user: Annotated[str | None, typer.Option(help="Only this user's.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most, the latest first.")] = 100,
) -> int:
    """List the conversations, the one with the latest turn first."""
    with session.pipeline() as rag:
        found = rag.list_sessions(user=None if user is None else argument_text(user), limit=limit)
    if session.json:
        session.emit({"sessions": [_session_json(one) for one in found]})
    elif found:
        _show_list(session, found)
    else:
        session.out.print('No conversation is remembered yet. Try: recollect remember SESSION "…"')
    return 0


def _show(
    session: Session,
    *,
    name: _Name,
    after: Annotated[int, typer.Option(min=0, help="Begin behind this turn.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many turns at most.")] = 100,
) -> int:
    """Show what was said in a conversation."""
    from rich.text import Text

    from recollect.cli._terminal import one_line, plain, print_indented

    wanted = argument_text(name)
    with session.pipeline() as rag:
        record = rag.get_session(wanted)
        turns = rag.session_turns(wanted, after=after, limit=limit)
    if session.json:
        session.emit({"session": _session_json(record), "turns": [turn_json(turn) for turn in turns]})
        return 0
    day = None
    for turn in turns:
        stamp = moment_words(turn.at)
        if stamp != day:
            session.out.print(Text(stamp, style="dim"))
            day = stamp
        said = Text(f"{turn.position:>4} ", style="dim")
        said.append(f"{one_line(turn.role)}: ", style="bold")
        said.append(plain(turn.content), style="not dim")
        print_indented(session.out, said, by=0)
    last = turns[-1].position if turns else after
    if last < record.turn_count:
        session.out.print(f"{record.turn_count - last:,} more: recollect sessions show {wanted} --after {last}")
    return 0


def _delete(
    session: Session, *, name: _Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Remove a conversation with everything that was made of it, for good."""
    wanted = argument_text(name)
    with session.pipeline() as rag:
        record = rag.get_session(wanted)
        session.confirm(f"Remove {record.name!r} with its {record.turn_count:,} turns for good?", yes=yes)
        turns = rag.delete_session(record.name)
    if session.json:
        session.emit({"deleted": record.name, "turns": turns})
    else:
        session.out.print(f"Removed the conversation {record.name!r} and its {turns:,} turns.")
    return 0


def _session_json(record: SessionRecord) -> dict[str, Any]:
    return {
        "session": record.name,
        "user": record.user,
        "turns": record.turn_count,
        "created_at": moment_json(record.created_at),
        "updated_at": moment_json(record.updated_at),
        "embedding_model": record.embedding_model,
        "metadata": dict(record.metadata),
    }


def _show_list(session: Session, found: list[SessionRecord]) -> None:
    from rich.table import Table

    from recollect.cli._terminal import one_line

    table = Table(box=None, pad_edge=False)
    table.add_column("Session", style="bold cyan")
    table.add_column("User")
    table.add_column("Turns", justify="right")
    table.add_column("Latest")
    for record in found:
        table.add_row(
            one_line(record.name),
            one_line(record.user or ""),
            f"{record.turn_count:,}",
            moment_words(record.updated_at),
        )
    session.out.print(table)


command(app, "list")(_list)
command(app, "show")(_show)
command(app, "delete")(_delete)
