"""``recollect mcp``: tools and documents for a program of a language model, over its pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import EVERYWHERE
from recollect.cli.ask import with_model
from recollect.errors import ConfigurationError, UsageError
from recollect.installation import install_command
from recollect.model.time import read_time
from recollect.pipeline.threads import Threads

if TYPE_CHECKING:
    from types import ModuleType

    from recollect.pipeline import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "mcp",
        collection=True,
        local="it serves a store over its standard streams. A server has the same tools at its address /mcp",
    )(_mcp)


def _mcp(
    ctx: CommandContext,
    access: ActorOptions,
    *,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Look into every collection, or all that --as may read.")
    ] = False,
    session: Annotated[
        str,
        typer.Option(
            metavar="SESSION",
            help="The conversation that is remembered to and recalled from; its documents are searched too.",
        ),
    ] = "mcp",
    user: Annotated[
        str | None, typer.Option(help="Whose conversations are recalled beside that one; by default those of --as.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="What was known at this time: a date, a time, or how long ago, such as 7d."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no tool that changes anything.")] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER/NAME", help="The language model that answers; extractive: none, quotes."),
    ] = None,
) -> None:
    """Serve the Model Context Protocol over standard input and output, for a program that starts this command.

    It offers the tools search, grep, list_documents, outline, read, ask, recall, remember and add, and the documents
    as resources. It ends when the program closes the pipe.
    """
    if everywhere and ctx.names_collection:
        raise UsageError("--everywhere goes without --collection.")
    if ctx.json:
        raise UsageError("Standard output is the protocol's: leave --json out.")
    stdio = _door()
    moment = None if as_of is None else read_time(as_of, name="--as-of")
    collections = EVERYWHERE if everywhere else ctx.collection
    with ctx.view(
        with_model(ctx.config, model),
        principal=access.actor(),
        collections=collections,
        as_of=moment,
        session=session,
        user=user or access.as_,
    ) as view:
        _serve(stdio, view, may_write=not read_only)


def _door() -> ModuleType:
    try:
        from recollect.server.mcp import stdio
    except ModuleNotFoundError as exc:
        if (exc.name or "").split(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise ConfigurationError(
            f"The package mcp is needed to speak the Model Context Protocol. Install it: {install_command('mcp')}"
        ) from exc
    return stdio


def _serve(stdio: ModuleType, view: View, *, may_write: bool) -> None:
    from recollect.server.mcp.service import Access, build_server

    own = Access(view=view, may_write=may_write)
    threads = Threads(2 * view.config.storage.max_connections, name="recollect-mcp")
    stdio.serve_stdio(build_server(lambda _: own, threads))
