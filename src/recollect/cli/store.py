"""``recollect status``, ``collections`` and ``cleanup``: what a store holds, and what of it has passed its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from recollect.cli._bound import bind
from recollect.cli._command_context import CommandContext
from recollect.cli._options import ChunkingOptions, command
from recollect.cli._terminal import one_line, print_list, size
from recollect.cli.ingest import chunking_of
from recollect.operations.collections import CollectionOperations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.model.collection import Collection
    from recollect.model.page import Page
    from recollect.model.status import HitCounts, PipelineStatus


def _status(ctx: CommandContext) -> int:
    """Show what the store holds, or one collection, and how its searches fare."""
    with ctx.view() as view:
        status = view.maintenance.status()
    return ctx.tell(status, lambda: _show_status(ctx, status))


def _place(ctx: CommandContext) -> str:
    return "the server given by --dsn" if ctx.config.storage.dsn else str(ctx.config.storage.data_dir)


def _show_status(ctx: CommandContext, status: PipelineStatus) -> None:
    where = ctx.server.url if ctx.server is not None else _place(ctx)
    out = ctx.out
    documents = f"{status.total_documents:,} document{'' if status.total_documents == 1 else 's'}"
    parts = f"{status.total_chunks:,} chunk{'' if status.total_chunks == 1 else 's'}"
    out.print(f"{documents}, {parts}, {size(status.database_bytes)} in all")
    out.print(
        f"{status.embedding_model}, {status.embedding_dimension} dimensions; schema version {status.schema_version}",
        style="dim",
    )
    out.print(f"in {where}", style="dim", soft_wrap=True)
    if status.collections:
        out.print()
        show_collections(ctx, status.collections)
    if any(status.departments):
        out.print()
        rows = [(one_line(name) or "(none)", f"{chunks:,}") for name, chunks in sorted(status.departments.items())]
        print_list(out, {"Department": "fold", "Chunks": "right"}, rows)
    if status.search.collections:
        out.print()
        _show_searches(ctx, status)
    if status.resident:
        held = [
            f"{one_line(name)} ({copy.chunks:,} chunks, {size(copy.bytes)})" for name, copy in status.resident.items()
        ]
        out.print(f"\nHeld in memory: {', '.join(held)}")
    if not status.total_documents:
        out.print("\nNothing is in it yet. Try: recollect demo, or: recollect ingest FOLDER")


def _show_searches(ctx: CommandContext, status: PipelineStatus) -> None:
    out = ctx.out
    out.print(f"Searches of the last {status.search.days} days", style="bold")
    rows = [
        (
            Text(one_line(name), style="bold cyan"),
            _rate(health.result_cache),
            _rate(health.query_embedding_cache),
            _recall(health.recall_dense, health.recall_dense_worst),
            _recall(health.recall_lexical, health.recall_lexical_worst),
        )
        for name, health in status.search.collections.items()
    ]
    figures = ("Replies cached", "Embeddings cached", "Recall: vectors", "words")
    print_list(out, {"Collection": "fold", **dict.fromkeys(figures, "right")}, rows)
    if status.search.last_probe:
        moment = status.search.last_probe.astimezone()
        repeated = "1 search was" if status.search.probes == 1 else f"{status.search.probes:,} searches were"
        out.print(
            f"{repeated} repeated exactly, the last one {moment:%Y-%m-%d %H:%M}; recall is the share of the best ten "
            "that approximate searches had found (in brackets the worst).",
            style="dim",
        )


def _rate(counts: HitCounts) -> str:
    return "-" if counts.hit_rate is None else f"{counts.hit_rate:.0%} of {counts.hits + counts.misses:,}"


def _recall(mean: float | None, worst: float | None) -> str:
    return "-" if mean is None or worst is None else f"{mean:.1%} ({worst:.0%})"


def show_collections(ctx: CommandContext, collections: Iterable[Collection]) -> None:
    """Collections as a table."""
    rows = []
    for collection in collections:
        chunking = collection.chunking
        length = next(
            (chunking[key] for key in ("size", "window_size", "max_size", "max_tokens") if chunking.get(key)), ""
        )
        row = (
            Text(one_line(collection.name), style="bold cyan"),
            f"{collection.document_count:,}",
            f"{collection.chunk_count:,}",
            f"{chunking.get('strategy', '')} {length}".strip(),
            collection.language,
        )
        rows.append(row)
    columns = {"Collection": "fold", "Documents": "right", "Chunks": "right", "Chunking": "", "Language": ""}
    print_list(ctx.out, columns, rows)


collections_app = typer.Typer(help="List, create and delete collections.", no_args_is_help=True)


_Name = Annotated[str, typer.Argument(metavar="NAME", help="The collection.")]


def _show_listed(ctx: CommandContext, found: Page[Collection]) -> None:
    if found:
        show_collections(ctx, found)
    else:
        ctx.out.print("No collections. Try: recollect ingest FOLDER")


def _create_collection(
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
            name,
            description=description,
            language=language,
            chunking=chunking_of(ctx.config, chunking) if chunking.given else None,
            token_vectors=token_vectors,
            dimensions=dimensions,
        )
    return ctx.tell(made, f"Made the collection {made.name!r}.")


def _delete_collection(
    ctx: CommandContext, *, name: _Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Remove a collection with everything in it, for good."""
    with ctx.view() as view:
        found = view.collections.get(name)
        ctx.confirm(f"Remove {name!r} with its {found.document_count:,} documents for good?", yes=yes)
        view.collections.delete(name)
    return ctx.tell(
        {"deleted": name, "documents": found.document_count},
        f"Removed the collection {name!r} and its {found.document_count:,} documents.",
    )


bind(collections_app, "collections", CollectionOperations, lambda view: view.collections, {"list": _show_listed})


command(collections_app, "create", remote=True)(_create_collection)


command(collections_app, "delete", remote=True)(_delete_collection)


def _cleanup(ctx: CommandContext) -> int:
    """Close the documents whose time to live is over, remove expired sessions, and drop what the audit need not keep.

    Searches leave out what has expired without it. Closed documents keep their history; `documents erase` removes it.
    """
    with ctx.view() as view:
        report = view.maintenance.cleanup()
    if ctx.json:
        ctx.emit(report)
        return 0
    ctx.out.print(f"{report.expired:,} document{'' if report.expired == 1 else 's'} expired.")
    if report.sessions_ended:
        count = report.sessions_ended
        ctx.out.print(f"{count:,} expired session{'' if count == 1 else 's'} removed, with all documents.")
    if report.partitions_dropped:
        count = len(report.partitions_dropped)
        ctx.out.print(f"{count:,} partition{'' if count == 1 else 's'} of the audit dropped.")
    return 0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "status", collection=True, remote=True)(_status)
    app.add_typer(collections_app, name="collections")
    command(app, "cleanup", remote=True)(_cleanup)
