"""``recollect collections``: list, create and delete collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import ChunkingOptions, command
from recollect.cli.ingest import chunking_of
from recollect.cli.status import show_collections
from recollect.operations.collections import CollectionOperations

if TYPE_CHECKING:
    from recollect.model.collection import Collection
    from recollect.model.page import Page

app = typer.Typer(help="List, create and delete collections.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection.")]


def _listed(ctx: CommandContext, found: Page[Collection]) -> None:
    if found:
        show_collections(ctx, found)
    else:
        ctx.out.print("No collections. Try: recollect ingest FOLDER")


def _create(
    ctx: CommandContext,
    chunking: ChunkingOptions,
    *,
    name: _Name,
    description: Annotated[str, typer.Option(help="What it holds, for people.")] = "",
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Of most of its documents (ISO 639-1); decides word stems.")
    ] = None,
    token_vectors: Annotated[
        bool | None,
        typer.Option(
            "--token-vectors/--no-token-vectors",
            help="Store token vectors for late_interaction: at most 4 KB a chunk, twice the ingest time.",
            show_default="as configured",
        ),
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option(min=1, help="The length of its vectors, one that the embedding model offers.")
    ] = None,
) -> int:
    """Make an empty collection, with its own chunking, language and length of vectors."""
    with ctx.view() as view:
        made = view.collections.create(
            argument_text(name),
            description=description,
            language=language,
            chunking=chunking_of(ctx.config, chunking) if chunking.given else None,
            token_vectors=token_vectors,
            dimensions=dimensions,
        )
    if ctx.json:
        ctx.emit(made)
    else:
        ctx.out.print(f"Made the collection {made.name!r}.")
    return 0


def _delete(
    ctx: CommandContext, *, name: _Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Remove a collection with everything in it, for good."""
    wanted = argument_text(name)
    with ctx.view() as view:
        found = view.collections.get(wanted)
        ctx.confirm(f"Remove {wanted!r} with its {found.document_count:,} documents for good?", yes=yes)
        view.collections.delete(wanted)
    if ctx.json:
        ctx.emit({"deleted": wanted, "documents": found.document_count})
    else:
        ctx.out.print(f"Removed the collection {wanted!r} and its {found.document_count:,} documents.")
    return 0


bind(app, "collections", CollectionOperations, lambda view: view.collections, {"list": _listed})
command(app, "create", remote=True)(_create)
command(app, "delete", remote=True)(_delete)
