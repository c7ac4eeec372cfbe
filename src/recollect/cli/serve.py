"""``recollect serve``, ``worker`` and ``mcp``: what runs until it is interrupted."""

from __future__ import annotations

import importlib.util
import logging
import threading
import webbrowser
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.cli._access import ActorOptions
from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._searching import EVERYWHERE
from recollect.cli.ask import with_model
from recollect.errors import ConfigurationError, UsageError
from recollect.installation import install_command
from recollect.pipeline.threads import Threads
from recollect.pipeline.working import worker_of

if TYPE_CHECKING:
    from types import ModuleType

    from recollect.jobs.worker import Worker
    from recollect.pipeline import View


logger = logging.getLogger("recollect.server")


def _serve(
    ctx: CommandContext,
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen at; by default this machine's alone.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="The port; 0 takes any that is free.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the web interface in the browser.")] = False,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Leave jobs to `recollect worker`.")] = False,
) -> int:
    """Serve the store over HTTP, with the web interface, and run its jobs, until it is interrupted.

    At an address of this machine alone, whoever uses the machine needs no credential. Anywhere else every request
    brings one: see `recollect keys`. Interrupted (or told to end by SIGTERM), it takes no more requests and lets those
    that run come to their end.
    """
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
        raise UsageError(f"The server needs more packages: {install_command('server')}")
    given = {"host": host, "port": port}
    own = {name: value for name, value in given.items() if value is not None}
    config = ctx.config.model_copy(update={"server": ctx.config.server.model_copy(update=own)})
    with ctx.pipeline(config) as rag:
        from recollect.server.request_context import logging_as
        from recollect.server.running import serve
        from recollect.ui import install

        def ready(url: str) -> None:
            if ctx.json:
                ctx.emit({"url": url})
            elif config.server.log_format == "text":
                ctx.note(f"Serving at {url}; Ctrl-C ends it.")
            logger.info("Serving at %s", url)
            if open_page:
                # Some browsers keep whoever starts them waiting; the server is not to.
                threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

        with logging_as(config.server.log_format):
            serve(rag, worker=not no_worker, on_ready=ready, install=install)
    return 0


def _worker(
    ctx: CommandContext,
    *,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Jobs that run at the same time.")] = 1,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queues", metavar="QUEUE", help="Only jobs of this queue; repeat for more."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is due any more.")] = False,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when nothing is left, also of what is to be tried again later.")
    ] = False,
) -> int:
    """Run the jobs of every tenant, and what is done every so often, until it is interrupted.

    Several workers share the work, on one machine or many. Interrupted (or told to end by SIGTERM), a worker takes no
    more jobs and lets those that it runs come to their end; a second time, it ends at once. What a worker leaves
    unfinished, also one that was killed, another one does.
    """
    if once and until_empty:
        raise UsageError("--once and --until-empty are two answers to when to end: give one.")
    ends: Literal["never", "once", "empty"] = "once" if once else "empty" if until_empty else "never"
    with ctx.pipeline() as rag:
        worker: Worker = worker_of(rag.standpoint.assembly, concurrency=concurrency, queues=queues, ends=ends)
        ctx.note(f"Running jobs, {concurrency} at a time.")
        worker.run()
    return ctx.tell(
        {"finished": worker.finished},
        lambda: ctx.note(f"{worker.finished:,} job{'' if worker.finished == 1 else 's'} run."),
    )


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
    collections = EVERYWHERE if everywhere else ctx.collection
    with ctx.view(
        with_model(ctx.config, model),
        principal=access.actor(),
        collections=collections,
        as_of=as_of,
        session=session,
        user=user or access.as_,
    ) as view:
        _serve_mcp(stdio, view, may_write=not read_only)


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


def _serve_mcp(stdio: ModuleType, view: View, *, may_write: bool) -> None:
    from recollect.server.mcp.service import Access, build_server

    own = Access(view=view, may_write=may_write)
    threads = Threads(2 * view.config.storage.max_connections, name="recollect-mcp")
    stdio.serve_stdio(build_server(lambda _: own, threads))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "serve", local="it is the server, and opens a store")(_serve)
    command(
        app,
        "worker",
        local="a worker takes its jobs from the database, and a server has one of its own unless it was started with "
        "--no-worker",
    )(_worker)
    command(
        app,
        "mcp",
        collection=True,
        local="it serves a store over its standard streams. A server has the same tools at its address /mcp",
    )(_mcp)
