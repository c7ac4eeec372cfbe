"""``recollect remember``: turns of a conversation into memory."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.errors import NotFoundError, UsageError
from recollect.memory.turn_files import read_turns
from recollect.model.memory import Turn
from recollect.model.time import read_time

_STDIN = "-"


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "remember", remote=True)(_remember)


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
    turns = _turns(text, file, role=argument_text(role), at=at, turn_id=turn_id)
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
        return [Turn(content=argument_text(text), role=role, at=moment, turn_id=turn_id)]
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
