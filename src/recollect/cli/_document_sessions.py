"""``recollect sessions create``, ``renew`` and ``end``: the sessions that have documents of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import one_line
from recollect.cli._turns import moment_words
from recollect.model.record import json_of
from recollect.replies.conversations import ended_session_json

if TYPE_CHECKING:
    from datetime import timedelta

    from recollect.model.document_record import DocumentRecord
    from recollect.model.document_session import DocumentSession

_Name = Annotated[str, typer.Argument(metavar="SESSION", help="Your id of it.")]
_WITHOUT_END = "never"


class WhenFull(StrEnum):
    """What one document too many does."""

    ERROR = "error"
    OLDEST = "oldest"


def register(app: typer.Typer) -> None:
    """Add the commands to the group."""
    command(app, "create", remote=True)(_create)
    command(app, "renew", remote=True)(_renew)
    command(app, "end", remote=True)(_end)


def _create(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _Name,
    ttl: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long it lives: 30m, 2h, 1d; never: until it is ended.")
    ] = None,
    max_documents: Annotated[int | None, typer.Option(min=1, help="Documents at most.")] = None,
    when_full: Annotated[
        WhenFull | None, typer.Option(help="One document too many is refused, or the oldest one goes.")
    ] = None,
    auto_cleanup: Annotated[
        bool | None,
        typer.Option("--auto-cleanup/--no-auto-cleanup", help="Remove it once it has expired and is come across."),
    ] = None,
) -> int:
    """Begin a session with documents of its own, which are found in it alone and vanish with it.

    What is not given is as configured ([rag.session]).
    """
    with ctx.view(principal=actor.actor()) as view:
        given: dict[str, Any] = {
            "max_documents": max_documents,
            "when_full": when_full.value if when_full else None,
            "auto_cleanup": auto_cleanup,
        }
        config = replace(
            view.sessions.default_config(), **{field: value for field, value in given.items() if value is not None}
        )
        if ttl is not None:
            config = replace(config, ttl=ttl)
        made = view.sessions.create(argument_text(name), config)
    if ctx.json:
        ctx.emit({"session": json_of(made)})
    else:
        until = f"until {moment_words(made.expires_at)} UTC" if made.expires_at else "until it is ended"
        room = f"room for {made.max_documents:,} document{'' if made.max_documents == 1 else 's'}"
        ctx.out.print(f"Began the session {made.session_id!r}, {until}, with {room}.")
    return 0


def _renew(ctx: CommandContext, actor: ActorOptions, *, name: _Name) -> int:
    """Begin the time of a session anew, before it is over."""
    with ctx.view(principal=actor.actor()) as view:
        renewed = view.sessions.renew(argument_text(name))
    if ctx.json:
        ctx.emit({"session": json_of(renewed)})
    else:
        until = f"{moment_words(renewed.expires_at)} UTC" if renewed.expires_at else "it is ended"
        ctx.out.print(f"The session {renewed.session_id!r} lives until {until}.")
    return 0


def _end(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """End a session and remove its documents, for good."""
    with ctx.view(principal=actor.actor()) as view:
        found = view.sessions.get(argument_text(name))
        count = f"{found.document_count:,} document{'' if found.document_count == 1 else 's'}"
        ctx.confirm(f"Remove the session {found.session_id!r} with its {count} for good?", yes=yes)
        documents = view.sessions.end(found.session_id)
    if ctx.json:
        ctx.emit(ended_session_json(found.session_id, documents=documents))
    else:
        ctx.out.print(f"Ended the session {found.session_id!r} and removed its {count}.")
    return 0


def show_sessions(ctx: CommandContext, found: list[DocumentSession]) -> None:
    """The sessions as a table."""
    table = Table(box=None, pad_edge=False)
    # Names are folded, not cut: the next command is given them whole.
    table.add_column("Session", style="bold cyan", overflow="fold")
    table.add_column("Owner", overflow="fold")
    table.add_column("Documents", justify="right", no_wrap=True)
    table.add_column("Expires", no_wrap=True)
    for one in found:
        table.add_row(
            one_line(one.session_id),
            one_line(one.owner or ""),
            f"{one.document_count:,} of {one.max_documents:,}",
            _expiry(one),
        )
    ctx.out.print(table)


def show_documents(ctx: CommandContext, one: DocumentSession, documents: list[DocumentRecord]) -> None:
    """A session and what it holds."""
    ctx.out.print(
        f"{one.document_count:,} of at most {one.max_documents:,} documents; expires: {_expiry(one)}", style="dim"
    )
    for record in documents:
        line = Text(f"{record.document_id:>4} ", style="dim")
        ctx.out.print(line.append(one_line(record.source), "cyan not dim"), soft_wrap=True)


def _expiry(one: DocumentSession) -> str:
    if one.expires_at is None:
        return _WITHOUT_END
    if one.expired:
        return f"expired {moment_words(one.expires_at)}"
    return f"{moment_words(one.expires_at)} (in {_words(one.expires_at - datetime.now(UTC))})"


def _words(left: timedelta) -> str:
    minutes = max(0, round(left.total_seconds() / 60))
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{days} d" if days else "", f"{hours} h" if hours else "", f"{minutes} min" if not days else ""]
    return " ".join(part for part in parts if part)
