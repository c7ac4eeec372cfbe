"""``recollect keys``: what programs present to a server."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._access import ActorOptions
from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.cli._terminal import one_line, plain
from recollect.errors import UsageError
from recollect.operations.people import KeyOperations

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model.key import ApiKey, NewApiKey
    from recollect.model.page import Page

app = typer.Typer(help="Make, list, rotate and revoke the keys that a server takes.", no_args_is_help=True)

_KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Its id, which is no secret.")]
_Expires = Annotated[str | None, typer.Option(metavar="DURATION", help="After how long it ends, for instance 90d.")]


class _Scope(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    OPERATOR = "operator"


def _create(
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
            made = view.keys.create(argument_text(name), scopes=[one.value for one in scope or [_Scope.READ]], **how)
        else:
            sites = [argument_text(one) for one in origin or []]
            made = view.keys.create_widget(argument_text(name), collection=argument_text(widget), origins=sites, **how)
    return _tell_secret(ctx, made)


def _rotate(
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
            argument_text(key_id),
            grace=0 if grace.strip() == "0" else argument_text(grace),
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


def _listed(ctx: CommandContext, keys: Page[ApiKey]) -> None:
    if not keys:
        ctx.out.print("There are no keys. To make one: recollect keys create NAME")
        return

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Key", no_wrap=True)
    for title in ("Name", "Opens", "As", "Ends", "Last used"):
        table.add_column(title, overflow="fold")
    for key in keys:
        ends = key.status if key.status != "active" else _day(key.expires_at, "never")
        table.add_row(
            Text(key.key_id, style="cyan"),
            Text(one_line(key.name)),
            ", ".join(key.scopes) if key.widget is None else "its widget",
            Text("the owner" if key.principal is None else one_line(key.principal.user_id or "nobody in particular")),
            Text(ends, style="" if key.status == "active" else "red"),
            _day(key.last_used_at, "never"),
        )
    ctx.out.print(table)


def _day(at: datetime | None, otherwise: str) -> str:
    return otherwise if at is None else f"{at:%Y-%m-%d %H:%M}"


command(app, "create", remote=True)(_create)
command(app, "rotate", remote=True)(_rotate)
bind(app, "keys", KeyOperations, lambda view: view.keys, {"list": _listed, "revoke": _revoked})
