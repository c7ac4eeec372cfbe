"""``recollect serve``: the HTTP server."""

from __future__ import annotations

import importlib.util
import logging
import threading
import webbrowser
from typing import Annotated

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import command
from recollect.errors import UsageError
from recollect.installation import install_command

logger = logging.getLogger("recollect.server")


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "serve", local="it is the server, and opens a store")(_serve)


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
    given = {"host": None if host is None else argument_text(host), "port": port}
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
