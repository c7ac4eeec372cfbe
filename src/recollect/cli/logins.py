"""``recollect logins``: who is logged in to a server with a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain
from recollect.errors import UsageError
from recollect.replies.logins import login_list_json, login_reply

if TYPE_CHECKING:
    from recollect.model.login import Login

app = typer.Typer(help="List who is logged in with a browser, and log them out.", no_args_is_help=True)

_User = Annotated[str | None, typer.Option(metavar="USER", help="Only logins of this user.")]


def _list(
    ctx: CommandContext,
    *,
    user: _User = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Logins at most.")] = 100,
    before: Annotated[
        str | None, typer.Option(metavar="LOGIN", help="Only logins before this one: the next page.")
    ] = None,
) -> int:
    """List the logins of --tenant, newest first, those that have ended among them."""
    with ctx.view() as view:
        found = view.logins.list(
            user=None if user is None else argument_text(user),
            before=None if before is None else argument_text(before),
            limit=limit + 1,
        )
    page, more = found[:limit], len(found) > limit
    if ctx.json:
        ctx.emit(login_list_json(page, more=more))
        return 0
    if page:
        _show(ctx, page)
    else:
        ctx.out.print("Nobody is logged in.")
    if more:
        ctx.note(f"There are more: recollect logins list --before {page[-1].login_id}")
    return 0


def _revoke(
    ctx: CommandContext,
    *,
    login_id: Annotated[str | None, typer.Argument(metavar="LOGIN", help="Its id, which is no secret.")] = None,
    user: Annotated[str | None, typer.Option(metavar="USER", help="Log out every browser of this user.")] = None,
    everybody: Annotated[bool, typer.Option("--everybody", help="Log out every browser of the tenant.")] = False,
) -> int:
    """Log a browser out, every one of a user, or all; a running server may take five seconds.

    Whoever has a key, or is known to the issuer, may log in again: revoke the key too, or remove them there.
    """
    if (login_id is not None) + (user is not None) + everybody != 1:
        raise UsageError("Name one login, or --user USER, or --everybody.")
    with ctx.view() as view:
        if login_id is not None:
            login = view.logins.revoke(argument_text(login_id))
            if ctx.json:
                ctx.emit(login_reply(login))
            else:
                ctx.out.print(plain(f"The login {login.login_id} has ended."), soft_wrap=True)
            return 0
        ended = view.logins.revoke_all(user=None if user is None else argument_text(user))
    if ctx.json:
        ctx.emit({"ended": ended})
    else:
        ctx.out.print(f"{ended} login{'' if ended == 1 else 's'} ended.")
    return 0


def _show(ctx: CommandContext, logins: list[Login]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Login", no_wrap=True)
    for title in ("As", "By", "Since", "Last used", "Ends"):
        table.add_column(title, overflow="fold")
    for login in logins:
        user = "the owner" if login.principal is None else one_line(login.principal.user_id or "nobody in particular")
        ends = min(login.idle_until, login.expires_at)
        active = login.status == "active"
        table.add_row(
            Text(login.login_id, style="cyan"),
            Text(user),
            Text("the issuer" if login.key_id is None else f"key {login.key_id}"),
            f"{login.created_at:%Y-%m-%d %H:%M}",
            f"{login.last_used_at:%Y-%m-%d %H:%M}",
            Text(f"{ends:%Y-%m-%d %H:%M}" if active else login.status, style="" if active else "red"),
        )
    ctx.out.print(table)


command(app, "list", remote=True)(_list)
command(app, "revoke", remote=True)(_revoke)
