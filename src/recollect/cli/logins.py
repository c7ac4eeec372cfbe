"""``recollect logins``: who is logged in to a server with a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain
from recollect.errors import UsageError
from recollect.operations.people import LoginOperations

if TYPE_CHECKING:
    from recollect.model.key import Login
    from recollect.model.page import Page

app = typer.Typer(help="List who is logged in with a browser, and log them out.", no_args_is_help=True)


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
                ctx.emit(login)
            else:
                ctx.out.print(plain(f"The login {login.login_id} has ended."), soft_wrap=True)
            return 0
        ended = view.logins.revoke_all(user=None if user is None else argument_text(user))
    if ctx.json:
        ctx.emit({"ended": ended})
    else:
        ctx.out.print(f"{ended} login{'' if ended == 1 else 's'} ended.")
    return 0


def _listed(ctx: CommandContext, logins: Page[Login]) -> None:
    if not logins:
        ctx.out.print("Nobody is logged in.")
        return

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


bind(app, "logins", LoginOperations, lambda view: view.logins, {"list": _listed})
command(app, "revoke", remote=True)(_revoke)
