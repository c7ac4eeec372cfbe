"""``recollect status``: what the store holds, and how it is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from recollect.cli._command_context import CommandContext
from recollect.cli._options import command
from recollect.cli._terminal import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.model.collection import Collection
    from recollect.model.status import HitCounts, PipelineStatus


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "status", collection=True, remote=True)(_status)


def _status(ctx: CommandContext) -> int:
    """Show what the store holds, or one collection, and how its searches fare."""
    with ctx.view() as view:
        status = view.maintenance.status()
    if ctx.json:
        ctx.emit(status)
    else:
        _show(ctx, status)
    return 0


def _place(ctx: CommandContext) -> str:
    return "the server given by --dsn" if ctx.config.storage.dsn else str(ctx.config.storage.data_dir)


def _show(ctx: CommandContext, status: PipelineStatus) -> None:
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
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("Department", overflow="fold")
        table.add_column("Chunks", justify="right")
        for name, chunks in sorted(status.departments.items()):
            table.add_row(one_line(name) or "(none)", f"{chunks:,}")
        out.print(table)
    if status.search.collections:
        out.print()
        _show_searches(ctx, status)
    if not status.total_documents:
        out.print("\nNothing is in it yet. Try: recollect demo, or: recollect ingest FOLDER")


def _show_searches(ctx: CommandContext, status: PipelineStatus) -> None:
    out = ctx.out
    out.print(f"Searches of the last {status.search.days} days", style="bold")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Collection", overflow="fold")
    table.add_column("Replies cached", justify="right")
    table.add_column("Embeddings cached", justify="right")
    table.add_column("Recall: vectors", justify="right")
    table.add_column("words", justify="right")
    for name, health in status.search.collections.items():
        table.add_row(
            Text(one_line(name), style="bold cyan"),
            _rate(health.result_cache),
            _rate(health.query_embedding_cache),
            _recall(health.recall_dense, health.recall_dense_worst),
            _recall(health.recall_lexical, health.recall_lexical_worst),
        )
    out.print(table)
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
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("Collection", overflow="fold")
    table.add_column("Documents", justify="right")
    table.add_column("Chunks", justify="right")
    table.add_column("Chunking")
    table.add_column("Language")
    for collection in collections:
        chunking = collection.chunking
        length = next(
            (chunking[key] for key in ("size", "window_size", "max_size", "max_tokens") if chunking.get(key)), ""
        )
        table.add_row(
            Text(one_line(collection.name), style="bold cyan"),
            f"{collection.document_count:,}",
            f"{collection.chunk_count:,}",
            f"{chunking.get('strategy', '')} {length}".strip(),
            collection.language,
        )
    ctx.out.print(table)


def size(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:,.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:,.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} TB"
