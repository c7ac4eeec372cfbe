"""``recollect keys`` and ``logins``: what programs present to a server, and who is logged in with a browser."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain, print_list
from recollect.errors import UsageError
from recollect.operations.people import KeyOperations, LoginOperations

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Principal
    from recollect.model.key import ApiKey, Login, NewApiKey
    from recollect.model.page import Page


keys_app = typer.Typer(help="Make, list, rotate and revoke the keys that a server takes.", no_args_is_help=True)


_KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Its id, which is no secret.")]


_Expires = Annotated[str | None, typer.Option(metavar="DURATION", help="After how long it ends, for instance 90d.")]


class _Scope(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    OPERATOR = "operator"


def _create_key(
    ctx: CommandContext,
    actor: ActorOptions,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is for.")],
    scope: Annotated[
        list[_Scope] | None,
        typer.Option(help="What it opens; repeat for more. None includes another; by default read."),
    ] = None,
    expires: _Expires = None,
    widget: Annotated[
        str | None,
        typer.Option(metavar="COLLECTION", help="For a widget on pages of other sites, which asks this collection."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A site that may show the widget: https://intranet.example.com; repeat."),
    ] = None,
) -> int:
    """Make a key of --tenant and print it, this once: only its hash is kept.

    read: search, ask and read documents; write: ingest, delete and remember; admin: grants, keys, the audit and
    collections; operator: the tenants of the store. With --as, it is as that user, otherwise as the tenant's owner. A
    key of a widget opens the widget and nothing else; it reads what is granted to everybody, or with --as to that user.
    """
    if widget is None and origin:
        raise UsageError("--origin names the sites of a widget: say with --widget which collection it asks.")
    if widget is not None and scope:
        raise UsageError("A key of a widget opens the widget alone: leave --scope out.")
    how: dict[str, Any] = {"principal": actor.actor(), "expires": expires}
    with ctx.view() as view:
        if widget is None:
            made = view.keys.create(name, scopes=[one.value for one in scope or [_Scope.READ]], **how)
        else:
            made = view.keys.create_widget(name, collection=widget, origins=origin or [], **how)
    return _tell_secret(ctx, made)


def _rotate_key(
    ctx: CommandContext,
    *,
    key_id: _KeyId,
    grace: Annotated[
        str, typer.Option(metavar="DURATION", help="How long the secret that it has is still taken; 0: no longer.")
    ] = "1d",
    expires: _Expires = None,
) -> int:
    """Give a key another secret, and print it, this once."""
    with ctx.view() as view:
        rotated = view.keys.rotate(
            key_id,
            grace=0 if grace.strip() == "0" else grace,
            expires=expires,
        )
    return _tell_secret(ctx, rotated)


def _revoked(ctx: CommandContext, key: ApiKey) -> None:
    ctx.out.print(plain(f"The key {key.key_id} ({key.name}) is revoked."), soft_wrap=True)


def _tell_secret(ctx: CommandContext, made: NewApiKey) -> int:
    if ctx.json:
        ctx.emit(made)
        return 0
    ctx.out.print(made.secret, soft_wrap=True)
    ctx.note(f"Keep it now: it is not shown again. Its id is {made.key.key_id}.")
    return 0


def _show_keys(ctx: CommandContext, keys: Page[ApiKey]) -> None:
    if not keys:
        ctx.out.print("There are no keys. To make one: recollect keys create NAME")
        return

    rows = [
        (
            Text(key.key_id, style="cyan"),
            Text(one_line(key.name)),
            ", ".join(key.scopes) if key.widget is None else "its widget",
            _known_as(key.principal),
            _end(key.status, key.expires_at),
            _day(key.last_used_at),
        )
        for key in keys
    ]
    columns = {"Key": "whole", **dict.fromkeys(("Name", "Opens", "As", "Ends", "Last used"), "fold")}
    print_list(ctx.out, columns, rows)


def _known_as(principal: Principal | None) -> Text:
    return Text("the owner" if principal is None else one_line(principal.user_id or "nobody in particular"))


def _end(status: str, at: datetime | None) -> Text:
    return Text(_day(at)) if status == "active" else Text(status, style="red")


def _day(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M}"


command(keys_app, "create", remote=True)(_create_key)


command(keys_app, "rotate", remote=True)(_rotate_key)


bind(keys_app, "keys", KeyOperations, lambda view: view.keys, {"list": _show_keys, "revoke": _revoked})


logins_app = typer.Typer(help="List who is logged in with a browser, and log them out.", no_args_is_help=True)


def _log_out(
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
            login = view.logins.revoke(login_id)
            return ctx.tell(login, plain(f"The login {login.login_id} has ended."), soft_wrap=True)
        ended = view.logins.revoke_all(user=user)
    return ctx.tell({"ended": ended}, f"{ended} login{'' if ended == 1 else 's'} ended.")


def _show_logins(ctx: CommandContext, logins: Page[Login]) -> None:
    if not logins:
        ctx.out.print("Nobody is logged in.")
        return

    rows = [
        (
            Text(login.login_id, style="cyan"),
            _known_as(login.principal),
            Text("the issuer" if login.key_id is None else f"key {login.key_id}"),
            _day(login.created_at),
            _day(login.last_used_at),
            _end(login.status, min(login.idle_until, login.expires_at)),
        )
        for login in logins
    ]
    columns = {"Login": "whole", **dict.fromkeys(("As", "By", "Since", "Last used", "Ends"), "fold")}
    print_list(ctx.out, columns, rows)


bind(logins_app, "logins", LoginOperations, lambda view: view.logins, {"list": _show_logins})


command(logins_app, "revoke", remote=True)(_log_out)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(keys_app, name="keys")
    app.add_typer(logins_app, name="logins")
