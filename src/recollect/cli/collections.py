"""``recollect collections``: list, create and delete collections."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from recollect.cli._command_context import CommandContext, argument_text
from recollect.cli._options import ChunkingOptions, command
from recollect.cli.ingest import chunking_of
from recollect.cli.status import show_collections
from recollect.errors import NotFoundError
from recollect.model.arguments import did_you_mean
from recollect.replies.collections import collection_json, collection_list_json

app = typer.Typer(help="List, create and delete collections.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection.")]


def _list(
    ctx: CommandContext,
    *,
    limit: Annotated[int | None, typer.Option(min=1, help="Collections at most; by default all.")] = None,
    after: Annotated[str, typer.Option(metavar="NAME", help="Only collections behind this name: the next page.")] = "",
) -> int:
    """List the collections by name."""
    with ctx.view() as view:
        found = view.collections.list(after=argument_text(after), limit=None if limit is None else limit + 1)
    page = found[:limit]
    more = len(found) > len(page)
    if ctx.json:
        ctx.emit(collection_list_json(page, more=more))
    elif page:
        show_collections(ctx, page)
        if more:
            ctx.note(f"There are more: recollect collections list --after {shlex.quote(page[-1].name)}")
    elif after:
        ctx.out.print("There is no other collection.")
    else:
        ctx.out.print("There is no collection yet. Try: recollect ingest FOLDER")
    return 0


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
        ctx.emit({"collection": collection_json(made)})
    else:
        ctx.out.print(f"Made the collection {made.name!r}.")
    return 0


def _delete(
    ctx: CommandContext, *, name: _Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Remove a collection with everything in it, for good."""
    wanted = argument_text(name)
    with ctx.view() as view:
        places = view.collections.list()
        found = next((place for place in places if place.name == wanted), None)
        if found is None:
            similar = did_you_mean(wanted, (place.name for place in places))
            raise NotFoundError(f"There is no collection {wanted!r}.{similar} `recollect collections list` lists them.")
        ctx.confirm(f"Remove {wanted!r} with its {found.document_count:,} documents for good?", yes=yes)
        view.collections.delete(wanted)
    if ctx.json:
        ctx.emit({"deleted": wanted, "documents": found.document_count})
    else:
        ctx.out.print(f"Removed the collection {wanted!r} and its {found.document_count:,} documents.")
    return 0


command(app, "list", remote=True)(_list)
command(app, "create", remote=True)(_create)
command(app, "delete", remote=True)(_delete)
