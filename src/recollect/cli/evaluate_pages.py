"""``recollect eval pages``: whether searches show the pages of PDF files that answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli._command_context import CommandContext
from recollect.cli._evaluation import measured_options
from recollect.cli._options import ChunkingOptions, CollectionOption, SearchOptions, command


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "pages", local="it reads pages with this machine's parsers")(_pages)


def _pages(
    ctx: CommandContext,
    collection: CollectionOption,
    search: SearchOptions,
    chunking: ChunkingOptions,
    *,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The data set's folder.")],
    keep: Annotated[bool, typer.Option("--keep", help="Keep the collection made for this run.")] = False,
    language: Annotated[str | None, typer.Option(metavar="CODE", help="Of the texts (ISO 639-1).")] = None,
) -> int:
    """Find pages: how often a page that answers is among the first 1, 5 and 10 passages.

    DIR holds pdf/* and questions.jsonl: {"question", "document": a file's name, "pages": [from 1]}. Each question is
    asked of its own document and of all of them.
    """
    from recollect.cli._measuring import Measuring

    measuring = Measuring(
        ctx=ctx,
        options=measured_options(ctx, search),
        chunking=chunking,
        collection=collection.collection,
        language=language,
        keep=keep,
    )
    report = measuring.pages(folder)
    if ctx.json:
        ctx.emit(report.as_json())
        return 0
    _show(ctx, report.metrics)
    ctx.out.print(
        f"{report.questions:,} questions on {report.documents:,} documents ({report.chunks:,} chunks) in "
        f"{report.seconds:,.1f} s"
    )
    return 0


def _show(ctx: CommandContext, metrics: Mapping[str, Mapping[str, float]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in metrics["document"]:
        table.add_column(name, justify="right")
    for place, words in (("document", "in its document"), ("collection", "in all documents")):
        table.add_row(words, *(f"{value:.4f}" for value in metrics[place].values()))
    ctx.out.print(table)
