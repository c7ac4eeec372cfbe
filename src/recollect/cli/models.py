"""``recollect models``: the embedding models on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli.status import size
from recollect.embedding.models import DEFAULT_MODEL, ModelCache

if TYPE_CHECKING:
    from recollect.embedding.models import CachedModel

app = typer.Typer(help="Fetch and list the embedding models on this machine.", no_args_is_help=True)


def _pull(
    ctx: CommandContext,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A known model, or a directory; by default the configured one."),
    ] = None,
) -> int:
    """Fetch a model, verify it, and build what searching needs; afterwards no connection is needed."""
    config = ctx.config
    configured = config.embedding.model if config.embedding.provider == "local" else None
    wanted = name or configured or DEFAULT_MODEL
    settings = config.embedding.model_copy(update={"provider": "local", "model": wanted})
    with ctx.pipeline(config.model_copy(update={"embedding": settings})) as rag:
        files = rag.models.find(wanted)
        fetched = files is None
        # The first text builds the graph, which is kept beside the weights.
        rag.embedder.embed_query("ready")
        files = rag.models.pull(wanted)
        entry = next((model for model in rag.models.list() if model.path == files.directory), None)
    if ctx.json:
        ctx.emit({"name": files.name, "path": str(files.directory), "fetched": fetched})
        return 0
    detail = f" ({size(entry.size_bytes)}, {', '.join(entry.precisions)})" if entry else ""
    ctx.out.print(f"{files.name} is ready{detail} in {files.directory}", soft_wrap=True)
    return 0


def _list(ctx: CommandContext) -> int:
    """List the models in the cache."""
    cache = ModelCache(ctx.config.embedding.model_dir)
    found = cache.list()
    if ctx.json:
        ctx.emit({"directory": str(cache.directory), "models": [_as_json(model) for model in found]})
        return 0
    for model in found:
        ctx.out.print(f"{model.name}  {size(model.size_bytes)}  {', '.join(model.precisions) or 'not built yet'}")
    if not found:
        ctx.out.print("There is none yet. `recollect models pull` fetches the configured one.")
    ctx.out.print(f"in {cache.directory}", style="dim", soft_wrap=True)
    return 0


def _as_json(model: CachedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "precisions": list(model.precisions),
        "size_bytes": model.size_bytes,
        "path": str(model.path),
    }


command(app, "pull", local="it is about the models in this machine's cache")(_pull)
command(app, "list", local="it is about the models in this machine's cache")(_list)
