"""``recollect sessions``: the conversations that are remembered, and the sessions that have documents of their own.

The two are independent: one id may name a conversation, a session with documents, or both.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import moment_words, one_line, plain, print_indented, print_list
from recollect.cli.logs import BeforeReceipt, ReceiptLimit, show_receipts
from recollect.errors import NotFoundError
from recollect.model.record import json_of
from recollect.replies.conversations import (
    deleted_session_json,
    ended_session_json,
    forgotten_turns_json,
    session_content_json,
)

if TYPE_CHECKING:
    from datetime import timedelta

    from recollect.model.audit import AuditRecord
    from recollect.model.document_record import DocumentRecord
    from recollect.model.document_session import DocumentSession
    from recollect.model.memory import Episode, SessionRecord
    from recollect.pipeline import View


_OwnName = Annotated[str, typer.Argument(metavar="SESSION", help="Your id of it.")]


_WITHOUT_END = "never"


class WhenFull(StrEnum):
    """What one document too many does."""

    ERROR = "error"
    OLDEST = "oldest"


def _create(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _OwnName,
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
        made = view.sessions.create(name, config)
    if ctx.json:
        ctx.emit({"session": json_of(made)})
    else:
        until = f"until {moment_words(made.expires_at)} UTC" if made.expires_at else "until it is ended"
        room = f"room for {made.max_documents:,} document{'' if made.max_documents == 1 else 's'}"
        ctx.out.print(f"Began the session {made.session_id!r}, {until}, with {room}.")
    return 0


def _renew(ctx: CommandContext, actor: ActorOptions, *, name: _OwnName) -> int:
    """Begin the time of a session anew, before it is over."""
    with ctx.view(principal=actor.actor()) as view:
        renewed = view.sessions.renew(name)
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
    name: _OwnName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """End a session and remove its documents, for good."""
    with ctx.view(principal=actor.actor()) as view:
        found = view.sessions.get(name)
        count = f"{found.document_count:,} document{'' if found.document_count == 1 else 's'}"
        ctx.confirm(f"Remove the session {found.session_id!r} with its {count} for good?", yes=yes)
        documents = view.sessions.end(found.session_id)
    return ctx.tell(
        ended_session_json(found.session_id, documents=documents),
        f"Ended the session {found.session_id!r} and removed its {count}.",
    )


def _show_sessions(ctx: CommandContext, found: list[DocumentSession]) -> None:
    """The sessions as a table."""
    rows = [
        (
            Text(one_line(one.session_id), style="bold cyan"),
            one_line(one.owner or ""),
            f"{one.document_count:,} of {one.max_documents:,}",
            _expiry(one),
        )
        for one in found
    ]
    # Names are folded, not cut: the next command is given them whole.
    print_list(ctx.out, {"Session": "fold", "Owner": "fold", "Documents": "figure", "Expires": "whole"}, rows)


def _show_documents(ctx: CommandContext, one: DocumentSession, documents: list[DocumentRecord]) -> None:
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


app = typer.Typer(
    help="Conversations: list, show, rename, forget, delete. Sessions with documents: create, list, show, renew, end.",
    no_args_is_help=True,
)


_Name = Annotated[str, typer.Argument(metavar="SESSION", help="Its id.")]


def _list(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    user: Annotated[str | None, typer.Option(help="Only this user's.")] = None,
    search: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="Only conversations whose title or turns hold this, in whatever case."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most, the latest first.")] = 100,
) -> int:
    """List the conversations, the one with the latest turn first, and the sessions that have documents."""
    text = None if search is None else search.strip() or None
    with ctx.view(principal=actor.actor(), user=user) as view:
        found = view.memory.list(text=text, limit=limit)
        wanted = view.standpoint.user
        sessions = [] if text is not None else view.sessions.list(limit=limit)
        sessions = [one for one in sessions if wanted is None or one.owner == wanted]
    if ctx.json:
        ctx.emit({"sessions": json_of(found), "document_sessions": json_of(sessions)})
        return 0
    if found:
        _show_list(ctx, found)
    elif text is not None:
        ctx.out.print("No conversation holds that.")
    else:
        ctx.out.print('No conversation is remembered yet. Try: recollect remember SESSION "…"')
    if sessions:
        ctx.out.print("\nWith documents:", style="dim")
        _show_sessions(ctx, sessions)
    return 0


def _show(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _Name,
    after: Annotated[int, typer.Option(min=0, help="Begin behind this turn.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many turns at most.")] = 100,
) -> int:
    """Show what was said in a conversation, and the documents of a session."""
    with ctx.view(principal=actor.actor(), user=actor.as_) as view:
        documents = _documents(view, name, limit)
        try:
            record = view.memory.get(name)
        except NotFoundError:
            if documents is None:
                raise
            record = None
        turns = []
        if record is not None:
            turns = view.memory.turns(name, after=after, limit=limit)
    if ctx.json:
        ctx.emit(json_of(session_content_json(None if record is None else (record, turns), documents)))
        return 0
    if record is not None:
        _show_turns(ctx, record, turns, after=after, limit=limit)
    if documents is not None:
        _show_documents(ctx, *documents)
    return 0


def _documents(view: View, name: str, limit: int) -> tuple[DocumentSession, list[DocumentRecord]] | None:
    """The session of that id and what it holds, nothing where it has expired; None: there is none."""
    try:
        found = view.sessions.get(name)
    except NotFoundError:
        return None
    return found, [] if found.expired else [*view.view(session=name).documents.list(limit=limit)]


def _show_turns(ctx: CommandContext, record: SessionRecord, turns: list[Episode], *, after: int, limit: int) -> None:
    day = None
    for turn in turns:
        stamp = moment_words(turn.at)
        if stamp != day:
            ctx.out.print(Text(stamp, style="dim"))
            day = stamp
        said = Text(f"{turn.position:>4} ", style="dim")
        said.append(f"{one_line(turn.role)}: ", style="bold")
        said.append(plain(turn.content), style="not dim")
        print_indented(ctx.out, said, by=0)
    # Of a later page it is not known how many of the turns before it were forgotten.
    left = record.turn_count - len(turns) if after == 0 else None
    if turns and len(turns) == limit and left != 0:
        more = "More" if left is None else f"{left:,} more"
        ctx.out.print(f"{more}: recollect sessions show {record.name} --after {turns[-1].position}")


def _rename(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _Name,
    title: Annotated[
        str | None, typer.Argument(metavar="[TITLE]", help="Up to 200 characters; without one: by its first words.")
    ] = None,
) -> int:
    """Call a conversation something."""
    with ctx.view(principal=actor.actor(), user=actor.as_) as view:
        record = view.memory.rename(name, title)
    if ctx.json:
        ctx.emit(record)
    else:
        called = "by its first words" if record.title is None else repr(record.title)
        ctx.out.print(plain(f"The conversation {record.name!r} is called {called}."), soft_wrap=True)
    return 0


def _delete(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove a conversation with everything that was made of it, for good."""
    with ctx.view(principal=actor.actor(), user=actor.as_) as view:
        record = view.memory.get(name)
        ctx.confirm(f"Remove {record.name!r} with its {record.turn_count:,} turns for good?", yes=yes)
        turns = view.memory.delete(record.name)
    return ctx.tell(
        deleted_session_json(record.name, turns=turns),
        f"Removed the conversation {record.name!r} and its {turns:,} turns.",
    )


def _forget(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: _Name,
    positions: Annotated[list[int], typer.Argument(metavar="TURN…", help="Their numbers, as sessions show has them.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Remove turns of a conversation with everything that was made of them, for good."""
    with ctx.view(principal=actor.actor(), user=actor.as_) as view:
        record = view.memory.get(name)
        turns = "1 turn" if len(set(positions)) == 1 else f"{len(set(positions)):,} turns"
        ctx.confirm(f"Remove {turns} of {record.name!r} for good?", yes=yes)
        count = view.memory.forget(record.name, positions)
    return ctx.tell(forgotten_turns_json(record.name, removed=count), f"Removed {turns} of {record.name!r}.")


def _receipts(ctx: CommandContext, *, limit: ReceiptLimit = 20, before: BeforeReceipt = None) -> int:
    """List the receipts of removed conversations and turns, newest first."""
    return show_receipts(
        ctx, "forget", limit=limit, before=before, describe=_removed_turns, nothing="Nothing has been removed."
    )


def _removed_turns(record: AuditRecord) -> str:
    return f"turns {record.details['turns']:,}, facts {record.details['facts']:,}"


def _show_list(ctx: CommandContext, found: list[SessionRecord]) -> None:
    titled = any(record.title for record in found)
    rows: list[tuple[str | Text, ...]] = [
        (
            Text(one_line(record.name), style="bold cyan"),
            *([one_line(record.title or "")] if titled else []),
            one_line(record.user or ""),
            f"{record.turn_count:,}",
            moment_words(record.updated_at),
        )
        for record in found
    ]
    title = {"Title": "fold"} if titled else {}
    print_list(ctx.out, {"Session": "fold", **title, "User": "fold", "Turns": "figure", "Latest": "whole"}, rows)


command(app, "list", remote=True)(_list)


command(app, "show", remote=True)(_show)


command(app, "rename", remote=True)(_rename)


command(app, "forget", remote=True)(_forget)


command(app, "delete", remote=True)(_delete)


command(app, "receipts", remote=True)(_receipts)


command(app, "create", remote=True)(_create)


command(app, "renew", remote=True)(_renew)


command(app, "end", remote=True)(_end)
